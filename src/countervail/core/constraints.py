"""What an answer may not ask of a person: one object for every explainer, protector and search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike
from countervail.core.encode import Coding, Encoder
from countervail.core.errors import SchemaError, bad_parameter, check_count
from countervail.core.words.dates import day_number

CONSTRAINTS = ("immutable", "ranges", "monotone", "forbidden", "max_changes", "costs")  # as parameters are called
ANY = "*"  # in a forbidden step: whatever other value, unless the column has a value of this name
_SIGN = {"up": 1, "down": -1}
_STUCK = "Values that may not change, or not this way, lie outside what is allowed: {}."


@dataclass(frozen=True, eq=False, slots=True)
class Constraints:
    """Ways that columns may go, values that are allowed, steps that are not, how many changes, and what each costs.

    Columns are known by their place in the encoder. `x` are coded queries, `values` and `rows` coded rows; codes of a
    wider encoder (one that also knows the queries' values) need `coded` first. To stay as one is must be allowed too:
    a value outside its range has to move. A missing value lies in no range of numbers and has no place in an order.
    """

    encoder: Encoder
    owner: str
    ways: Mapping[int, str] = field(default_factory=dict)
    allowed: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    forbidden: Mapping[int, tuple[tuple[Any, Any], ...]] = field(default_factory=dict)
    max_changes: int | None = None
    costs: Mapping[int, float] = field(default_factory=dict)
    until: Mapping[int, tuple[str, float]] = field(default_factory=dict)  # ends of ways, while columns go that way

    @classmethod
    def of(cls, encoder: Encoder, owner: str, **given: Any) -> Self:
        """What the schema declares, column by column, and then what was given; the names are those of `joined`."""
        columns = [c.column for c in encoder.codings]
        declared = cls(encoder, owner).joined(
            immutable=[c.name for c in columns if c.actionable == "no"],
            monotone={c.name: c.actionable for c in columns if c.actionable in _SIGN},
            ranges={c.name: c.range for c in columns if c.range is not None},
        )
        # The rows of a split may lack a value that the schema forbids a step to: then there is nothing to forbid.
        steps = {j: c.forbidden for j, c in enumerate(columns) if c.forbidden}
        until = {j: (c.actionable, float(c.until)) for j, c in enumerate(columns) if c.until is not None}
        return replace(declared, forbidden=steps, until=until).joined(**given)

    def joined(
        self,
        *,
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> Self:
        """With more of them, checked: for a column, what is given here takes the place of what there was."""
        if isinstance(immutable, str):
            raise bad_parameter(self.owner, "immutable", "a list of column names", immutable, f"Write ['{immutable}'].")
        ways, allowed, pairs, costs_ = dict(self.ways), dict(self.allowed), dict(self.forbidden), dict(self.costs)
        ways |= {self._place(n, "monotone"): self._way(n, way) for n, way in (monotone or {}).items()}
        ways |= {self._place(n, "immutable"): "no" for n in immutable}
        for name, values in (ranges or {}).items():
            j = self._place(name, "ranges")
            allowed[j] = () if values is None else self._range(j, values)
        pairs |= {self._place(n, "forbidden"): self._pairs(n, moves) for n, moves in (forbidden or {}).items()}
        costs_ |= {self._place(n, "costs"): self._cost(n, cost) for n, cost in (costs or {}).items()}
        if max_changes is not None:
            check_count(self.owner, "max_changes", max_changes)
        joined = replace(
            self,
            ways={j: way for j, way in ways.items() if way != "any"},
            allowed={j: values for j, values in allowed.items() if values},
            forbidden={j: moves for j, moves in pairs.items() if moves},
            max_changes=self.max_changes if max_changes is None else int(max_changes),
            costs={j: cost for j, cost in costs_.items() if cost != 1.0},
        )
        if self.encoder.codings and len(joined.immutable) == len(self.encoder.codings):
            all_of = "the schema and 'immutable' together"
            raise bad_parameter(
                self.owner, "immutable", "less than all feature columns", all_of, "Let something change."
            )
        return joined

    def coded(self, encoder: Encoder) -> Self:
        """The same in the codes of a wider encoder."""
        return self if encoder is self.encoder else replace(self, encoder=encoder)

    def __bool__(self) -> bool:
        return bool(self.ways or self.allowed or self.forbidden or self.max_changes is not None)

    @property
    def immutable(self) -> tuple[int, ...]:
        """The columns that stay as they are."""
        return tuple(sorted(j for j, way in self.ways.items() if way == "no"))

    @property
    def bound(self) -> list[int]:
        """The columns that may not have every value."""
        return sorted({*self.ways, *self.allowed, *self.forbidden})

    @property
    def weights(self) -> Floats:
        """What each column costs; 1 unless told."""
        out = np.ones(len(self.encoder.codings))
        out[list(self.costs)] = list(self.costs.values())
        return out

    def spelt(self) -> dict[str, Any]:
        """All of it under the names of the parameters, in one spelling however it was given; empty without any."""
        names = self.encoder.names
        found: dict[str, Any] = {
            "immutable": [names[j] for j in self.immutable],
            "ranges": {names[j]: list(values) for j, values in sorted(self.allowed.items())},
            "monotone": {names[j]: way for j, way in sorted(self.ways.items()) if way in _SIGN},
            "forbidden": {names[j]: [list(pair) for pair in moves] for j, moves in sorted(self.forbidden.items())},
            "max_changes": self.max_changes,
            "costs": {names[j]: cost for j, cost in sorted(self.costs.items())},
        }
        return {name: value for name, value in found.items() if value}

    def admissible(self, x: Matrix, rows: Matrix) -> Bools:
        """Query x row: which rows each query may be sent to."""
        ok = np.ones((len(x), len(rows)), dtype=bool)
        for j in self.bound:
            ok &= self._allows(j, x[:, j, None], rows[None, :, j])
        if self.max_changes is not None and self.max_changes < x.shape[1]:
            changes = np.zeros(ok.shape, dtype=np.int16)
            for j in range(x.shape[1]):
                changes += unlike(x[:, j, None], rows[None, :, j])
            ok &= changes <= self.max_changes
        return ok

    def allows(self, x: Matrix, values: Matrix) -> Bools:
        """Query x row x column: which single values each query may have."""
        ok = np.ones((len(x), *values.shape), dtype=bool)
        for j in self.bound:
            ok[:, :, j] = self._allows(j, x[:, j, None], values[None, :, j])
        return ok

    def holds(self, x: Matrix, rows: Matrix) -> Bools:
        """Row x column: which values of each row its own query (the same row of `x`) may have."""
        ok = np.ones(x.shape, dtype=bool)
        for j in self.bound:
            ok[:, j] = self._allows(j, x[:, j], rows[:, j])
        return ok

    def reach(self, x: Matrix, values: Matrix) -> Bools:
        """Query x column x place: which of the values that are listed for each column a query may have."""
        ok = np.ones((len(x), *values.shape), dtype=bool)
        for j in self.bound:
            ok[:, j] = self._allows(j, x[:, j, None], values[None, j])
        return ok

    def allows_values(self, j: int, x: Floats, values: Floats) -> Bools:
        """Query x value: whether a query (its value in column j) may have the value; `values` are those of all
        queries, or query x value."""
        return self._allows(j, x[:, None], values if values.ndim == 2 else values[None])

    def allows_intervals(self, j: int, x: Floats, low: Floats, high: Floats) -> Bools:
        """Query x cell: whether a query (its value in numeric column j) may have every number of a closed interval."""
        a, b, c = x[:, None], low[None], high[None]
        ok: Bools = np.ones((len(x), len(low)), dtype=bool)
        way = self.ways.get(j)
        if way == "no":
            ok &= ~unlike(a, b) & ~unlike(a, c)
        elif way is not None:
            ok &= (b >= a) if way == "up" else (c <= a)
            ok &= self._within_end(j, b) & self._within_end(j, c)
            ok |= ~unlike(a, b) & ~unlike(a, c)  # what is missing may stay so
        if j in self.allowed:
            ok &= (b >= self.allowed[j][0]) & (c <= self.allowed[j][1])
        for start, end in self.forbidden.get(j, ()):
            here = (a != end) if start == ANY else (a == start)
            there = unlike(a, b) | unlike(a, c) if end == ANY else (b <= end) & (c >= end)
            ok &= ~(here & there)
        return ok

    def allows_sets(self, j: int, x: Floats, member: Bools) -> Bools:
        """Query x cell: whether a query may have every value of a set; `member` is cell x code of column j."""
        wrong = ~self._allows(j, x[:, None], np.arange(member.shape[1], dtype=float)[None])
        none: Bools = wrong.astype(np.float32) @ member.T.astype(np.float32) == 0
        return none

    def in_range(self, rows: Matrix) -> Bools:
        """Row x column: which values lie in their allowed range; the others have to move."""
        ok = np.ones(rows.shape, dtype=bool)
        for j in self.allowed:
            ok[:, j] = self._in_range(j, rows[:, j])
        return ok

    def stuck(self, x: Matrix) -> Bools:
        """Query x column: which values have to move and cannot: no value is in the range and allowed from there."""
        out = ~self.in_range(x)
        for j in np.flatnonzero(out.any(axis=0)).tolist():
            coding, way = self.encoder.codings[j], self.ways.get(j)
            if not coding.numeric:
                codes = np.arange(len(coding.lookup), dtype=float)
                out[:, j] &= ~self._allows(j, x[:, j, None], codes[None]).any(axis=1)
                continue
            low, high = self.allowed[j]
            if way is None:
                free = np.ones(len(x), dtype=bool)
            elif way == "no":
                free = np.zeros(len(x), dtype=bool)
            else:
                free = x[:, j] <= high if way == "up" else x[:, j] >= low
                free &= self._within_end(j, np.array([low if way == "up" else high]))
            out[:, j] &= ~free | _held(coding, self.forbidden.get(j, ()), self.allowed[j], x[:, j])
        return out

    def notes(self, x: Matrix) -> list[str]:
        """For each query, which of its own values rule every answer out; names only."""
        if not self.allowed:  # every value is in its range
            return [""] * len(x)
        names = np.array(self.encoder.names, dtype=object)
        return [_STUCK.format(", ".join(names[row])) if row.any() else "" for row in self.stuck(x)]

    def _allows(self, j: int, x: Any, values: Any) -> Bools:
        """Whether a value of column j may be left for another; arrays of any shapes that go together."""
        ok = self._in_range(j, values) if j in self.allowed else np.ones(np.broadcast(x, values).shape, dtype=bool)
        way, missing = self.ways.get(j), self.encoder.codings[j].missing
        if way == "no":
            ok = ok & ~unlike(x, values)
        elif way is not None:
            ordered = _SIGN[way] * (values - x) >= 0
            if missing >= 0:  # a missing level has no place in the order: it may only stay
                ordered &= (values != missing) & (x != missing)
            ordered = ordered & self._within_end(j, values)
            ok = ok & (ordered | ~unlike(x, values))
        coding = self.encoder.codings[j]
        for start, end in self.forbidden.get(j, ()):
            here = _is_any(coding, start) | (x == _code(coding, start))
            there = _is_any(coding, end) | (values == _code(coding, end))
            ok = ok & ~(here & there & unlike(x, values))
        return np.broadcast_to(ok, np.broadcast(x, values).shape)

    def _within_end(self, j: int, values: Any) -> Bools:
        """Which values a column may have that goes its way: none beyond the end, if there is one."""
        way, end = self.until.get(j, ("", 0.0))
        if way != self.ways.get(j):
            return np.ones(np.shape(values), dtype=bool)
        inside: Bools = values <= end if way == "up" else values >= end
        return inside

    def _in_range(self, j: int, values: Any) -> Bools:
        coding, allowed = self.encoder.codings[j], self.allowed[j]
        if coding.numeric:
            inside: Bools = (values >= allowed[0]) & (values <= allowed[1])
            return inside
        return np.isin(values, [_code(coding, v) for v in allowed])

    def _place(self, name: Any, parameter: str) -> int:
        names = self.encoder.names
        if name not in names:
            raise bad_parameter(self.owner, parameter, f"made of feature columns {names}", name)
        return names.index(name)

    def _way(self, name: str, way: Any) -> str:
        if way not in ("up", "down", "any"):
            must = "'up' or 'down' for each column ('any' lifts what the schema says)"
            raise bad_parameter(self.owner, "monotone", must, way)
        column = self.encoder.codings[self._place(name, "monotone")].column
        if way != "any" and column.type == "categorical":
            raise SchemaError(
                f"{self.owner}: monotone column '{name}' is categorical and has no order. Use forbidden=."
            )
        return str(way)

    def _range(self, j: int, values: Any) -> tuple[Any, ...]:
        coding = self.encoder.codings[j]
        kind = "two dates" if coding.column.type == "date" else "two numbers"
        must = f"(low, high) with low <= high for column '{coding.name}', {kind} or None for an open end"
        must = must if coding.numeric else f"a list of values for '{coding.name}'"
        if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
            raise bad_parameter(self.owner, "ranges", must, values)
        bounds = tuple(values)
        if not coding.numeric:
            if not bounds:
                raise bad_parameter(self.owner, "ranges", f"{must}, at least one", [])
            known = _known(self.owner, coding, bounds, "ranges")
            return tuple(
                sorted(set(known), key=lambda v: (v is None, coding.values.index(v) if v in coding.values else 0))
            )
        ends = _ends(coding, bounds)
        if ends is None:
            raise bad_parameter(self.owner, "ranges", must, bounds)
        domain = coding.column.public
        if domain is not None and (ends[1] < domain[0] or ends[0] > domain[1]):
            must = f"a range for '{coding.name}' that holds values of its declared domain"
            raise bad_parameter(self.owner, "ranges", must, bounds)
        return ends

    def _pairs(self, name: str, moves: Any) -> tuple[tuple[Any, Any], ...]:
        must = f"a list of (from, to) pairs for column '{name}'"
        if isinstance(moves, (str, Mapping)) or not isinstance(moves, Iterable):
            raise bad_parameter(self.owner, "forbidden", must, moves)
        pairs = tuple(moves)
        if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
            raise bad_parameter(self.owner, "forbidden", must, pairs)
        coding = self.encoder.codings[self._place(name, "forbidden")]
        given = [v for pair in pairs for v in pair]
        known = iter(_known(self.owner, coding, [v for v in given if not _is_any(coding, v)], "forbidden"))
        ends = [ANY if _is_any(coding, v) else next(known) for v in given]
        found = tuple(zip(ends[::2], ends[1::2]))
        if any(start == end for start, end in found):
            hint = "To rule a value out altogether, use ranges=."
            raise bad_parameter(self.owner, "forbidden", f"{must}, from one value to another", pairs, hint)
        return found

    def _cost(self, name: str, cost: Any) -> float:
        if not _is_number(cost) or isinstance(cost, bool) or not 0 < cost < np.inf:
            raise bad_parameter(self.owner, "costs", f"a finite number above 0 for column '{name}'", cost)
        return float(cost)


def must_keep(constraints: Constraints, j: int, value: float) -> bool:
    """Whether every step from a value of column j is forbidden."""
    coding = constraints.encoder.codings[j]
    starts = [start for start, end in constraints.forbidden.get(j, ()) if _is_any(coding, end)]
    return any(_is_any(coding, start) or _code(coding, start) == value for start in starts)


def asked_for(given: Any, rows: int, fitted: Constraints) -> tuple[list[Constraints], Ints]:
    """The different constraints of query rows, and which of them each row has.

    `given` is what is asked for besides the fitted ones: nothing, a mapping with the names of the parameters for all
    rows, or a list with one of these (or None) for each row.
    """
    if given is None:
        return [fitted], np.zeros(rows, dtype=np.int64)
    one_each = isinstance(given, Sequence) and not isinstance(given, (str, bytes))
    parts = list(given) if one_each else [given]
    if one_each and len(parts) != rows:
        must = f"one mapping for all rows, or a list of one for each of the {rows} rows"
        raise bad_parameter(fitted.owner, "constraints", must, f"a list of {len(parts)}")
    found: list[Constraints] = []
    kinds: dict[str, int] = {}
    of = np.zeros(len(parts), dtype=np.int64)
    for i, part in enumerate(parts):
        if part is not None and (not isinstance(part, Mapping) or not set(part) <= set(CONSTRAINTS)):
            must = f"made of mappings with the keys {CONSTRAINTS}"
            raise bad_parameter(
                fitted.owner, "constraints", must, sorted(map(str, part)) if isinstance(part, Mapping) else part
            )
        joined = fitted.joined(**part) if part else fitted
        of[i] = kinds.setdefault(repr(joined.spelt()), len(kinds))
        if of[i] == len(found):
            found.append(joined)
    return found, of if one_each else np.zeros(rows, dtype=np.int64)


def _known(owner: str, coding: Coding, given: Sequence[Any], parameter: str) -> tuple[Any, ...]:
    """Values that the column has, or that are declared for it; any number for a numeric one. None is missing."""
    if coding.numeric:
        numbers = [_number(coding, math.nan, v) for v in given]
        if wrong := [v for v, number in zip(given, numbers) if number is None or math.isnan(number)]:
            must = f"made of {'dates' if coding.column.type == 'date' else 'numbers'} for column '{coding.name}'"
            raise bad_parameter(owner, parameter, must, wrong)
        return tuple(numbers)
    held = coding.values
    values = [None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in given]
    if strange := [v for v in values if v is not None and v not in held]:
        must = f"made of values that column '{coding.name}' has"
        way_out = "Correct them, or declare them in the column's domain."
        raise bad_parameter(owner, parameter, must, strange, way_out)
    return tuple(values)


def _ends(coding: Coding, bounds: tuple[Any, ...]) -> tuple[float, float] | None:
    """The two ends of a range, None for an open one; None where they are not in order, or no ends."""
    if len(bounds) != 2:
        return None
    low, high = (_number(coding, end, b) for end, b in zip((-math.inf, math.inf), bounds))
    return (low, high) if low is not None and high is not None and low <= high else None


def _number(coding: Coding, open_end: float, value: Any) -> float | None:
    """A given value as the column's numbers are: dates as days, and None for where no end is."""
    if value is None:
        return open_end
    if coding.column.type == "date" and not isinstance(value, (float, np.floating)):
        value = day_number(value)
    return float(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not np.isnan(value)


def _held(coding: Coding, steps: tuple[tuple[Any, Any], ...], allowed: tuple[Any, ...], x: Floats) -> Bools:
    """Which numbers may not be left at all, or not for the only one that is allowed."""
    low, high = allowed
    held = np.zeros(len(x), dtype=bool)
    for start, end in steps:
        everywhere = _is_any(coding, end) or (low == high and _code(coding, end) == low)
        held |= everywhere & (_is_any(coding, start) | (x == _code(coding, start)))
    return held


def _is_any(coding: Coding, value: Any) -> bool:
    """Whether an end of a forbidden step stands for every other value."""
    return isinstance(value, str) and value == ANY and (coding.numeric or ANY not in coding.values)


def _code(coding: Coding, value: Any) -> float:
    if coding.numeric:
        return math.nan if value == ANY else float(value)
    values = coding.values
    return float(values.index(value)) if value in values else -2.0  # no row ever holds this code
