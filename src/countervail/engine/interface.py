"""What an engine does for us: it counts equal rows, finds each row its label, and writes what may leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

COUNT: Final = "__n"  # how many rows a line stands for
LABEL: Final = "__label"  # which line of the labels a row is published with
CODE: Final = "__code"  # the code of a value
ROWS_PER_FILE: Final = 4_000_000

Work = Callable[[Any], Any]  # what is sent to where the rows are: it must survive being pickled


@dataclass(frozen=True, eq=False, slots=True)
class Labelling:
    """Who is published with which cells.

    `lookup` holds settled values of `keys`, each combination once, and the place of their label (`LABEL`), as an Arrow
    table or as something the engine itself reads by a name; rows that stand in none of its lines stay behind. `labels`
    holds the published cells, one line per label, no two alike and in an order of their content. `others` leave as they
    are, settled. `names` are all published columns in their order. `lines` are published beside the rows that are
    looked up: a label, the other columns and a count.
    """

    keys: tuple[str, ...]
    lookup: Any
    labels: Any
    others: tuple[str, ...]
    names: tuple[str, ...]
    lines: Any = None


class Relation(Protocol):
    """Rows in an engine. Values are settled before anything is done with them (see `settle`).

    Every answer is a function of the multiset of rows: neither their order, nor files, partitions, workers or threads
    are seen in it, but for the order of the lines of `grouped`, which means nothing.
    """

    @property
    def here(self) -> bool:
        """Whether the rows are in this process anyway, so that distinct ones may come out however many there are."""

    @property
    def kinds(self) -> Mapping[str, Any]:
        """The settled Arrow type of each column."""

    def count(self) -> int:
        """How many rows there are."""

    def grouped(self, columns: Sequence[str], *, limit: int | None = None) -> Any:
        """The distinct combinations of some columns and how often each occurs (`COUNT`), as an Arrow table.

        None where there are more than `limit` of them.
        """

    def expect(self, columns: Sequence[str]) -> None:
        """Say that distinct rows of these columns will be asked for more than once, in whole and in part.

        An engine for which reading is what costs most may keep them, until it has written.
        """

    def recoded(self, dictionaries: Mapping[str, Any], *, limit: int | None = None) -> Any:
        """The distinct combinations of codes of some columns and how often each occurs (`COUNT`), as whole numbers.

        A dictionary holds the values of a column, under its name, and the code of each (`CODE`); several values may
        share one. None where there are more than `limit` combinations.
        """

    def extremes(self, column: str) -> tuple[Any, Any]:
        """The least and the greatest value; None where all are missing."""

    def quantile(self, column: str, rank: int) -> Any:
        """The value that has exactly `rank` of the values that are there before it, in ascending order."""

    def most_equal(self, column: str) -> int:
        """How often the most frequent value occurs; missing ones are equal to nobody's. 1 where all are missing."""

    def alone(self, column: str) -> tuple[int, int]:
        """How many values occur once, and how many rows have a value."""

    def labelled(self, labelling: Labelling, *, limit: int | None = None) -> Any:
        """Of the rows that are in the lookup: label, other columns and how often both occur, as an Arrow table.

        None where there are more than `limit` of them.
        """

    def write(self, labelling: Labelling, folder: Path, *, key: bytes, rows_per_file: int = ROWS_PER_FILE) -> None:
        """Write the published rows as Parquet files into a folder that is there and empty.

        Their order is that of a hash of the published row and `key`, and then of the published row itself: a function
        of what is published and of the key.
        """

    def rows(self, columns: Sequence[str], *, limit: int | None = None) -> Iterator[Any]:
        """The rows themselves, or some of them, as Arrow batches of settled values; their order means nothing."""

    def worked_on(
        self, columns: Sequence[str], work: Work, fields: Any, folder: Path, *, jobs: int | None = None
    ) -> None:
        """Write what `work` makes of batches of rows as Parquet files with these fields, where the rows are.

        A batch may be worked on more than once; what one time made of it is written.
        """

    def spread(self, work: Work, parts: Sequence[bytes], *, jobs: int | None = None) -> list[bytes]:
        """What `work` makes of each part, in their order; a part may be worked on more than once."""

    def reopened(self, folder: Path) -> Relation:
        """The Parquet files of a folder, in the same engine."""

    def close(self) -> None:
        """Give back what the engine holds."""
