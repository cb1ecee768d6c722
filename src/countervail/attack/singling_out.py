"""Singling out: a condition, read off what was released, that exactly one person of the data meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, SetAttack
from countervail.attack.result import AttackResult
from countervail.attack.shared.cases import cell_codes, first_of_each, free_cells, over_columns
from countervail.attack.shared.crowds import coincidence, crowd
from countervail.attack.shared.persons import many, owners, people_fitting, thinned
from countervail.attack.shared.planted import answers_to_strangers, open_explanations
from countervail.attack.shared.released import Released, changed_sets, plain_axis, value_sets
from countervail.core.arrays import Bools, Ints, number_columns, number_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.region import Axis, Range, Regions
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table
from countervail.engine import Scan
from countervail.engine.columns import distinct_people

Columns = Literal["quasi", "features"]
Conditions = Literal["multivariate", "univariate", "whole", "changed"]
_CONDITIONS = ("multivariate", "univariate", "whole", "changed")
_STRICT = "fits one with what is beside blurred values"
_LABELS = {"whole": "whole records", "changed": "changed values"}


class SinglingOut(SetAttack):
    """Turn what was released into conditions, and count those that exactly one person of the data meets.

    Parameters
    ----------
    conditions : {"multivariate", "univariate", "whole", "changed"}
        All that a released thing says, together; one value that was released once, or lies at an end of a column; all
        of a whole record, where a thing shows every feature plainly and none of them is the asker's own; or all that
        an answer changes in its asker's row, where it shows all of that plainly.
    columns : {"quasi", "features"}
        Conditions on what others may know (all features where no quasi-identifier is declared), or on every feature.
        A whole record, and what an answer changes, are always all features.
    n_targets : int, optional
        How many conditions are tried.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: someone with the release and nothing else, who wants to point at one person ("the only one in the
    data who ..."). Values that are an asker's own are no part of a condition, and an answer that moves nothing which
    others may know fits everybody. Controls: the same conditions among as many people who were never in the data; where
    they are fewer, their figure is brought to the size of the data (`shared.crowds`). Blind: conditions of values drawn
    column by column from what strangers have.
    Conditions on `features` can single people out of k-anonymous tables whose other columns are published as they are.
    A whole record needs no outside knowledge to be somebody's: whatever is blurred, left out or the asker's own is no
    whole record, and a try that failed. What an answer changes is known to whoever asked: an answer that takes some
    values of one person and leaves the others is no whole record, and may still fit that person alone. Answers that
    blur one of the values they change are tries that failed; `detail` says how many of all answers fit one person if
    the values beside the blurred ones are taken too, which k-anonymity does not promise to prevent. Risks by the number
    of people (`set_sizes`) are about what others may know, and are counted neither for whole records nor for changes.

    References
    ----------
    Article 29 Working Party: Opinion 05/2014 on anonymisation techniques; Cohen, Nissim: Towards formalizing the GDPR's
    notion of singling out (2020); Giomi et al.: A unified framework for quantifying privacy risk in synthetic data
    (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> plain = cv.NICE().fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> cv.attack.SinglingOut().run(plain, table, control=table).members.value  # the one condition fits Fiona alone
    1.0
    """

    name: ClassVar[str] = "singling-out"
    criterion: ClassVar[Criterion] = "singling out"
    variants: ClassVar[tuple[dict[str, str], ...]] = (
        {},
        {"conditions": "univariate"},
        {"conditions": "whole"},
        {"conditions": "changed"},
    )

    def __init__(
        self,
        conditions: Conditions = "multivariate",
        *,
        columns: Columns = "quasi",
        n_targets: int | None = 1000,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.conditions = conditions
        self.columns = columns

    @property
    def label(self) -> str:
        """The attack's name in results."""
        return f"{self.name} ({_LABELS.get(self.conditions, self.conditions)})"

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls("univariate"), cls("whole"), cls("changed")]

    def figures(self, release: Released, table: Table, control: Table) -> AttackResult:
        """How many conditions one person meets: of the data, of strangers, and of the data by blind conditions."""
        if self.conditions not in _CONDITIONS:
            raise bad_parameter("SinglingOut", "conditions", f"one of {', '.join(_CONDITIONS)}", self.conditions)
        if self.conditions == "changed" and not isinstance(release, Explanations):
            raise SchemaError("Rows of a table change nothing: what is changed is looked at in explanations only.")
        wholly = self.conditions in _LABELS
        names = self._names(release, table, "features" if wholly else self.columns)
        things = self._things(release, names)
        asked = self._conditions(things, names)
        strangers = crowd(control, many(table), self.random_state)
        silent = self._silent(things, names, len(asked))
        counted = [_with(count_people(asked, t.frame, owners(t)), silent, many(t)) for t in (table, strangers)]
        blind = _with(count_people(self._blind(asked, control), table.frame, owners(table)), silent, many(table))
        inside, outside, blind = (thinned(c, table) for c in (*counted, blind))
        strict = self._blurred(things, table, strangers)
        return AttackResult(
            self.label,
            clopper_pearson(int((inside == 1).sum()), len(inside)),
            coincidence(outside, many(table), many(strangers)),
            clopper_pearson(int((blind == 1).sum()), len(blind)),
            inside[:0] if wholly else counted[0],
            {"fits nobody": clopper_pearson(int((inside == 0).sum()), len(inside)), **strict},
            _strictly(*strict.values()) if strict and not _plainly(things, free_cells(things)).all() else (),
        )

    def _blurred(self, things: Regions, table: Table, strangers: Table) -> dict[str, Estimate]:
        """How many answers fit one person, of the data and of strangers, by all that they change, blurred or not."""
        if self.conditions != "changed":
            return {}
        some: Regions = things[self._some(np.arange(len(things)))]
        counts = (thinned(count_people(some, t.frame, owners(t)), table) for t in (table, strangers))
        inside, outside = (clopper_pearson(int((one == 1).sum()), len(one)) for one in counts)
        return {_STRICT: inside, f"{_STRICT}, strangers": outside}

    def planted(self, table: Table, control: Table) -> Released:
        """Everybody's record as if it were an explanation; where changes are looked at, of a stranger who asked."""
        return answers_to_strangers(table, control) if self.conditions == "changed" else open_explanations(table)

    def _things(self, release: Released, names: Sequence[str]) -> Regions:
        """What was released, over these columns: each thing once, but where it counts how often a value is shown."""
        changes = self.conditions == "changed" and isinstance(release, Explanations)
        sets = changed_sets(release) if changes else value_sets(release)  # type: ignore[arg-type]
        if self.conditions != "univariate":
            sets = sets[first_of_each(sets, names)]
        return over_columns(sets, names)

    def predicates(self, release: Released, names: Sequence[str]) -> Regions:
        """The conditions, each of them once; columns that a condition does not speak of are free."""
        return self._conditions(self._things(release, names), names)

    def _conditions(self, things: Regions, names: Sequence[str]) -> Regions:
        if not len(things) or not things.axes:
            return Regions((), 0)
        free = free_cells(things)
        if self.conditions == "univariate":
            return self._univariate(things, cell_codes(things, free))
        picked = self._some(np.flatnonzero(self._said(things, free, names)))
        chosen: Regions = things[picked]
        return replace(chosen, free=free[picked] if free.any() else None)

    def _silent(self, things: Regions, names: Sequence[str], asked: int) -> int:
        """How many things say nothing of these columns, or are no whole record; no more than are tried in all."""
        if self.conditions == "univariate":
            return 0
        silent = int((~self._said(things, free_cells(things), names)).sum())
        return silent if self.n_targets is None else min(silent, max(self.n_targets - asked, 0))

    def _said(self, sets: Regions, free: Bools, names: Sequence[str]) -> Bools:
        """Which things make a condition."""
        if self.conditions == "whole":
            return _whole(sets, free, names)
        some: Bools = np.asarray(~free.all(axis=1), dtype=bool)
        return some & _plainly(sets, free) if self.conditions == "changed" else some

    def _univariate(self, sets: Regions, cells: Ints) -> Regions:
        at: list[tuple[int, int, int]] = []  # thing, column, and which end is open
        for j, axis in enumerate(sets.axes):
            said = np.flatnonzero(cells[:, j] >= 0)
            if not len(said):
                continue
            codes = cells[said, j]
            at += [(int(i), j, 0) for i in said[np.bincount(codes)[codes] == 1]]
            if isinstance(axis, Range) and not np.isnan(axis.low[said]).all():
                at.append((int(said[np.nanargmin(axis.high[said])]), j, -1))
                at.append((int(said[np.nanargmax(axis.low[said])]), j, 1))
        if not at:
            return Regions((), 0)
        picked = np.array(at)[self._some(np.arange(len(at)))]
        chosen: Regions = sets[picked[:, 0]]
        axes: list[Axis] = []
        for j, axis in enumerate(chosen.axes):
            if isinstance(axis, Range):
                below, above = ((picked[:, 1] == j) & (picked[:, 2] == end) for end in (-1, 1))
                axis = replace(axis, low=np.where(below, -np.inf, axis.low), high=np.where(above, np.inf, axis.high))
            axes.append(axis)
        return replace(chosen, axes=tuple(axes), free=picked[:, 1, None] != np.arange(len(axes))[None, :])

    def _some(self, things: Ints) -> Ints:
        if self.n_targets is not None and self.n_targets < 1:
            raise bad_parameter("SinglingOut", "n_targets", "None or a whole number of at least 1", self.n_targets)
        order = generator(self.random_state).permutation(len(things))
        return things[np.sort(order[: self.n_targets])]

    def _blind(self, asked: Regions, control: Table) -> Regions:
        """Conditions on as many columns, of values that strangers have, drawn column by column."""
        rng = generator(self.random_state)
        rows = [rng.integers(len(control), size=len(asked)) for _ in asked.axes]
        drawn = [control.frame[a.name].iloc[r].reset_index(drop=True) for a, r in zip(asked.axes, rows)]
        axes = [plain_axis(values, a.name, control.schema) for a, values in zip(asked.axes, drawn)]
        return Regions(tuple(axes), len(asked), asked.free)


def _strictly(inside: Estimate, outside: Estimate) -> tuple[str, ...]:
    """What counts as a failed try here, and is singling out where that is read strictly."""
    if not inside.value > 0:
        return ()
    return (
        f"read strictly, {inside.value:.1%} of {inside.n:,} answers single one person out ({outside.value:.1%} among "
        f"as many strangers), by all they change, blurred or not. Decided is on answers that blur nothing: Opinion "
        f"05/2014 takes k-anonymity for a defence against singling out, Cohen and Nissim (2020) do not.",
    )


def count_people(asked: Regions, people: pd.DataFrame | Scan, person: Ints | None = None) -> Ints:
    """How many people meet each condition; plain values on all columns are looked up, others gone through.

    `person` says whose each row is, where some have several.
    """
    if not len(asked):
        return np.zeros(0, dtype=np.int64)
    times: Ints | None = None
    if isinstance(people, Scan):
        people, times = distinct_people(people, asked.names)
    if (asked.free is not None and asked.free.any()) or not all(map(_is_plain, asked.axes)):
        rows = people[asked.names]
        return asked.count(rows, times) if times is not None else people_fitting(asked, rows, person)
    cells = asked.to_frame()
    both = {n: pd.concat([_comparable(people[n]), _comparable(cells[n])], ignore_index=True) for n in asked.names}
    keys = number_rows(number_columns(pd.DataFrame(both), asked.names))
    held = keys[: len(people)]
    if person is not None:
        wide = int(person.max(initial=0)) + 1
        held = np.unique(held * wide + person) // wide  # each person once
    counted = np.bincount(held, times, minlength=int(keys.max()) + 1)
    found: Ints = counted[keys[len(people) :]].astype(np.int64)
    return found


def _with(counts: Ints, silent: int, everybody: int) -> Ints:
    """The counts, and those of things that say nothing."""
    return np.concatenate([counts, np.full(silent, everybody, dtype=np.int64)])


def _comparable(values: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return pd.Series(values.to_numpy(dtype=float, na_value=np.nan))
    plain = values.astype(object)
    return plain.where(plain.notna(), None)


def _is_plain(axis: Axis) -> bool:
    return (axis.holes is None if isinstance(axis, Range) else True) and bool(_plain_cells(axis).all())


def _plain_cells(axis: Axis) -> Bools:
    """Which things show one value in this column."""
    if isinstance(axis, Range):
        plain: Bools = np.asarray(axis.low == axis.high)
        return plain if axis.holes is None else plain & ~axis.holes
    return np.asarray(axis.sizes == 1)


def _whole(sets: Regions, free: Bools, names: Sequence[str]) -> Bools:
    """Which things are a whole record: one value in each of the columns, none of them an asker's own."""
    if not set(names) <= {a.name for a in sets.axes}:
        return np.zeros(len(sets), dtype=bool)
    plain = np.column_stack([_plain_cells(a) for a in sets.axes]) & ~free
    return np.asarray(plain.all(axis=1))


def _plainly(sets: Regions, free: Bools) -> Bools:
    """Which things show one value in each column that they speak of."""
    plain = [_plain_cells(a) | free[:, j] for j, a in enumerate(sets.axes)]
    return np.asarray(np.logical_and.reduce(plain)) if plain else np.ones(len(sets), dtype=bool)
