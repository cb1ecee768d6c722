"""Distinct rows that workers keep between two readings, where that is much less than reading the rows again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from countervail.engine.interface import COUNT

_LOOKED_AT: Final = 20_000  # rows that tell whether equal ones are common
_EQUAL: Final = (
    0.01  # share of them whose equal is among them already: then a million rows have far fewer distinct ones
)


class KeptLines:
    """Distinct rows of some columns with their counts, made when they are first asked for."""

    def __init__(self, dialect: Any, query: str, columns: Sequence[str]) -> None:
        self._dialect, self._query, self.columns = dialect, query, frozenset(columns)
        self._name: str | None = None

    @property
    def name(self) -> str:
        """What queries call them."""
        if self._name is None:
            self._name = self._dialect.keep(self._query)
        return self._name

    def counted(self, columns: Sequence[str]) -> str:
        """The query for distinct combinations of some of the columns, and their counts."""
        told = ", ".join(self._dialect.quote(n) for n in columns)
        return f"SELECT {told}, sum({COUNT}) AS {COUNT} FROM {self.name} GROUP BY {told}"

    def drop(self) -> None:
        """Give them back."""
        if self._name is not None:
            self._dialect.drop(self._name)
        self._name = None


def worth_keeping(sample: Any) -> bool:
    """Whether rows like these are often equal; whatever is said, results are the same."""
    distinct = sample.group_by(sample.column_names, use_threads=False).aggregate([])
    return bool(sample.num_rows == _LOOKED_AT and distinct.num_rows < (1 - _EQUAL) * sample.num_rows)


def sampled(rows: str) -> str:
    """The query for the rows that are looked at."""
    return f"{rows} LIMIT {_LOOKED_AT}"
