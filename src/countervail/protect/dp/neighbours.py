"""PrivateNeighbours: counterfactuals from a noisy pool of the nearest records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

from countervail.core.arrays import Matrix
from countervail.core.errors import bad_parameter, check_count
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.rng import RandomState, Words
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.ledger.ledger import Ledger
from countervail.protect.dp.base import PrivateExplainer
from countervail.protect.dp.grid import Records, RecordStream
from countervail.protect.dp.pool import VARIANTS, Pool, PoolRecords, Variant


class PrivateNeighbours(PrivateExplainer):
    """Differentially private counterfactuals, searched in a noisy pool of the nearest records.

    Parameters
    ----------
    epsilon : float
        What each answer costs, whatever the number of neighbours.
    neighbours : int
        How many of the nearest records with the wanted decision stand behind an answer.
    pool : {"all", "sampled", "features"}
        "all": every neighbour, all columns noisy. "sampled": `slots` of them, drawn secretly for each query, with
        less noise for the same epsilon. "features": every neighbour, but only `features` columns of each, drawn
        without looking, with less noise.
    slots, features : int
        How many neighbours "sampled", and how many columns "features" looks at.
    split : mapping, optional
        Weight of each column in the budget; equal by default, and always with "features".
    missing : list of str
        Ordinal and categorical columns in which "missing" is a public level of its own; elsewhere a missing value
        counts as the middle level, or the first label.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals : int
        How many different answers each query gets, all from one noisy pool: together they cost one epsilon.
    immutable, ranges, monotone, forbidden, max_changes, costs
        What may be asked of people, as for :class:`NICE` and in the schema. It is public, and costs nothing.
    random_state : int, optional
        For tests only: a seeded answer promises nothing, and says so.
    ledger : Ledger, optional
        Counts answers against a budget for these people, and gives equal queries (on the public grid) the same answer
        at no cost. Without one, the label says that other answers are not counted.

    Notes
    -----
    *Threat model*: someone who knows every other record, the model, the domains and this code, and sees every answer.
    Answers add up: n of them cost n times epsilon. Queries must not be rows of the protected table (nobody can check
    that without telling), and the model must judge every row alone. How long an answer takes tells how many records
    there are, and nothing else of them. A pickle of a fitted one holds the records: it is as confidential as the table.

    *Utility*: the budget is shared by all columns. With ten columns or more and epsilon around 1 the pool is mostly
    noise, and answers owe their quality to the model and the public domain (measured in the page below). Use
    :class:`PrivateSynthetic`, which spends a budget once and carries something; this one is for the comparison with the
    paper, and for single answers at a large epsilon.

    References
    ----------
    Proof, and how it differs from the published Inline_DP: docs/decisions/dp-neighbours.md.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> e = cv.PrivateNeighbours(epsilon=1.0).fit(small_table(), small_model).explain(small_table(3))
    >>> e.guarantee.epsilon, e.guarantee.adjacency
    (1.0, 'both')
    """

    name: ClassVar[str] = "private-neighbours"
    pays_above: ClassVar[float] = 10.0  # measured: docs/guide/budgets.md

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        neighbours: int = 20,
        pool: Variant = "all",
        slots: int = 1,
        features: int = 2,
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
        self.neighbours = neighbours
        self.pool = pool
        self.slots = slots
        self.features = features
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
        bound = cls(neighbours=5, n_counterfactuals=2, monotone={"age": "up"}, costs={"income": 2.0})
        return [*(cls(pool=v, neighbours=5) for v in VARIANTS), cls(random_state=0), bound]

    def _promise(self) -> DifferentialPrivacy:
        return DifferentialPrivacy(float(self.epsilon), page="docs/decisions/dp-neighbours.md")

    def _check_parameters(self) -> None:
        check_count("PrivateNeighbours", "neighbours", self.neighbours)
        if self.pool not in VARIANTS:
            raise bad_parameter("PrivateNeighbours", "pool", f"one of {VARIANTS}", self.pool)
        check_count("PrivateNeighbours", "slots", self.slots, self.neighbours)
        check_count("PrivateNeighbours", "features", self.features)
        if self.pool == "features" and self.split is not None:
            must = "None with pool='features', where each shown column gets the same share"
            raise bad_parameter("PrivateNeighbours", "split", must, "a mapping")

    def _learn(self, table: Table, model: Any, records: Records | RecordStream) -> None:
        assert isinstance(records, Records)  # scans are refused before
        grid, codes = self.public_.grid, records.codes
        columns = min(int(self.features), len(grid.axes))
        self.records_ = PoolRecords.of(codes, self.public_.classes_of(codes), grid.default)
        self.pool_ = Pool.of(
            grid, self.pool, self.shares_, Fraction(float(self.epsilon)), int(self.neighbours), int(self.slots), columns
        )

    def _answer(self, asked: Queries, words: Words) -> Matrix:
        distances = self._distances(asked)
        nearest = self.records_.nearest(distances, asked.wanted, int(self.neighbours))
        pool, shown = self.pool_.draw(nearest, words)
        return self._searched(asked, distances, pool, shown)
