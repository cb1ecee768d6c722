"""What all differentially private explanation protectors share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countervail.core.encode import Encoder, Matrix
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import DifferentialPrivacy, Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.rng import RandomState, Words
from countervail.core.table import Rows, Table
from countervail.explain.base import as_labels, provenance
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect.base import ExplanationProtector, check_unchanged, frozen, held, settled
from countervail.protect.dp.budgeted import beside, cost_of, counted, personal, promised, spelling
from countervail.protect.dp.grid import Grid, Ints
from countervail.protect.dp.pool_search import Judge, Pooled, search
from countervail.protect.dp.public import Public

Bools = NDArray[np.bool_]
P = TypeVar("P")
Floats = NDArray[np.float64]
_BATCH = 256  # queries in lock-step at once: keeps the rows of one model call, and memory, bounded
SEEDED = "The noise was seeded: whoever knows or guesses the seed can take it off."
_INVALID = "No row that changes the decision was found within this budget; the last one tried is given."


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """A batch of queries that want an answer, and all that is public about them."""

    encoder: Encoder
    frame: pd.DataFrame
    x: Matrix
    wanted: Bools
    distances: Ints


class PrivateExplainer(ExplanationProtector):
    """Answers queries with noise. A subclass writes `_learn` (from coded records) and `_answer` (a batch).

    Nothing but `_learn` sees the table, and what it keeps reaches answers through noise only.
    """

    draws_noise: ClassVar[bool] = True
    keeps_draw: ClassVar[bool] = False  # answers come from one draw, made at fit: pickles need no table
    epsilon: float
    split: Mapping[str, float] | None
    missing: Sequence[str]
    random_state: RandomState
    ledger: Ledger | None

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table with declared domains and a model that is taken as public."""
        if hasattr(self, "table_"):
            del self.table_  # a fit that fails leaves nothing to ask
        check_epsilon(self.epsilon, self._owner)
        check_ledger(self.ledger, self._owner, self.random_state)
        self._check_parameters()
        check_table(table, self._owner)
        given = frozen(self)
        grid = Grid.of(table, self._owner, self.missing)
        self.shares_ = shares(table.schema.features, self.split, self._owner)
        self.public_ = Public.of(grid, table.schema, model, self._owner)
        self._wanted(np.zeros(1, dtype=np.int64))
        if self.ledger is not None and not self.keeps_draw:
            self.spelt_ = spelling(self.get_params(deep=False), self.shares_, grid, self.public_)
        self._learn(table, model, grid.codes(table.features))
        self.fitted_as_ = settled(self, given)
        self.table_ = table
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping.

        Every row costs the budget anew, unless a ledger has an answer to an equal one; the ledger covers all rows of a
        call, or none of them is answered.
        """
        return held(self)._explained(rows, progress)

    def _explained(self, rows: Rows, progress: Progress | None) -> Explanations:
        check_is_fitted(self, "table_")
        check_unchanged(self)
        encoder, frame, queries = self.public_.queries(rows)
        if self.ledger is not None and not self.keeps_draw:
            return self._release(encoder, frame, *self._from_ledger(self.ledger, encoder, frame, queries, progress))
        words = Words(self.random_state)
        parts = []
        for start in range(0, len(frame), _BATCH):
            stop = min(start + _BATCH, len(frame))
            parts.append(self._batch(encoder, frame.iloc[start:stop], queries[start:stop], words))
            if progress is not None:
                progress(stop, len(frame))
        cells, now, after, already = (np.concatenate([p[i] for p in parts]) for i in range(4))
        return self._release(encoder, frame, cells, now, after, already)

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        if self.random_state is not None:
            return NoGuarantee("the noise was seeded")
        return promised(self._promise(), self.ledger)

    @abstractmethod
    def _promise(self) -> DifferentialPrivacy:
        """The promise of unseeded noise."""

    @abstractmethod
    def _learn(self, table: Table, model: Any, codes: Ints) -> None:
        """Keep what answers need."""

    @abstractmethod
    def _answer(self, asked: Asked, words: Words) -> Matrix:
        """The row that answers each query."""

    def _check_parameters(self) -> None:
        """Parameters of the subclass."""

    def _batch(
        self, encoder: Encoder, frame: pd.DataFrame, queries: Matrix, words: Words
    ) -> tuple[Matrix, Ints, Ints, Bools]:
        """Cells, decision now and after, and who has what he wants already."""
        now = self.public_.decision.decide(frame)
        wanted = self._wanted(now)
        already = wanted[np.arange(len(now)), now]
        cells, after = queries.copy(), now.copy()
        at = np.flatnonzero(~already)
        if len(at):
            distances = self.public_.grid.distances(queries[at])
            cells[at] = self._answer(Asked(encoder, frame.iloc[at], queries[at], wanted[at], distances), words)
            after[at] = self.public_.decision.decide(encoder.decode(cells[at]))
        return cells, now, after, already

    def _from_ledger(
        self, ledger: Ledger, encoder: Encoder, frame: pd.DataFrame, queries: Matrix, progress: Progress | None
    ) -> tuple[Matrix, Ints, Ints, Bools]:
        """What :meth:`_batch` gives, from stored answers and newly paid ones, all equal for equal rows of the grid."""
        public = self.public_
        starts = range(0, len(frame), _BATCH)
        now = np.concatenate([public.decision.decide(frame.iloc[i : i + _BATCH]) for i in starts])
        wanted = self._wanted(now)
        already = wanted[np.arange(len(now)), now]
        cells, after, at = queries.copy(), now.copy(), np.flatnonzero(~already)

        def draw(rows: pd.DataFrame, x: Matrix, want: Bools) -> Matrix:
            return self._answer(Asked(public.encoder, rows, x, want, public.grid.distances(x)), Words())

        if len(at):
            asked, want, cost = frame.iloc[at], wanted[at], cost_of(self._promise())
            found = counted(ledger, cost, self.name, self.spelt_, public, asked, want, draw, progress)
            cells[at], after[at] = personal(public, encoder, asked, queries[at], found, want)
        return cells, now, after, already

    def _wanted(self, now: Ints) -> Bools:
        """Query x class: which decisions an answer may lead to."""
        decision, schema = self.public_.decision, self.public_.probe.schema
        classes = np.arange(len(decision.classes))
        if isinstance(self.target, str) and self.target == "other":
            other: Bools = classes[None, :] != now[:, None]
            return other
        labels: Any = self.target
        if isinstance(labels, str) and labels == "favourable" and labels not in decision.classes:
            labels = schema.favourable
            if not labels:
                raise SchemaError(
                    f"{self._owner} aims at the favourable decision, but the table declares none. "
                    f'Write favourable = ["..."] at the top of the schema file, or use --target; in Python, pass '
                    f"favourable=... to Table.from_frame, or target=... here."
                )
        aimed = np.isin(classes, decision.codes(as_labels(labels), "target"))
        return np.broadcast_to(aimed, (len(now), len(classes))).copy()

    def _judge(self, asked: Asked) -> Judge:
        """The model on rows of a batch: wanted or not, and the score of the wanted decision."""
        decision = self.public_.decision

        def judge(rows: Matrix, owner: Ints) -> tuple[Bools, Floats]:
            frame = asked.encoder.decode(rows)
            scores = decision.scores(frame) if decision.has_scores else None
            valid: Bools = asked.wanted[owner, decision.decide(frame, scores)]
            if scores is None:
                return valid, valid.astype(float)
            return valid, np.where(asked.wanted[owner], scores, -np.inf).max(axis=1)

        return judge

    def _searched(self, asked: Asked, pool: Ints, shown: Bools) -> Matrix:
        """The counterfactual that a pool leads to."""
        pooled = Pooled(asked.x, pool, shown, asked.distances, self.public_.grid.numbers())
        return search(pooled, self._judge(asked))[0]

    def _release(
        self, encoder: Encoder, frame: pd.DataFrame, cells: Matrix, now: Ints, after: Ints, already: Bools
    ) -> Explanations:
        decision = self.public_.decision
        valid = self._wanted(now)[np.arange(len(now)), after] & ~already
        status = np.where(valid, "found", np.where(already, "already_favourable", "no_counterfactual"))
        return Explanations(
            frame,
            blanked(encoder.decode(cells), already),
            pd.Series(status),
            decision.labels(now),
            decision.labels(np.where(already, -1, after)),
            self.public_.probe.schema,
            self.guarantee().over(int((~already).sum())),
            self._provenance(),
            caveats=self._caveats(),
            notes=tuple("" if ok else _INVALID for ok in valid | already),
            audit=self.table_,
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self.keeps_draw and "table_" in state:
            state["table_"] = None
        return state

    def _caveats(self) -> tuple[str, ...]:
        return (*((SEEDED,) if self.random_state is not None else ()), *beside(self.ledger))

    def _provenance(self) -> dict[str, Any]:
        return made_by(self)


def check_epsilon(epsilon: Any, owner: str) -> None:
    """A budget is a finite number above zero."""
    number = isinstance(epsilon, (int, float, np.integer, np.floating)) and not isinstance(epsilon, bool)
    if not number or not math.isfinite(epsilon) or epsilon <= 0:
        raise bad_parameter(owner, "epsilon", "a finite number above 0", epsilon)


def check_count(owner: str, name: str, value: Any, most: int | None = None) -> None:
    """A whole number of at least one."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 1 or (most is not None and value > most):
        limit = f" and at most {most}" if most is not None else ""
        raise bad_parameter(owner, name, f"a whole number of at least 1{limit}", value)


def check_table(table: Any, owner: str) -> None:
    """A Table with features."""
    if not isinstance(table, Table):
        hint = "Build one with Table.from_frame(df, target=..., domains={...}) or Table.read(path, schema=...)."
        raise bad_parameter(owner, "table", "a Table", type(table).__name__, hint)
    if not table.schema.features:
        raise SchemaError(f"The table given to {owner} has no feature columns: all are identifiers or target.")


def shares(names: Sequence[str], split: Mapping[str, float] | None, owner: str) -> tuple[Fraction, ...]:
    """Each column's share of the budget as an exact fraction; they sum to one."""
    if split is None:
        return (Fraction(1, len(names)),) * len(names)
    if not isinstance(split, Mapping) or set(split) != set(names):
        must = f"a mapping of exactly the feature columns {list(names)} to their weights"
        raise bad_parameter(owner, "split", must, list(split) if isinstance(split, Mapping) else split)
    if not all(isinstance(v, (int, float)) and math.isfinite(v) and v > 0 for v in split.values()):
        raise bad_parameter(owner, "split", "finite weights above 0", dict(split))
    total = sum(Fraction(split[n]) for n in names)
    return tuple(Fraction(split[n]) / total for n in names)


def unseeded(made: dict[str, Any]) -> dict[str, Any]:
    """Provenance without the seed, which would take the noise off."""
    if made["parameters"].get("random_state") is not None:
        made["parameters"]["random_state"] = "given"
    return made


def blanked(frame: pd.DataFrame, gone: Bools) -> pd.DataFrame:
    """The frame with some rows blank; whole numbers and truth values keep a nullable dtype then."""
    if not gone.any():
        return frame
    out = {}
    for name in frame.columns:
        values = frame[name]
        if pd.api.types.is_bool_dtype(values.dtype):
            values = values.astype("boolean")
        elif pd.api.types.is_integer_dtype(values.dtype):
            values = values.astype("Int64")
        out[name] = values.mask(gone)
    return pd.DataFrame(out)


def made_by(protector: Any) -> dict[str, Any]:
    """How an answer was made, without the seed and the schema's digest: types and labels may come from rows."""
    return unseeded(provenance("protector", protector))
