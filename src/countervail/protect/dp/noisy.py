"""NoisyCounterfactual: noise on every column of somebody else's counterfactual."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import clone

from countervail.core.arrays import Ints, Matrix
from countervail.core.constraints import CONSTRAINTS, Constraints
from countervail.core.errors import bad_parameter
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.rng import RandomState, Words
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.explain.base import Explainer
from countervail.explain.nice import NICE
from countervail.ledger.ledger import Ledger
from countervail.protect.dp.base import PrivateExplainer
from countervail.protect.dp.grid import Records, RecordStream
from countervail.protect.dp.randomiser import Randomiser

_SCALE = 1 << 60
_TIMED = "How long an answer takes depends on the table; no promise covers that, and the asker must not see it."
_RETRIED = "Answers were drawn again until valid: how long that took must not be visible to the asker."


class NoisyCounterfactual(PrivateExplainer):
    """Differentially private counterfactuals: any explainer's answer, with noise on every column.

    Parameters
    ----------
    epsilon : float
        What each draw of noise costs.
    explainer : Explainer, optional
        Makes the counterfactuals; by default NICE towards `target` with the sparsity reward. Whatever it does, only
        its noisy answer leaves; where it has none, or fails, a public record takes its place.
    stop : float, optional
        Draw again until the decision is the wanted one, giving up after each failure with this probability. An
        answer then costs twice epsilon, and its time must stay hidden. By default there is one draw.
    split, missing, target, random_state, ledger
        As for :class:`PrivateNeighbours`.
    immutable, ranges, monotone, forbidden, max_changes, costs
        As for :class:`PrivateNeighbours`: the explainer hears them, and noisy values that they do not allow give way to
        the asker's own. A second answer would be a second draw, and cost as much as the first: there is one.

    Notes
    -----
    *Threat model*: as for :class:`PrivateNeighbours`. All columns are noisy, not only those that the explainer
    changed: which ones it changed would tell whose record it looked at. How long an answer takes depends on the table
    and is not covered: answers say so.

    References
    ----------
    Proof, and how it differs from the published mechanisms: docs/decisions/dp-noisy.md.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> e = cv.NoisyCounterfactual(epsilon=5.0).fit(small_table(), small_model).explain(small_table(3))
    >>> e.guarantee.epsilon
    5.0
    """

    name: ClassVar[str] = "noisy-counterfactual"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        explainer: Explainer | None = None,
        stop: float | None = None,
        split: Mapping[str, float] | None = None,
        missing: Sequence[str] = (),
        target: Any = "favourable",
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
        self.explainer = explainer
        self.stop = stop
        self.split = split
        self.missing = missing
        self.target = target
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
        return [cls(), cls(epsilon=5.0, stop=0.05), cls(random_state=0)]

    def _promise(self) -> DifferentialPrivacy:
        cost = float(self.epsilon) * (1 if self.stop is None else 2)
        return DifferentialPrivacy(cost, page="docs/decisions/dp-noisy.md")

    def _check_parameters(self) -> None:
        if self.explainer is not None and not isinstance(self.explainer, Explainer):
            must = "an explainer with plain counterfactuals, such as NICE()"
            raise bad_parameter("NoisyCounterfactual", "explainer", must, type(self.explainer).__name__)
        if self.stop is not None and not 0 < self.stop <= 1:
            raise bad_parameter("NoisyCounterfactual", "stop", "None, or above 0 and at most 1", self.stop)

    def _learn(self, table: Table, model: Any, records: Records | RecordStream) -> None:
        assert isinstance(records, Records)  # scans are refused before
        grid, codes = self.public_.grid, records.codes
        self.randomiser_ = Randomiser.over(grid, [Fraction(float(self.epsilon)) * s for s in self.shares_])
        # The explainer gets the records as they lie on the grid, in public dtypes: what it refuses to read at query
        # time then depends on the declaration, not on somebody's missing value.
        frame = grid.frame(codes).assign(**{str(table.target.name): table.target.to_numpy(copy=True)})
        kept = tuple(c for c in table.schema if c.role != "identifier")
        given = self.explainer if self.explainer is not None else self._default()
        clone(given).fit(self.public_.probe, model)  # what is wrong with the explainer itself shows here
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning depends on the table, too
            try:
                self.explainer_ = clone(given).fit(Table(frame, Schema(kept, table.schema.favourable)), model)
            except Exception:  # noqa: BLE001 -- this failure may depend on the table, so it must not show
                self.explainer_ = None

    def _default(self) -> NICE:
        reward: Any = "sparsity" if self.public_.decision.has_scores else "none"
        return NICE(reward, target=self.target, **{n: getattr(self, n) for n in CONSTRAINTS})

    def _answer(self, asked: Queries, words: Words) -> Matrix:
        true = self._inner(asked.frame, asked.constraints)
        numbers, columns = self.public_.grid.numbers(), np.arange(true.shape[1])
        cells = np.empty(asked.x.shape)
        open_ = np.arange(len(true))
        while len(open_):
            noisy = self.randomiser_.draw(true[open_], words)
            cells[open_] = self._obeying(asked.only(open_), noisy) if asked.constraints else numbers[columns, noisy]
            if self.stop is None:
                break
            open_ = open_[~np.isnan(cells[open_]).any(axis=1)]  # whom the constraints leave nothing, whatever is drawn
            if not len(open_):
                break
            again = ~self._judge(asked)(cells[open_], open_)[0]
            gives_up = (words.draw(len(open_)) >> np.uint64(4)).astype(np.int64) < int(
                Fraction(float(self.stop)) * _SCALE
            )
            open_ = open_[again & ~gives_up]
        return cells

    def _obeying(self, asked: Queries, noisy: Ints) -> Matrix:
        """Noisy rows without what the constraints do not allow: a function of the noisy row and the query alone."""
        assert asked.constraints is not None
        if asked.constraints.max_changes is not None:
            return self._searched(asked, self._distances(asked), noisy[:, None, :], np.ones(noisy[:, None].shape, bool))
        start, allowed, most = self._start(asked, self._distances(asked))
        columns = np.arange(noisy.shape[1])
        free = allowed[np.arange(len(noisy))[:, None], columns, noisy]
        cells = np.where(free, self.public_.grid.numbers()[columns, noisy], start)
        cells[most < 0] = np.nan
        return cells

    def _inner(self, frame: pd.DataFrame, constraints: Constraints | None) -> Ints:
        """The explainer's counterfactuals on the grid; a public record for each that it does not give."""
        grid = self.public_.grid
        out = np.tile(grid.default, (len(frame), 1))
        if self.explainer_ is None:
            return out
        frame = frame.reset_index(drop=True)
        try:
            wishes = None if constraints is None else constraints.spelt()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers = self.explainer_.explain(frame, constraints=wishes)
            first = np.unique(np.asarray(answers.query), return_index=True)[1]
            found = np.flatnonzero(answers.found[first])
            if len(found):
                out[found] = grid.codes(answers.counterfactuals.iloc[first[found]])
        except Exception:  # noqa: BLE001 -- whether it fails may depend on the table, so failing must not show
            if len(frame) > 1:
                return np.concatenate([self._inner(frame.iloc[[i]], constraints) for i in range(len(frame))])
        return out

    def _caveats(self) -> tuple[str, ...]:
        return (*super()._caveats(), _TIMED, *((_RETRIED,) if self.stop is not None else ()))
