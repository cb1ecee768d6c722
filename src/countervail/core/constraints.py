"""What a counterfactual may not ask of a person, as masks over training rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Matrix
from countervail.core.encode import Coding, Encoder
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.table import Table


@dataclass(frozen=True, eq=False, slots=True)
class Constraints:
    """Columns that stay, values that are allowed, directions, and transitions that are not."""

    immutable: tuple[int, ...]
    allowed: Mapping[int, tuple[float, float] | tuple[Any, ...]]
    direction: Mapping[int, int]
    forbidden: Mapping[int, tuple[tuple[Any, Any], ...]]

    @classmethod
    def of(
        cls,
        table: Table,
        owner: str,
        immutable: Iterable[str],
        ranges: Mapping[str, Any] | None,
        monotone: Mapping[str, str] | None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None,
    ) -> Self:
        """Check the parameters against the table's columns."""
        at = {n: j for j, n in enumerate(table.schema.features)}

        def position(name: str, parameter: str) -> int:
            if name not in at:
                raise bad_parameter(owner, parameter, f"made of feature columns {list(at)}", name)
            return at[name]

        if isinstance(immutable, str):
            raise bad_parameter(owner, "immutable", "a list of column names", immutable, f"Write ['{immutable}'].")
        allowed: dict[int, tuple[Any, ...]] = {}
        for name, values in (ranges or {}).items():
            allowed[position(name, "ranges")] = _range(name, values, table, owner)
        direction: dict[int, int] = {}
        for name, way in (monotone or {}).items():
            if way not in ("up", "down"):
                raise bad_parameter(owner, "monotone", "'up' or 'down' for each column", way)
            j = position(name, "monotone")
            if table.schema[name].type == "categorical":
                raise SchemaError(f"{owner}: monotone column '{name}' is categorical and has no order. Use forbidden=.")
            direction[j] = 1 if way == "up" else -1
        pairs: dict[int, tuple[tuple[Any, Any], ...]] = {}
        for name, moves in (forbidden or {}).items():
            j = position(name, "forbidden")
            pairs[j] = _moves(name, moves, table, owner)
        return cls(tuple(position(n, "immutable") for n in immutable), allowed, direction, pairs)

    def __bool__(self) -> bool:
        return bool(self.immutable or self.allowed or self.direction or self.forbidden)

    def admissible(self, encoder: Encoder, queries: Matrix, rows: Matrix) -> Bools:
        """Query x row: which rows each query may be sent to."""
        ok = np.ones((len(queries), len(rows)), dtype=bool)
        ok &= np.asarray(self.in_range(encoder, rows).all(axis=1))[None, :]
        for j in self.immutable:
            ok &= queries[:, j, None] == rows[None, :, j]
        for j, sign in self.direction.items():
            coding = encoder.codings[j]
            ordered = sign * (rows[None, :, j] - queries[:, j, None]) >= 0
            if coding.missing >= 0:  # a missing level has no place in the order: it may only stay
                hole = (rows[None, :, j] == coding.missing) | (queries[:, j, None] == coding.missing)
                ordered = np.where(hole, rows[None, :, j] == queries[:, j, None], ordered)
            ok &= ordered
        for j, moves in self.forbidden.items():
            for start, end in moves:
                from_, to = _code(encoder.codings[j], start), _code(encoder.codings[j], end)
                ok &= ~((queries[:, j, None] == from_) & (rows[None, :, j] == to))
        return ok

    def in_range(self, encoder: Encoder, rows: Matrix) -> Bools:
        """Row x column: which values lie in their allowed range."""
        ok = np.ones(rows.shape, dtype=bool)
        for j, values in self.allowed.items():
            coding = encoder.codings[j]
            if coding.numeric:
                ok[:, j] = (rows[:, j] >= values[0]) & (rows[:, j] <= values[1])
            else:
                ok[:, j] = np.isin(rows[:, j], [_code(coding, v) for v in values])
        return ok


def _range(name: str, values: Any, table: Table, owner: str) -> tuple[Any, ...]:
    numeric = table.schema[name].type == "numeric"
    must = f"(low, high) with low <= high for numeric column '{name}'" if numeric else f"a list of values for '{name}'"
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
        raise bad_parameter(owner, "ranges", must, values)
    bounds = tuple(values)
    if not numeric:
        return _known(name, bounds, table, owner, "ranges")
    if len(bounds) != 2 or not all(map(_is_number, bounds)) or not bounds[0] <= bounds[1]:
        raise bad_parameter(owner, "ranges", must, bounds)
    return bounds


def _moves(name: str, moves: Any, table: Table, owner: str) -> tuple[tuple[Any, Any], ...]:
    must = f"a list of (from, to) pairs for column '{name}'"
    if isinstance(moves, (str, Mapping)) or not isinstance(moves, Iterable):
        raise bad_parameter(owner, "forbidden", must, moves)
    pairs = tuple(moves)
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise bad_parameter(owner, "forbidden", must, pairs)
    ends = _known(name, [v for pair in pairs for v in pair], table, owner, "forbidden")
    return tuple(zip(ends[::2], ends[1::2]))


def _known(name: str, given: Sequence[Any], table: Table, owner: str, parameter: str) -> tuple[Any, ...]:
    """Values that the column has, or that are declared for it; any number for a numeric one. None is missing."""
    coding = Encoder.fit(table, [name]).codings[0]
    if coding.numeric:
        if wrong := [v for v in given if not _is_number(v)]:
            raise bad_parameter(owner, parameter, f"made of numbers for numeric column '{name}'", wrong)
        return tuple(given)
    held = coding.values
    values = [None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in given]
    if strange := [v for v in values if v is not None and v not in held]:
        must = f"made of values that column '{name}' has"
        raise bad_parameter(owner, parameter, must, strange, "Correct them, or declare them in the column's domain.")
    return tuple(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not np.isnan(value)


def _code(coding: Coding, value: Any) -> float:
    if coding.numeric:
        return float(value)
    values = coding.values
    return float(values.index(value)) if value in values else -2.0  # no row ever holds this code
