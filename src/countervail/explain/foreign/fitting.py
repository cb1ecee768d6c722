"""Cells of another tool as the table would hold them, and what could not be made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats
from countervail.core.conform import plain
from countervail.core.encode import conform_rows
from countervail.core.errors import SchemaError, listed
from countervail.core.table import Table
from countervail.core.words.dates import read_days
from countervail.explain.foreign.decoding import known_values, one_hot_columns
from countervail.explain.foreign.scaled import check_scale
from countervail.explain.foreign.taken import OWNER

_NOISE = 1e-6  # of the numbers' size: what going to scaled ones and back, in single precision, may add to them
_WORDS = {
    "unknown": "{n} of '{name}' are none that it can have, or cannot be read: nothing is said there",
    "rounded": "{n} of '{name}' lie between those that it can have: taken as the nearest",
    "outside": "{n} of '{name}' lie outside its declared domain: taken as its nearer end",
}


@dataclass(eq=False, slots=True)
class Fitted:
    """Factuals and counterfactuals with the table's dtypes; `open` (row x column): cells that could not be read."""

    factuals: pd.DataFrame
    counterfactuals: pd.DataFrame
    open: Bools
    remarks: list[str] = field(default_factory=list)


def fit_cells(factuals: pd.DataFrame, counterfactuals: pd.DataFrame, query: Any, table: Table) -> Fitted:
    """Bring both to the table's columns, spelling and dtypes.

    `query` is the place of each counterfactual's factual. Columns that only the factuals have are the askers' own.
    """
    features = table.schema.features
    remarks = _check_columns(factuals, counterfactuals, table)
    lacking = [n for n in features if n not in counterfactuals.columns]
    if lacking:
        own = factuals.iloc[query][lacking].set_axis(counterfactuals.index)
        counterfactuals = pd.concat([counterfactuals, own], axis=1)
        remarks.append(
            f"The counterfactuals lack columns of the table, {listed(lacking)}: the askers' own values stand there, "
            f"and say nothing of anybody else."
        )
    both = pd.concat([factuals[features], counterfactuals[features]], ignore_index=True)
    fitted = _Columns(table, len(factuals))
    made = pd.DataFrame({n: fitted.column(both[n], n) for n in features})
    open_ = np.column_stack([fitted.open[n] for n in features])[len(factuals) :]
    open_[:, [features.index(n) for n in lacking]] = True
    asked, answered = made.iloc[: len(factuals)], made.iloc[len(factuals) :]
    return Fitted(
        conform_rows(asked, table, OWNER),
        conform_rows(answered, table, OWNER) if len(answered) else conform_rows(asked, table, OWNER).iloc[:0],
        open_,
        [*remarks, *fitted.said()],
    )


def _check_columns(factuals: pd.DataFrame, counterfactuals: pd.DataFrame, table: Table) -> list[str]:
    features, remarks = table.schema.features, []
    for what, frame in (("factuals", factuals), ("counterfactuals", counterfactuals)):
        names = [str(n) for n in frame.columns]
        if twice := sorted(n for n, count in Counter(names).items() if count > 1 and n in table.schema):
            raise SchemaError(f"The {what} given to {OWNER} have more than one column of the name {listed(twice)}.")
        lacking = [n for n in features if n not in names]
        hot = [n for n in lacking if one_hot_columns(names, n, known_values(table, n))]
        if hot:
            raise SchemaError(
                f"The {what} given to {OWNER} hold {listed(hot)} as one-hot columns. Give decode='one-hot' to join "
                f"them, or the inverse of what encoded them as decode=..."
            )
        if lacking and (what == "factuals" or len(lacking) == len(features)):
            raise SchemaError(
                f"The {what} given to {OWNER} lack these columns of the table: {listed(lacking)}. Those that the table "
                f"does not have: {table.schema.undeclared(names)} Give factuals=... with all columns, decode=... if "
                f"they are encoded, or a table of the columns that the tool was given."
            )
        extra = [n for n in names if n not in table.schema]
        if extra:
            remarks.append(f"Columns of the {what} that the table does not have were left out: {listed(extra)}.")
    return remarks


class _Columns:
    """Fits one column after the other, and remembers what it had to do."""

    def __init__(self, table: Table, asked: int) -> None:
        self.table, self.asked = table, asked
        self.open: dict[str, Bools] = {}
        self.done: dict[str, dict[str, Bools]] = {kind: {} for kind in _WORDS}

    def column(self, values: pd.Series, name: str) -> Any:
        """The column as the table would hold it; what is open is missing."""
        column = self.table.schema[name]
        if column.type == "date":
            values = read_days(values, column.order, name)
        made = self._numbers(values, name) if column.numeric else self._labels(values, name)
        gone = np.asarray(pd.isna(made), dtype=bool)
        meant = values.isna().to_numpy() & self.table.frame[name].isna().any()
        self.open[name] = gone & ~meant
        self._remember("unknown", name, self.open[name])
        if self.open[name].all():
            raise SchemaError(
                f"Nothing in column '{name}' of the rows given to {OWNER} can be read as what the table holds there. "
                f"Another column of this name, or encoded? Give its inverse as decode=..."
            )
        return made

    def said(self) -> list[str]:
        """What was done to the counterfactuals, and to the factuals, in words."""
        out = []
        for kind, words in _WORDS.items():
            for name, rows in self.done[kind].items():
                for what, part in (("factual", rows[: self.asked]), ("counterfactual", rows[self.asked :])):
                    if n := int(part.sum()):
                        out.append(f"{words.format(n=f'{n:,} {what} value(s)', name=name)}.")
        return out

    def _remember(self, kind: str, name: str, rows: Bools) -> None:
        if rows.any():
            self.done[kind][name] = rows

    def _numbers(self, values: pd.Series, name: str) -> Floats:
        column, held = self.table.schema[name], self.table.frame[name]
        plain_values = values.astype(object).map(lambda v: v.strip() if isinstance(v, str) else v)
        numbers = pd.to_numeric(plain_values, errors="coerce").to_numpy(dtype=float, na_value=np.nan, copy=True)
        numbers[~np.isfinite(numbers)] = np.nan
        known = np.unique(held.dropna().to_numpy(dtype=float))
        whole = pd.api.types.is_integer_dtype(held)
        near = np.rint(numbers) if whole else _nearest(numbers, known)
        close = np.abs(numbers - near) <= _NOISE * np.maximum(np.abs(near), np.ptp(known) if len(known) else 0.0)
        numbers = np.where(close, near, [float(f"{v:.12g}") for v in numbers])
        check_scale(numbers, self.asked, held, column)
        if whole:
            self._remember("rounded", name, ~close & ~np.isnan(numbers))
            numbers = np.rint(numbers)
        if column.domain is not None:
            low, high = column.domain[:2]
            self._remember("outside", name, (numbers < low) | (numbers > high))
            numbers = np.clip(numbers, low, high)
        return numbers

    def _labels(self, values: pd.Series, name: str) -> Any:
        known = known_values(self.table, name)
        spelt = {plain(v): v for v in known}
        if {type(v) for v in known} <= {bool}:
            spelt |= {"0": False, "1": True, "false": False, "true": True}
        if not all(pd.api.types.is_scalar(v) for v in values):
            raise SchemaError(f"Column '{name}' of the rows given to {OWNER} holds lists or other compound values.")
        read = {v: spelt.get(plain(v)) for v in pd.unique(values.astype(object).dropna())}
        if self.table.schema[name].type == "ordinal":
            near = {v: _nearest_level(v, known) for v, held in read.items() if held is None}
            self._remember("rounded", name, values.isin([v for v, held in near.items() if held is not None]).to_numpy())
            read |= near
        _check_codes(read, known, name)
        if self.table.schema[name].values is None:  # without a declaration, an asker may have a value of their own
            kind = type(known[0]) if known else str
            read = {v: v if held is None and isinstance(v, kind) else held for v, held in read.items()}
        return pd.Series([None if pd.isna(v) else read[v] for v in values], dtype=object)


def _nearest(numbers: Floats, known: Floats) -> Floats:
    """The nearest known number to each."""
    if not len(known):
        return numbers
    at = np.clip(np.searchsorted(known, numbers), 1, max(1, len(known) - 1))
    low, high = known[at - 1], known[np.minimum(at, len(known) - 1)]
    nearest: Floats = np.where(numbers - low <= high - numbers, low, high)
    return nearest


def _nearest_level(value: Any, levels: Sequence[Any]) -> Any:
    """The level nearest to a number within the levels: gradients do not stop at whole numbers."""
    number, *places = (pd.to_numeric(v, errors="coerce") for v in (value, *levels))
    if pd.isna(number) or pd.isna(places).any() or not min(places) - 0.5 <= number <= max(places) + 0.5:
        return None
    return levels[int(np.abs(np.array(places, dtype=float) - number).argmin())]


def _check_codes(read: dict[Any, Any], known: Sequence[Any], name: str) -> None:
    """Numbers where the table has texts are the codes of some encoder."""
    if any(v is not None for v in read.values()) or not read:
        return
    if all(isinstance(v, (int, float, np.number)) for v in read) and all(isinstance(v, str) for v in known):
        raise SchemaError(
            f"Column '{name}' of the rows given to {OWNER} holds numbers where the table holds labels: it is encoded. "
            f"Give its inverse as decode=..., such as decode={{'{name}': [the label of 0, the label of 1, ...]}}."
        )
