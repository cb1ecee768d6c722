"""PrivateHistograms: one noisy release of counts, from which every query is answered for free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, log
from typing import Any, ClassVar, Literal, Self

import numpy as np

from countervail.core.arrays import Ints, Matrix
from countervail.core.errors import bad_parameter, check_count
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.rng import RandomState, Words, generator
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.ledger.codec import pack, unpack
from countervail.ledger.ledger import Ledger
from countervail.protect.dp.base import PrivateExplainer
from countervail.protect.dp.budgeted import cost_of, spelling
from countervail.protect.dp.grid import Records, RecordStream
from countervail.protect.dp.pool import PoolRecords

_SENSITIVITY = {"replace-one": 2, "add-remove": 1}


class PrivateHistograms(PrivateExplainer):
    """Counterfactuals from noisy counts of each column's values per decision; the budget is spent once, at fit.

    Parameters
    ----------
    epsilon : float
        What the counts cost, all together. Answers cost nothing more; another `fit` costs again, unless a ledger
        keeps the counts.
    adjacency : {"replace-one", "add-remove"}
        What the promise is about: one record is another, or is there at all. The second takes half the noise.
    neighbours : int
        How many made-up records stand behind an answer.
    records : int
        How many made-up records are drawn from the noisy counts of each decision, column by column.
    split, missing, target, n_counterfactuals, random_state, ledger
        As for :class:`PrivateNeighbours`.
    immutable, ranges, monotone, forbidden, max_changes, costs
        As for :class:`PrivateNeighbours`; like any number of answers, they cost nothing.

    Notes
    -----
    *Threat model*: as for :class:`PrivateNeighbours`, and the adversary may ask without limit. Columns are drawn
    independently, so answers are less plausible than noisy neighbours at a large epsilon; :class:`PrivateSynthetic`
    counts pairs of columns too. A pickle holds the noisy counts and not the table.

    References
    ----------
    Proof, and what it replaces: docs/decisions/dp-histograms.md. Noise: OpenDP's discrete Laplace.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> e = cv.PrivateHistograms(epsilon=1.0).fit(small_table(), small_model).explain(small_table(3))
    >>> e.guarantee.answers is None, e.guarantee.total
    (True, 1.0)
    """

    name: ClassVar[str] = "private-histograms"
    keeps_draw: ClassVar[bool] = True
    counts_only: ClassVar[bool] = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        adjacency: Literal["replace-one", "add-remove"] = "replace-one",
        neighbours: int = 20,
        records: int = 1000,
        split: Mapping[str, float] | None = None,
        missing: Sequence[str] = (),
        target: Any = "favourable",
        n_counterfactuals: int = 1,
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
        random_state: RandomState = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.adjacency = adjacency
        self.neighbours = neighbours
        self.records = records
        self.split = split
        self.missing = missing
        self.target = target
        self.n_counterfactuals = n_counterfactuals
        self.immutable = immutable
        self.ranges = ranges
        self.monotone = monotone
        self.forbidden = forbidden
        self.max_changes = max_changes
        self.costs = costs
        self.random_state = random_state
        self.ledger = ledger

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(records=100), cls(records=100, adjacency="add-remove"), cls(records=100, random_state=0)]

    def _promise(self) -> DifferentialPrivacy:
        return DifferentialPrivacy(float(self.epsilon), None, self.adjacency, "docs/decisions/dp-histograms.md")

    def _check_parameters(self) -> None:
        if self.adjacency not in _SENSITIVITY:
            raise bad_parameter("PrivateHistograms", "adjacency", f"one of {list(_SENSITIVITY)}", self.adjacency)
        check_count("PrivateHistograms", "neighbours", self.neighbours)
        check_count("PrivateHistograms", "records", self.records)

    def _learn(self, table: Table, model: Any, records: Records | RecordStream) -> None:
        public = self.public_
        rng = generator(self.random_state)
        if self.ledger is None:
            self.histograms_ = self._noisy(records, rng)
        else:
            # What is made of the counts later does not matter to them: other answers from them cost nothing.
            named = {"epsilon": self.epsilon, "adjacency": self.adjacency}
            request = spelling(named, self.shares_, public.grid, public)
            cost = cost_of(self._promise())
            self.histograms_ = unpack(
                self.ledger.once(request, cost, self.name, lambda: pack(self._noisy(records, rng)))
            )
        # From here on only the noisy counts are looked at.
        drawn = np.concatenate([self._made_up(c, rng) for c in range(len(public.decision.classes))])
        self.records_ = PoolRecords.of(drawn, public.classes_of_made_up(drawn), public.grid.default)

    def _noisy(self, records: Records | RecordStream, rng: np.random.Generator) -> list[Ints]:
        """Noisy counts, column by column: decision x position."""
        public, out = self.public_, []
        exact = [np.zeros((len(public.decision.classes), int(size)), dtype=np.int64) for size in public.grid.sizes]
        for part in records.parts():
            each, classes = 1 if part.times is None else part.times, public.classes_of(part.codes)
            for j, counts in enumerate(exact):
                np.add.at(counts, (classes, part.codes[:, j]), each)
        for counts, share in zip(exact, self.shares_):
            budget = Fraction(float(self.epsilon)) * share
            out.append(noisy_counts(counts, _SENSITIVITY[self.adjacency], budget, self._seed(rng)))
        return out

    def _seed(self, rng: np.random.Generator) -> RandomState:
        return None if self.random_state is None else rng

    def _made_up(self, klass: int, rng: np.random.Generator) -> Ints:
        """PoolRecords drawn column by column from the noisy counts of one decision."""
        columns = []
        for noisy in self.histograms_:
            weights = np.maximum(noisy[klass], 0).astype(float)
            total = weights.sum()
            p = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
            columns.append(rng.choice(len(weights), size=int(self.records), p=p))
        return np.column_stack(columns).astype(np.int64)

    def _answer(self, asked: Queries, words: Words) -> Matrix:
        distances = self._distances(asked)
        pool = self.records_.nearest(distances, asked.wanted, int(self.neighbours))
        return self._searched(asked, distances, pool, np.ones(pool.shape, dtype=bool))


def noisy_counts(counts: Ints, sensitivity: int, epsilon: Fraction, random_state: RandomState = None) -> Ints:
    """Counts with discrete Laplace noise; `sensitivity` is how far one record can move them (L1)."""
    if random_state is not None:
        return counts + _seeded_noise(counts.shape, sensitivity, epsilon, random_state)
    measurement, spent = _laplace(sensitivity, epsilon)
    if Fraction(spent) > epsilon:
        raise AssertionError("OpenDP accounts for more than this feature may spend")
    out: Ints = np.array(measurement(counts.ravel().tolist()), dtype=np.int64).reshape(counts.shape)
    return out


def _laplace(sensitivity: int, epsilon: Fraction) -> tuple[Any, float]:
    """OpenDP's measurement, and the epsilon that OpenDP itself accounts for."""
    import opendp.prelude as dp

    dp.enable_features("contrib")  # measurements whose proofs are written but not yet vetted by OpenDP
    scale = float(sensitivity / epsilon) * (1 + 1e-12)  # rounded up, so that the float costs no epsilon
    domain = dp.vector_domain(dp.atom_domain(T=int))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    account: Any = measurement.map
    return measurement, float(account(d_in=sensitivity))


def _seeded_noise(shape: tuple[int, ...], sensitivity: int, epsilon: Fraction, random_state: RandomState) -> Ints:
    """The same distribution for tests: OpenDP cannot be seeded."""
    p = -np.expm1(-float(epsilon / sensitivity))
    rng = generator(random_state)
    most = ceil(60 * log(2) / p)  # beyond it lies less than 2**-60
    first, second = (np.minimum(rng.geometric(p, size=shape), most) for _ in range(2))
    noise: Ints = (first - second).astype(np.int64)
    return noise
