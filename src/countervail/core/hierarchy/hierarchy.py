"""Hierarchies of values, as ARX writes them: one line per value, from the value itself to the root."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countervail.core.conform import plain
from countervail.core.errors import DataNotFoundError, SchemaError, bad_parameter
from countervail.core.files.frames import write_text
from countervail.core.hierarchy.rows import (
    ROOT,
    date_rows,
    interval_rows,
    nested_rows,
    order_rows,
    prefix_rows,
    quantile_rows,
)


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
        _check_shape(rows, self.name)
        if len({row[-1] for row in rows}) > 1:
            rows = tuple((*row, ROOT) for row in rows)
        if len(rows[0]) == 1:
            rows = tuple((*row, ROOT) for row in rows)
        rows = nested_rows(rows)
        object.__setattr__(self, "rows", rows)
        for level in range(len(rows[0]) - 1):
            _check_parents(rows, level, self.name)
        _check_cycles(rows, self.name)

    @classmethod
    def intervals(
        cls, values: Iterable[Any], *, widths: Sequence[float] = (5, 10, 20), start: float = 0, name: str = "column"
    ) -> Self:
        """Numbers under intervals of these widths, counted from `start`; the values only say which lines there are.

        Examples
        --------
        >>> Hierarchy.intervals(range(18, 21), widths=(5, 10)).rows
        (('18', '15-19', '10-19', '*'), ('19', '15-19', '10-19', '*'), ('20', '20-24', '20-29', '*'))
        """
        return cls(interval_rows(values, widths, start), name)

    @classmethod
    def quantiles(cls, values: Iterable[Any], *, parts: int = 8, name: str = "column") -> Self:
        """Numbers under groups of about equally many *rows*, joined by two from level to level.

        The groups are read off the rows given. From the table that is to be protected they are a function of its
        quasi-identifiers, and k holds as before; from other people's rows, the ends of the groups publish theirs.

        Examples
        --------
        >>> Hierarchy.quantiles([1, 1, 2, 3, 4, 5, 7, 9], parts=4).rows[1]
        ('2', '2-3', '1-3', '*')
        """
        return cls(quantile_rows(values, parts), name)

    @classmethod
    def dates(
        cls, values: Iterable[Any], *, periods: Sequence[str] = ("month", "year", "decade"), name: str = "column"
    ) -> Self:
        """Days under months, quarters, years, decades and centuries.

        Examples
        --------
        >>> Hierarchy.dates(["1984-05-31"]).rows
        (('1984-05-31', '1984-05', '1984', '1980s', '*'),)
        """
        return cls(date_rows(values, periods), name)

    @classmethod
    def prefixes(cls, values: Iterable[Any], *, lengths: Sequence[int] | None = None, name: str = "column") -> Self:
        """Codes under their first characters, as postcodes are shortened; default: one character less per level.

        Examples
        --------
        >>> Hierarchy.prefixes(["9021", "9000"], lengths=(2,)).rows
        (('9000', '90**', '*'), ('9021', '90**', '*'))
        """
        return cls(prefix_rows(values, lengths), name)

    @classmethod
    def order(cls, levels: Sequence[Any], *, size: int = 2, name: str = "column") -> Self:
        """Levels from low to high under groups of `size` neighbours, then of `size` times as many, and so on.

        Examples
        --------
        >>> Hierarchy.order(["none", "low", "mid", "high"]).rows[1]
        ('low', 'none to low', '*')
        """
        return cls(order_rows(levels, size), name)

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

    def to_csv(self) -> str:
        """The lines as `value;level1;...;*`, as :meth:`read` takes them."""
        text = StringIO()
        csv.writer(text, delimiter=";", lineterminator="\n").writerows(self.rows)
        return text.getvalue()

    def write(self, path: str | Path) -> None:
        """Write the lines to a CSV file, whole or not at all."""
        write_text(self.to_csv(), path)

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
        name = self._group(value, level, "below")
        return tuple(row[0] for row in self.rows if row[level] == name)

    def group(self, value: Any, level: int) -> str:
        """The name of the group that holds `value` at a level."""
        return self._group(value, level, "group")

    def _group(self, value: Any, level: int, method: str) -> str:
        if not -self.levels <= level < self.levels:
            must = f"one of the levels 0 (the values) to {self.levels - 1} (the root)"
            raise bad_parameter(f"Hierarchy.{method}", "level", must, level)
        line = next((row for row in self.rows if row[0] == plain(value)), None)
        if line is None:
            raise SchemaError(
                f"The 'value' parameter of Hierarchy.{method} must be one of the {len(self.rows)} values of the "
                f"hierarchy of '{self.name}' (see .values). Correct it, or add a line for it."
            )
        return line[level]

    def ancestors(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """Value x level: a number for the node above each value; missing (None) is a child of the root."""
        line = {row[0]: row for row in self.rows}
        known = [v for v in values if v is not None]
        self._check_known(known, line)
        out = np.zeros((len(values), self.levels), np.int32)
        out[:, 0] = np.arange(len(values))
        for level in range(1, self.levels - 1):
            number = {label: i for i, label in enumerate(sorted({line[plain(v)][level] for v in known}))}
            out[:, level] = [len(number) if v is None else number[line[plain(v)][level]] for v in values]
        return out

    def nodes(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """The same where values may be groups themselves, as generalised values are: -1 on the levels below them."""
        place = {
            label: (row, level) for level in reversed(range(self.levels)) for row in self.rows for label in [row[level]]
        }
        known = [v for v in values if v is not None]
        self._check_known(known, place)
        out = np.full((len(values), self.levels), -1, np.int32)
        out[:, -1] = 0
        for level in range(self.levels - 1):
            number = {label: i for i, label in enumerate(sorted({row[level] for row in self.rows}))}
            for i, v in enumerate(values):
                if v is None:
                    out[i, level] = len(number)
                elif place[plain(v)][1] <= level:
                    out[i, level] = number[place[plain(v)][0][level]]
        return out

    def _check_known(self, known: Sequence[Any], lines: Mapping[str, Any]) -> None:
        if unknown := sum(plain(v) not in lines for v in known):
            raise SchemaError(
                f"The hierarchy of '{self.name}' misses {unknown} of the {len(known)} values of the column. "
                f"Add a line for each of them, or leave the column without a hierarchy."
            )


def _check_shape(rows: Sequence[tuple[str, ...]], name: str) -> None:
    """Lines of one length without empty fields."""
    most = Counter(len(row) for row in rows).most_common(1)[0][0]
    if odd := next((row for row in rows if len(row) != most), None):
        value = _told(odd[0], rows)
        raise SchemaError(
            f"The lines of the hierarchy of '{name}' must all have the same number of levels. That of {value} has "
            f"{len(odd)}, most have {most}."
        )
    for row in rows:
        for level, cell in enumerate(row):
            if not cell.strip():
                below = f"below {_told(row[1], rows)}" if len(row) > 1 else "in a line"
                what = f"above {_told(row[level - 1], rows)}" if level else below
                raise SchemaError(
                    f"The hierarchy of '{name}' has a hole: no name at level {level} {what}. Every level needs one; "
                    f"repeat the name below it where nothing changes."
                )


def _check_parents(rows: Sequence[tuple[str, ...]], level: int, name: str) -> None:
    parents: dict[str, str] = {}
    for row in rows:
        if parents.setdefault(row[level], row[level + 1]) != row[level + 1]:
            what = "value" if level == 0 else f"group at level {level}"
            raise SchemaError(
                f"A {what} of the hierarchy of '{name}' has two different parents: {_told(row[level], rows)} lies "
                f"under {_told(parents[row[level]], rows)} and {_told(row[level + 1], rows)}."
            )


def _told(label: str, rows: Sequence[tuple[str, ...]]) -> str:
    """A group by its name, and a value, which may be one person's, by its line."""
    line = next((i for i, row in enumerate(rows, 1) if row[0] == label), None)
    return f"'{label}'" if line is None else f"the value of line {line}"


def _check_cycles(rows: Sequence[tuple[str, ...]], name: str) -> None:
    """A name may recur along a line (`Other` under `Other`), but no two may lie under each other."""
    above: dict[str, set[str]] = {}
    for row in rows:
        for low, high in pairwise(row):
            if low != high:
                above.setdefault(low, set()).add(high)
    done: set[str] = set()
    for origin in above:
        path: list[str] = []
        stack = [(origin, False)]
        while stack:
            label, leaving = stack.pop()
            if leaving:
                path.pop()
                done.add(label)
            elif label in path:
                ring = " under ".join(_told(x, rows) for x in [*path[path.index(label) :], label])
                raise SchemaError(f"The hierarchy of '{name}' has a cycle: {ring}. Give one of them another name.")
            elif label not in done:
                path.append(label)
                stack.append((label, True))
                stack.extend((parent, False) for parent in sorted(above.get(label, ())))


def read_hierarchies(given: Any, columns: Iterable[str], owner: str) -> dict[str, Hierarchy]:
    """Hierarchies by column, from a mapping to hierarchies or files, or from a folder with `<column>.csv` files."""
    wanted = list(columns)
    if given is None:
        return {}
    if isinstance(given, (str, Path)):
        folder = Path(given)
        if not folder.is_dir():
            raise DataNotFoundError(f"No folder '{folder}' with hierarchies (<column>.csv).")
        there = {f.name for f in folder.iterdir() if f.is_file()}
        found = [n for n in wanted if f"{n}.csv" in there]
        if wanted and not found:
            raise DataNotFoundError(
                f"The folder '{folder}' has no hierarchy of a column that {owner} generalises. It looks for "
                f"{', '.join(f'{n}.csv' for n in wanted)}; spelling counts."
            )
        return {n: Hierarchy.read(folder / f"{n}.csv", n) for n in found}
    if not isinstance(given, Mapping):
        raise SchemaError(f"The 'hierarchies' of {owner} must map columns to hierarchies or files, or name a folder.")
    if unknown := [str(n) for n in given if n not in wanted]:
        raise SchemaError(f"The 'hierarchies' of {owner} name columns that it does not generalise: {unknown}.")
    return {n: h if isinstance(h, Hierarchy) else Hierarchy.read(h, n) for n, h in given.items()}
