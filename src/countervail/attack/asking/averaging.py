"""Averaging: noise that is drawn anew for every answer goes away when one asks often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, OracleAttack, always_same, answers_of, ours
from countervail.attack.result import AttackResult
from countervail.attack.shared.crowds import crowd
from countervail.attack.shared.persons import many, one_row_each, register_of, thinned
from countervail.attack.shared.planted import NoisyOracle
from countervail.core.arrays import Bools, Floats, Ints, number_columns, number_rows
from countervail.core.cells import cell_text, fits, is_missing
from countervail.core.errors import bad_parameter, check_count
from countervail.core.explanation import Explanations
from countervail.core.protocols import Explains, Noisy
from countervail.core.rng import generator
from countervail.core.schema import Schema
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table

Average = Literal["median", "mean", "mode"]
ROUNDS = (1, 5, 20, 100, 500)
_TRIES = 20  # times as many people are asked about once, to find enough who get an answer
_AT_ONCE = 4  # of them in one batch
_WIDE = (pd.Interval, frozenset)


@dataclass(frozen=True, eq=False, slots=True)
class Heard:
    """What was asked, what came back in order, and which of it was an answer."""

    asked: dict[str, Any]
    cells: pd.DataFrame
    found: Bools


@dataclass(frozen=True, slots=True)
class Near:
    """How near a number must be: a share of the true one, and of each column at least so much."""

    share: float
    least: Mapping[str, float]


class Averaging(OracleAttack):
    """Ask the same and nearly the same again, and take the median of the answers for the record behind them.

    Parameters
    ----------
    answers : int
        How often each query is asked, every other time with one number moved a little.
    average : {"median", "mean", "mode"}
        What is made of numbers; of labels it is always the most frequent. The median counts queries that noise left
        without an answer as answers on the asker's side.
    tolerance : float
        A number is found if it is this near, as a share of the true one, or of strangers' standard deviation where that
        is larger: a nought is found too.
    n_targets : int, optional
        How many queries are asked, of people who get an answer.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: someone who asks as often as one likes. Where an oracle of this package can say what it would have
    answered without noise (`behind`: for audits, never released), success means that every value that was moved is
    found; controls are the answers behind other queries. Where it cannot, success means that one person of a register
    lies nearest to the quasi-identifiers found, and that all that was found is that person's; controls are as many
    strangers.
    Queries with the same answer are one case. `detail` has success after so many answers, and with each average.
    Answers that are drawn once, or that show groups of people, stay as they are however often one asks.

    References
    ----------
    Dwork, Roth: The algorithmic foundations of differential privacy (2014), section 3.5, on composition.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.Averaging(n_targets=20)
    >>> found = attack.run(attack.planted(train, test), train, test)
    >>> found.detail["after 1 answers"].value < 0.5 < found.detail["after 100 answers"].value
    True
    """

    name: ClassVar[str] = "averaging"
    criterion: ClassVar[Criterion] = "singling out"

    def __init__(
        self,
        answers: int = 100,
        *,
        average: Average = "median",
        tolerance: float = 0.1,
        n_targets: int | None = 30,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.answers = answers
        self.average = average
        self.tolerance = tolerance

    def planted(self, table: Table, control: Table) -> Explains:
        """An oracle that answers with a record under fresh noise."""
        return NoisyOracle(table)

    def figures(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """Success on the records behind the answers, over the number of answers."""
        check_count("Averaging", "answers", self.answers)
        if self.average not in ("median", "mean", "mode"):
            raise bad_parameter("Averaging", "average", "'median', 'mean' or 'mode'", self.average)
        if not 0 <= self.tolerance < 1:
            raise bad_parameter("Averaging", "tolerance", "at least 0 and below 1", self.tolerance)
        queries = self._answered(oracle, control)
        if not len(queries):
            nobody = clopper_pearson(0, 0)
            return AttackResult(self.label, nobody, nobody, nobody, remarks=("No query was answered.",))
        heard = self._listen(oracle, queries)
        judge = self._judge(oracle, queries, table, control)

        def share(hits: Bools) -> Estimate:
            weighed = thinned(hits.astype(np.int64), table)
            return clopper_pearson(int(weighed.sum()), len(weighed))

        inside, outside = judge.score(self._made(heard, self.answers, self.average, table.schema))
        rounds = [r for r in ROUNDS if r < self.answers] + [self.answers]
        detail: dict[str, Estimate] = {}
        for r in rounds:
            hits = judge.score(self._made(heard, r, self.average, table.schema))[0]
            detail[f"after {r} answers"] = share(hits)
        ways: tuple[Average, ...] = ("median", "mean", "mode")
        for way in ways:
            hits = judge.score(self._made(heard, self.answers, way, table.schema))[0]
            detail[f"by the {way}"] = share(hits)
        blind, _ = judge.score([_typical(control)] * len(queries))
        found, others, guessed = (share(h) for h in (inside, outside, blind))
        return AttackResult(self.label, found, others, guessed, detail=detail)

    def _answered(self, oracle: Explains, control: Table) -> pd.DataFrame:
        """Queries that get an answer at all, one for each different answer: others teach nothing more."""
        if self.n_targets is not None:
            check_count("Averaging", "n_targets", self.n_targets)
        control = one_row_each(control, self.random_state)
        order = generator(self.random_state).permutation(len(control))
        if self.n_targets is None:
            return self._different(oracle, control.features.iloc[order].reset_index(drop=True))
        tried, most = order[: _TRIES * self.n_targets], _AT_ONCE * self.n_targets
        kept = [control.features.iloc[:0]]
        seen: set[str] = set()
        for start in range(0, len(tried), most):
            rows = control.features.iloc[tried[start : start + most]].reset_index(drop=True)
            kept.append(self._different(oracle, rows, seen))
            if sum(map(len, kept)) >= self.n_targets:
                break
        return pd.concat(kept, ignore_index=True).iloc[: self.n_targets].astype(control.features.dtypes.to_dict())

    def _different(self, oracle: Explains, rows: pd.DataFrame, seen: set[str] | None = None) -> pd.DataFrame:
        """Those who get an answer that nobody got before."""
        e = answers_of(oracle, rows)
        assert e.query is not None
        told = _first_answers(oracle.behind(rows) if isinstance(oracle, Noisy) and ours(oracle) else e)
        kept, seen = [], set() if seen is None else seen
        for q in np.unique(e.query[e.found]).tolist():
            if (answer := told.get(q)) is None or answer not in seen:
                kept.append(q)
                seen |= set() if answer is None else {answer}
        return rows.iloc[kept].reset_index(drop=True)

    def _listen(self, oracle: Explains, queries: pd.DataFrame) -> list[Heard]:
        """All answers to each query: every query is asked so often in one batch, every other time nearly so."""
        n = len(queries)
        asked = pd.concat([_nearly(queries, r) if r % 2 else queries for r in range(self.answers)], ignore_index=True)
        cells, found, query = _asked(oracle, asked)
        which = query % n
        rows = [dict(zip(queries.columns, row)) for row in queries.itertuples(index=False)]
        return [Heard(rows[i], cells[which == i], found[which == i]) for i in range(n)]

    def _made(self, heard: Sequence[Heard], answers: int, average: Average, schema: Schema) -> list[dict[str, Any]]:
        """What is taken for the record behind each query; only the columns that most answers moved."""
        return [_average(h, answers, average, schema) for h in heard]

    def _judge(self, oracle: Any, queries: pd.DataFrame, table: Table, control: Table) -> _Records | _Register:
        near = _near(control, self.tolerance)
        if isinstance(oracle, Noisy) and ours(oracle):
            return _Records(oracle.behind(queries), near)
        return _Register(table, crowd(control, many(table), self.random_state), near)


class _Records:
    """Judges by what would have been answered without noise; others' answers are the controls."""

    def __init__(self, behind: Explanations, near: Near) -> None:
        self.near = near
        cells, asked = behind.counterfactuals.astype(object), behind.factuals.astype(object)
        self.moved: list[dict[str, Any]] = []
        first = pd.Series(behind.query).drop_duplicates().index
        for i in first:
            own = behind.own is not None and behind.own[i]
            row = {n: cells[n].iloc[i] for j, n in enumerate(cells.columns) if not (own is not False and own[j])}
            there = bool(behind.found[i])
            self.moved.append({n: c for n, c in row.items() if not fits(asked[n].iloc[i], c)} if there else {})

    def score(self, made: Sequence[dict[str, Any]]) -> tuple[Bools, Bools]:
        """Of those with an answer: who is found, and whom the same would find behind another query."""
        there = [i for i, m in enumerate(self.moved) if m]
        others = there[1:] + there[:1]
        inside = [_agrees(made[i], self.moved[i], self.near) for i in there]
        outside = [_agrees(made[i], self.moved[j], self.near) for i, j in zip(there, others) if i != j]
        return np.array(inside, dtype=bool), np.array(outside, dtype=bool)


class _Register:
    """Judges by who of a register lies nearest, and whether all that was found is that person's."""

    def __init__(self, table: Table, strangers: Table, near: Near) -> None:
        self.near, self.schema = near, table.schema
        self.people = [register_of(t, names=table.schema.features) for t in (table, strangers)]
        self.quasi = table.schema.names("quasi") or table.schema.features
        numeric = [n for n in self.quasi if table.schema[n].numeric]
        self.scale = {n: max(float(np.ptp(strangers.frame[n].dropna().to_numpy(float))), 1e-12) for n in numeric}

    def score(self, made: Sequence[dict[str, Any]]) -> tuple[Bools, Bools]:
        """Who is found in the table, and who among strangers."""
        inside, outside = (np.array([self._found(m, people) for m in made], dtype=bool) for people in self.people)
        return inside, outside

    def _found(self, made: dict[str, Any], people: pd.DataFrame) -> bool:
        known = [n for n in self.quasi if n in made]
        if not known:
            return False
        away = np.zeros(len(people))
        for n in known:
            away += self._apart(people[n], made[n], n)
        nearest = np.flatnonzero(away <= away.min() + 1e-9)
        if people.index[nearest].nunique() != 1:
            return False
        rows = ({n: people[n].iloc[int(i)] for n in made} for i in nearest)  # more than one of one person
        return any(_agrees(made, row, self.near) for row in rows)

    def _apart(self, values: pd.Series, cell: Any, name: str) -> Any:
        if isinstance(cell, _WIDE) or name not in self.scale:
            return (~values.map(lambda v: fits(v, cell)).to_numpy(dtype=bool)).astype(float)
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        return np.nan_to_num(np.abs(numbers - float(cell)) / self.scale[name], nan=1.0)


def _asked(oracle: Explains, rows: pd.DataFrame) -> tuple[pd.DataFrame, Bools, Ints]:
    """Cells of all answers without the asker's own, which of them are answers, and the row that each is about.

    Equal rows are asked about once, where that makes no difference.
    """
    first = place = np.arange(len(rows))
    if always_same(oracle):
        number = number_rows(number_columns(rows, list(rows.columns)))
        _, first, place = np.unique(number, return_index=True, return_inverse=True)
    e = answers_of(oracle, rows.iloc[first].reset_index(drop=True))
    assert e.query is not None
    cells = e.counterfactuals.astype(object)
    if e.own is not None:
        cells = cells.mask(e.own, None)
    order = np.argsort(e.query, kind="stable")
    ends = np.searchsorted(e.query[order], np.arange(len(first) + 1))
    at = np.concatenate([order[ends[i] : ends[i + 1]] for i in place])
    about = np.repeat(np.arange(len(rows)), np.diff(ends)[place])
    return cells.iloc[at].reset_index(drop=True), e.found[at], about


def _first_answers(e: Explanations) -> dict[int, str]:
    """The first answer to each query that has one, without the asker's own values."""
    assert e.query is not None
    cells = e.counterfactuals.astype(object)
    if e.own is not None:
        cells = cells.mask(e.own, None)
    told: dict[int, str] = {}
    for i in np.flatnonzero(e.found):
        told.setdefault(int(e.query[i]), "|".join(map(cell_text, cells.iloc[i])))
    return told


def _average(heard: Heard, answers: int, average: Average, schema: Schema) -> dict[str, Any]:
    made: dict[str, Any] = {}
    found = heard.found[:answers]
    rows, silent = heard.cells.iloc[:answers][found], int((~found).sum())
    for name in rows.columns if len(rows) else ():
        said = [c for c in rows[name] if not is_missing(c)]
        moved = [c for c in said if not fits(heard.asked[name], c)]
        if 2 * len(moved) <= len(rows):
            continue
        if schema[name].numeric and not any(isinstance(c, _WIDE) for c in moved):
            numbers = np.array(said, dtype=float)
            if average == "median":
                made[name] = _median(numbers, silent, float(heard.asked[name]))
            elif average == "mean":
                made[name] = float(numbers.mean())
            else:
                made[name] = float(pd.Series(np.rint(numbers)).mode().iloc[0])
        else:
            made[name] = pd.Series(said, dtype=object).value_counts().index[0]
    return made


def _median(numbers: Floats, silent: int, asked: float) -> float:
    """The median of all answers, where noise that undid one has carried it to the asker's side, beyond all others."""
    side = -np.inf if float(np.median(numbers)) >= asked else np.inf
    everything = np.sort(np.concatenate([numbers, np.full(silent, side)]))
    held = everything[(len(everything) - 1) // 2 : len(everything) // 2 + 1]
    nearest = float(numbers.min() if side < 0 else numbers.max())
    return float(held.mean()) if np.isfinite(held).all() else nearest


def _near(control: Table, tolerance: float) -> Near:
    """How near is near: the tolerance, and so much of the spread of each number among strangers."""
    features = control.features
    numeric = [n for n in features.columns if control.schema[n].numeric]
    spread = {n: np.nanstd(features[n].to_numpy(dtype=float, na_value=np.nan)) for n in numeric}
    return Near(tolerance, {n: tolerance * float(np.nan_to_num(s)) for n, s in spread.items()})


def _agrees(made: dict[str, Any], truth: dict[str, Any], near: Near) -> bool:
    """Whether all that is true was found; a range or a set finds nothing but what it alone can be."""
    held = [n in made and _same(made[n], v, near.share, near.least.get(n, 0.0)) for n, v in truth.items()]
    return bool(truth) and all(held)


def _same(guess: Any, value: Any, tolerance: float, least: float = 0.0) -> bool:
    if isinstance(guess, _WIDE) or isinstance(value, _WIDE):
        return False
    if is_missing(value) or is_missing(guess):
        return is_missing(value) and is_missing(guess)
    if isinstance(value, (int, float, np.number)) and isinstance(guess, (int, float, np.number)):
        return abs(float(guess) - float(value)) <= max(tolerance * abs(float(value)), least) + 1e-9
    return bool(guess == value)


def _typical(control: Table) -> dict[str, Any]:
    """The blind guess: medians, and the most frequent labels."""
    out: dict[str, Any] = {}
    for name, values in control.features.items():
        held = values.dropna()
        numeric = control.schema[str(name)].numeric
        if len(held):
            out[str(name)] = float(held.median()) if numeric else held.value_counts().index[0]
    return out


def _nearly(queries: pd.DataFrame, r: int) -> pd.DataFrame:
    """The queries with one number moved a little: a fraction by a millionth, a whole number by one at most."""
    names = [n for n in queries.columns if pd.api.types.is_float_dtype(queries[n].dtype)]
    if names:
        return queries.assign(**{names[0]: queries[names[0]] * (1 + 1e-6 * (r % 7))})
    whole = [n for n in queries.columns if pd.api.types.is_integer_dtype(queries[n].dtype)]
    if not whole:
        return queries
    widest = max(whole, key=lambda n: len(np.unique(queries[n].dropna())))
    values = queries[widest]
    return queries.assign(**{widest: (values + (r // 2 % 3 - 1)).clip(values.min(), values.max())})
