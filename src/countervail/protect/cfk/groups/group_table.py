"""What answers from groups are made of: a sealed table, and facts about it that are frozen with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.canonical import canonical_value, code_values, typed_column
from countervail.core.distance import HEOM
from countervail.core.encode import Coding, Encoder
from countervail.core.errors import SchemaError
from countervail.core.files.json_data import is_number, is_text, need
from countervail.core.loss import as_interval
from countervail.core.region import Range, Regions
from countervail.core.schema import UNASKED, Column, Schema
from countervail.core.sealed import SealedTable, digest_of, value_from_json, value_to_json
from countervail.core.table import Table


@dataclass(frozen=True, eq=False, slots=True)
class GroupTable:
    """A sealed table of features, and what was settled when its first groups were formed.

    `kinds` says how a model is given labels; `register` holds the distinct numbers of each numeric quasi-identifier,
    `sets` how many values one has that is blurred to sets: someone with a register knows both. `scale` is that of the
    distance, `reach` (group x quasi-identifier) how wide each cell is in it, `labels` are the target's.
    """

    sealed: SealedTable
    schema: Schema
    kinds: Mapping[str, str]
    register: Mapping[str, Floats]
    sets: Mapping[str, int]
    scale: Mapping[str, float]
    reach: Floats
    labels: tuple[Any, ...]
    encoder: Encoder = field(init=False)

    def __post_init__(self) -> None:
        codings = tuple(self._coding(self.schema[n]) for n in self.schema.features)
        object.__setattr__(self, "encoder", Encoder(codings))

    @classmethod
    def first(
        cls, clean: Table, group: Ints, regions: Regions, lines: tuple[pd.DataFrame, Ints] | None = None
    ) -> tuple[Self, Ints]:
        """Seal a canonical table whose rows are all in groups; and the new number of each group.

        `lines`, with the group of each: private vectors and how many people of the group have each; the table's own
        rows are then looked at column by column only.
        """
        schema, names = clean.schema, clean.schema.features
        numbers = [n for n in names if schema[n].numeric]
        heom = HEOM.fit(coder := Encoder.fit(clean), coder.encode(clean.features))
        measured = [n for n, m in zip(names, heom.measured) if m]
        quasi = schema.names("quasi")
        register = {n: np.unique(clean.frame[n].to_numpy(float)) for n in quasi if n in numbers}
        sets = {n: len(code_values(clean.frame[n])[1]) for n in quasi if not as_interval(clean, n)}
        scale = dict(zip(measured, heom.scale.tolist()))
        if endless := [n for n, width in scale.items() if not np.isfinite(width)]:
            raise SchemaError(f"The numbers of {endless} lie too far apart for a distance. Rescale them.")
        private, times = (_private(clean), None) if lines is None else lines
        sealed, place = SealedTable.of(regions, group, private, schema, times)
        return cls(
            sealed,
            schema,
            {n: kind_of(clean.frame[n], schema[n]) for n in names},
            register,
            sets,
            scale,
            measure_reach(sealed.regions, schema, scale, sets),
            labels_of(clean),
        ), place

    def grown(self, stay: Bools, clean: Table, group: Ints, regions: Regions) -> tuple[Self, Ints, Ints]:
        """Some of the groups, and new ones of people who are in no other; and the new numbers of both.

        Scales, levels and labels stay as they were; numbers of the newcomers join the register's.
        """
        kept = np.flatnonzero(stay)
        number = np.full(len(stay), -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        inside = stay[self.sealed.groups]
        old = self.sealed.others[inside]
        both = old if not len(group) else pd.concat([old, _private(clean)[old.columns]], ignore_index=True)
        groups = np.concatenate([number[self.sealed.groups[inside]], group + len(kept)])
        joined = _joined(self.sealed.regions[kept], regions)
        reach = self.reach[kept]
        if len(regions):
            reach = np.concatenate([reach, measure_reach(regions, clean.schema, self.scale, self.sets)])
        schema = clean.schema if len(group) else self.schema
        sealed, place = SealedTable.of(joined, groups, both, schema)
        ordered = np.empty_like(reach)
        ordered[place] = reach
        register = dict(self.register)
        if len(group):
            register = {n: np.union1d(v, clean.frame[n].to_numpy(float)) for n, v in register.items()}
        made = type(self)(
            sealed, schema, self.kinds, register, self.sets, self.scale, ordered, self.labels
        )  # fmt: skip
        number[kept] = place[: len(kept)]
        return made, number, place[len(kept) :]

    def declared_as(self, schema: Schema) -> Self:
        """The same groups, with words, favourable decisions and what may change as a later schema declares them."""
        fields = (*UNASKED, "unit", "phrases")
        now = {c.name: {field: getattr(c, field) for field in fields} for c in schema}
        columns = tuple(replace(c, **now.get(c.name, {})) for c in self.schema)
        return replace(self, schema=replace(self.schema, columns=columns, favourable=schema.favourable))

    def with_levels(self, clean: Table, schema: Schema) -> Table:
        """Newcomers, with levels of undeclared ordered columns that nobody had before placed after all others.

        Nobody's rank shifts, and nothing about a newcomer decides whether she joins. Declared levels have their place.
        """
        columns = []
        for old in self.schema:
            there = set(clean.frame[old.name].dropna()) if old.type == "ordinal" and old.name in clean.frame else set()
            more = [v for v in schema[old.name].levels or () if v in there and v not in (old.levels or ())]
            columns.append(replace(old, levels=(*(old.levels or ()), *more)) if more else old)
        return clean.with_frame(clean.frame, replace(self.schema, columns=tuple(columns)))

    def __len__(self) -> int:
        return len(self.sealed.regions)

    @property
    def heom(self) -> HEOM:
        """The distance, with the scales that were frozen."""
        codings = self.encoder.codings
        measured = np.array([c.column.type != "categorical" for c in codings], dtype=bool)
        missing = [-1 if c.numeric else c.missing if c.missing >= 0 else c.levels for c in codings]
        scale = [self.scale[c.name] for c, m in zip(codings, measured) if m]
        return HEOM(measured, np.array(scale, dtype=float), np.array(missing, dtype=float))

    @property
    def private(self) -> Matrix:
        """Private values in codes, by group and content, as often as they are sealed; quasi-identifiers are 0."""
        out = np.zeros((len(self.sealed.groups), len(self.encoder.codings)))
        for j, coding in enumerate(self.encoder.codings):
            if coding.name in self.sealed.others.columns:
                out[:, j] = coding.encode(self.sealed.others[coding.name])
        return out

    @property
    def quasi(self) -> Ints:
        """Where the quasi-identifiers stand among the features."""
        names = self.schema.names("quasi")
        return np.array([i for i, n in enumerate(self.schema.features) if n in names], dtype=np.int64)

    def made_up(self) -> pd.DataFrame:
        """Two rows of values that each column has by itself: nobody's combination."""
        return made_up(self.encoder, {**self.sealed.others, **self.register})

    def corners(self, most: int) -> Matrix:
        """Private rows, evenly from all groups, each with one value of every cell of its region."""
        chosen = np.unique(np.linspace(0, len(self.sealed) - 1, min(most, len(self.sealed))).astype(np.int64))
        chosen = self.sealed.lines_of(chosen)
        out, group = self.private[chosen], self.sealed.groups[chosen]
        for j, coding in enumerate(self.encoder.codings):
            for axis in (a for a in self.sealed.regions.axes if a.name == coding.name):
                if isinstance(axis, Range):
                    out[:, j] = axis.low[group]
                else:
                    place = {v: i for i, v in enumerate(coding.values)}
                    out[:, j] = [place[axis.known[int(i)]] for i in axis.member[group].argmax(axis=1)]
        return out

    @property
    def digest(self) -> str:
        """What tells one table of groups from another."""
        return digest_of(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """All that it holds, as plain JSON data."""
        return {
            "sealed": self.sealed.to_dict(),
            "schema": self.schema.to_dict(),
            "kinds": dict(self.kinds),
            "register": {n: [value_to_json(x) for x in v.tolist()] for n, v in self.register.items()},
            "sets": dict(self.sets),
            "scale": dict(self.scale),
            "reach": self.reach.tolist(),
            "labels": [value_to_json(v) for v in self.labels],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; to be called inside `whole_json`."""
        sealed, schema = SealedTable.from_dict(data["sealed"]), Schema.from_dict(data["schema"])
        quasi, features = schema.names("quasi"), schema.features
        private = [n for n in features if n not in quasi]
        need(sealed.regions.names == quasi and list(sealed.others.columns) == private)
        numeric = {n for n in features if schema[n].numeric}
        need({a.name for a in sealed.regions.axes if isinstance(a, Range)} == numeric & set(quasi))
        need(all(holds_numbers(sealed.others[n]) for n in numeric & set(private)))
        need(set(data["kinds"].values()) <= {"plain", "category", "ordered"})
        need(set(data["kinds"]) == set(features) and all(map(is_text, data["kinds"].values())))
        numbers = [*data["scale"].values(), *(v for row in data["reach"] for v in row)]
        need(all(map(is_number, numbers)) and all(v > 0 for v in data["scale"].values()))
        need(set(data["scale"]) == {n for n in features if schema[n].type != "categorical"})
        need(set(data["register"]) == {n for n in quasi if schema[n].numeric})
        need(set(data["sets"]) <= set(quasi))
        reach = np.array(data["reach"], dtype=float).reshape(len(sealed.regions), len(quasi))
        register = {n: np.array(v, dtype=float) for n, v in data["register"].items()}
        need(all(v.ndim == 1 and _ascends(v) for v in register.values()))
        labels = tuple(value_from_json(v) for v in data["labels"])
        made = cls(sealed, schema, data["kinds"], register, data["sets"], data["scale"], reach, labels)
        codes = made.private[:, ~made.encoder.numeric]
        need(bool((codes >= 0).all()) and bool((np.bincount(sealed.groups, minlength=len(sealed.regions)) > 0).all()))
        return made

    def _coding(self, column: Column) -> Coding:
        """The codes of one column: by declaration, else by content."""
        if column.numeric:
            return Coding(column, np.dtype(float))
        axes = {a.name: a for a in self.sealed.regions.axes}
        if column.name in axes:
            held = list(getattr(axes[column.name], "known", ()))
        else:
            held = code_values(self.sealed.others[column.name])[1]
        known = [v for v in held if v is not None] if column.values is None else list(column.values)
        lookup: Any = typed_column([*known, None] if None in held else known).array
        if self.kinds[column.name] != "plain":
            values = pd.Index(typed_column(known))
            dtype = pd.CategoricalDtype(values, ordered=self.kinds[column.name] == "ordered")
            lookup = pd.Categorical(lookup, dtype=dtype)
        return Coding(column, lookup.dtype, lookup, len(known) if None in held else -1)


def made_up(encoder: Encoder, held: Mapping[str, Any]) -> pd.DataFrame:
    """Two rows of the least and largest numbers, and of the first labels, of each column by itself."""
    rows = np.zeros((2, len(encoder.codings)))
    for j, coding in enumerate(encoder.codings):
        if coding.numeric:
            numbers = np.asarray(held[coding.name], dtype=float)
            known = numbers[~np.isnan(numbers)]
            rows[:, j] = [known.min(), known.max()] if len(known) else np.nan
        else:
            rows[1, j] = min(1, len(coding.lookup) - 1)
    return encoder.decode(rows)


def _ascends(values: Floats) -> bool:
    """Whether numbers are finite and in order; a missing one may come last."""
    known = values[:-1] if len(values) and np.isnan(values[-1]) else values
    return bool(np.isfinite(known).all() and (np.diff(known) > 0).all())


def labels_of(clean: Table) -> tuple[Any, ...]:
    """The target's labels, by content."""
    if clean.schema.target is None:
        return ()
    return tuple(v for v in code_values(clean.target)[1] if v is not None)


def holds_numbers(values: pd.Series) -> bool:
    """Whether a column holds numbers, or nothing at all."""
    plain = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return plain or bool(values.isna().all())


def kind_of(values: pd.Series, column: Column) -> str:
    """How labels are stored, which models may rely on."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return "plain"
    return "ordered" if column.type == "ordinal" else "category"


def measure_reach(
    regions: Regions, schema: Schema, scale: Mapping[str, float], sets: Mapping[str, int]
) -> Floats:  # fmt: skip
    """Group x column: the width of each cell as NCP has it."""
    columns: list[Floats] = []
    for axis in regions.axes:
        if isinstance(axis, Range):
            width = np.nan_to_num(axis.high - axis.low) / scale[axis.name]
            holes = False if axis.holes is None else axis.holes
            columns.append(np.where(holes & ~np.isnan(axis.low), 1.0, width))
            continue
        member = axis.member
        if axis.name in sets:
            count = member.sum(axis=1)
            columns.append(np.where(count > 1, count / sets[axis.name], 0.0))
            continue
        place = {canonical_value(v): i for i, v in enumerate(schema[axis.name].levels or ())}
        there = np.array([v is not None for v in axis.known], dtype=bool)
        rank = np.array([place[canonical_value(v)] for v in axis.known if v is not None], dtype=float)
        high = np.where(member[:, there], rank, -np.inf).max(axis=1, initial=-np.inf)
        low = np.where(member[:, there], rank, np.inf).min(axis=1, initial=np.inf)
        steps = np.maximum(high - low, 0.0) / scale[axis.name]
        # A missing level beside others has no place among them: such a cell is as wide as the column.
        mixed = member[:, ~there].any(axis=1) & member[:, there].any(axis=1)
        columns.append(np.where(mixed, 1.0, steps))
    return np.column_stack(columns) if columns else np.zeros((len(regions), 0))


def _private(clean: Table) -> pd.DataFrame:
    quasi = clean.schema.names("quasi")
    return clean.frame[[n for n in clean.schema.features if n not in quasi]]


def _joined(a: Regions, b: Regions) -> Regions:
    """The regions of both, one after the other."""
    if not len(b):
        return a
    if not len(a):
        return b
    kinds = Schema(tuple(Column(x.name, "numeric" if isinstance(x, Range) else "categorical") for x in a.axes))
    return Regions.from_cells([dict(r.cells) for part in (a, b) for r in part], kinds)
