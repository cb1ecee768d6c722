"""Hierarchies of values, as ARX writes them: one line per value, from the value itself to the root."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countervail.core.conform import plain
from countervail.core.errors import DataNotFoundError, SchemaError

ROOT = "*"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A tree over the values of a column; every row runs from a value through its groups to the root.

    Parameters
    ----------
    rows : sequence of sequences of text
        `("Tech-support", "Technical", "*")` and so on; all of the same length.
    name : str
        The column it belongs to, for messages.

    Examples
    --------
    >>> h = Hierarchy((("a", "vowel"), ("b", "consonant"), ("c", "consonant")), "letter")
    >>> h.levels, h.below("b", 1)
    (3, ('b', 'c'))
    """

    rows: tuple[tuple[str, ...], ...]
    name: str = "column"

    def __post_init__(self) -> None:
        rows = tuple(dict.fromkeys(tuple(plain(v) for v in row) for row in self.rows))
        if not rows or not rows[0]:
            raise SchemaError(f"The hierarchy of '{self.name}' is empty: one line per value is needed.")
        if len({len(row) for row in rows}) > 1:
            raise SchemaError(f"The lines of the hierarchy of '{self.name}' must all have the same number of levels.")
        if holes := sum(not cell.strip() for row in rows for cell in row):
            raise SchemaError(f"The hierarchy of '{self.name}' has {holes} empty field(s): every level needs a name.")
        if len({row[-1] for row in rows}) > 1:
            rows = tuple((*row, ROOT) for row in rows)
        if len(rows[0]) == 1:
            rows = tuple((*row, ROOT) for row in rows)
        object.__setattr__(self, "rows", rows)
        for level in range(len(rows[0]) - 1):
            self._check_parents(level)

    def _check_parents(self, level: int) -> None:
        parents: dict[str, str] = {}
        for row in self.rows:
            if parents.setdefault(row[level], row[level + 1]) != row[level + 1]:
                what = "value" if level == 0 else f"group at level {level}"
                raise SchemaError(f"A {what} of the hierarchy of '{self.name}' has two different parents.")

    @classmethod
    def read(cls, path: str | Path, name: str | None = None) -> Self:
        """Read a CSV file without header: `value;level1;...;*`."""
        path = Path(path)
        if not path.is_file():
            raise DataNotFoundError(f"No hierarchy file at '{path}'. Give a CSV with lines value;level1;...;*")
        with path.open(encoding="utf-8-sig", newline="") as file:
            try:
                rows = [tuple(cell.strip() for cell in row) for row in csv.reader(file, delimiter=";") if row]
            except (csv.Error, UnicodeDecodeError):
                raise SchemaError(f"The hierarchy '{path.name}' is not a readable CSV (UTF-8, semicolons).") from None
        return cls(tuple(rows), name or path.stem)

    @property
    def levels(self) -> int:
        """How many levels there are, values and root included."""
        return len(self.rows[0])

    @property
    def values(self) -> tuple[str, ...]:
        """The values at the bottom, as text."""
        return tuple(row[0] for row in self.rows)

    def below(self, value: Any, level: int) -> tuple[str, ...]:
        """The values that share the group of `value` at a level."""
        line = next(row for row in self.rows if row[0] == plain(value))
        return tuple(row[0] for row in self.rows if row[level] == line[level])

    def group(self, value: Any, level: int) -> str:
        """The name of the group that holds `value` at a level."""
        return next(row[level] for row in self.rows if row[0] == plain(value))

    def ancestors(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """Value x level: a number for the node above each value; missing (None) is a child of the root."""
        line = {row[0]: row for row in self.rows}
        known = [v for v in values if v is not None]
        if unknown := sum(plain(v) not in line for v in known):
            raise SchemaError(
                f"The hierarchy of '{self.name}' misses {unknown} of the {len(known)} values of the column. "
                f"Add a line for each of them, or leave the column without a hierarchy."
            )
        out = np.zeros((len(values), self.levels), np.int32)
        out[:, 0] = np.arange(len(values))
        for level in range(1, self.levels - 1):
            number = {label: i for i, label in enumerate(sorted({line[plain(v)][level] for v in known}))}
            out[:, level] = [len(number) if v is None else number[line[plain(v)][level]] for v in values]
        return out


def read_hierarchies(given: Any, columns: Iterable[str], owner: str) -> dict[str, Hierarchy]:
    """Hierarchies by column, from a mapping to hierarchies or files, or from a folder with `<column>.csv` files."""
    wanted = list(columns)
    if given is None:
        return {}
    if isinstance(given, (str, Path)):
        folder = Path(given)
        if not folder.is_dir():
            raise DataNotFoundError(f"No folder '{folder}' with hierarchies (<column>.csv).")
        return {n: Hierarchy.read(folder / f"{n}.csv", n) for n in wanted if (folder / f"{n}.csv").is_file()}
    if not isinstance(given, Mapping):
        raise SchemaError(f"The 'hierarchies' of {owner} must map columns to hierarchies or files, or name a folder.")
    if unknown := [str(n) for n in given if n not in wanted]:
        raise SchemaError(f"The 'hierarchies' of {owner} name columns that it does not generalise: {unknown}.")
    return {n: h if isinstance(h, Hierarchy) else Hierarchy.read(h, n) for n, h in given.items()}
