"""What a reproduction is made of, as plain data: papers, their tables and figures, and where our figures come from."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Size = Literal["tiny", "quick", "full"]
SIZES: tuple[Size, ...] = ("tiny", "quick", "full")


@dataclass(frozen=True, slots=True)
class Piece:
    """A unit of work: a function of `work` by its name, and its settings. It is kept when it is finished."""

    work: str
    settings: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, work: str, **settings: Any) -> Piece:
        """From keywords."""
        return cls(work, tuple(sorted(settings.items())))

    @property
    def sets(self) -> tuple[str, ...]:
        """The data sets whose rows it reads."""
        return tuple(str(v) for n, v in self.settings if n == "set")

    @property
    def told(self) -> str:
        """The piece for a line of progress."""
        return f"{self.work}({', '.join(f'{n}={v}' for n, v in self.settings)})"


@dataclass(frozen=True, slots=True)
class Ours:
    """Where a figure of ours is found: in one piece, or in several that are put together."""

    pieces: tuple[Piece, ...]
    key: str
    how: str = "one"


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure as printed (None: the paper shows it without a number), and ours, by column; the first is compared."""

    row: str
    figure: str
    printed: str | None
    ours: Mapping[str, Ours]
    x: float | None = None


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table or a figure of a paper.

    `entries` gives its figures at a size. `reasons` says why a figure differs: the first whose key stands in the row
    and figure's names. `why_not` says why there is nothing to compute.
    """

    id: str
    title: str
    entries: Callable[[Size], Sequence[Beside]] | None = None
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None
    why_not: str = ""

    @property
    def drawn(self) -> bool:
        """Whether it is a figure."""
        return "fig" in self.id

    @property
    def name(self) -> str:
        """As the paper calls it."""
        kind, _, number = self.id.rpartition("fig")
        if self.drawn:
            return f"{kind.rstrip('-').capitalize()}{' ' if kind else ''}Figure {number}".replace(
                "Preprint ", "Preprint's "
            )
        return f"Table {self.id}" if self.id[:1].isdigit() else self.id.replace("-", " ").capitalize()


@dataclass(frozen=True, slots=True)
class Publication:
    """A paper and what it shows."""

    id: str
    title: str
    authors: str
    also: tuple[str, ...]
    exhibits: tuple[Exhibit, ...]

    def exhibit(self, wanted: str) -> Exhibit | None:
        """A table or figure by its name: 6, table6, fig4, figure 4."""
        name = wanted.lower().replace(" ", "").replace("figure", "fig").removeprefix("table").replace("fig.", "fig")
        return next((e for e in self.exhibits if e.id == name), None)


@cache
def printed(paper: str) -> Mapping[str, Mapping[tuple[str, str], str]]:
    """The figures of a paper as printed: by table, then by row and figure."""
    text = (files("countervail.study.reproduce") / "reported" / f"{paper}.csv").read_text(encoding="utf-8")
    out: dict[str, dict[tuple[str, str], str]] = {}
    for exhibit, row, figure, value in list(csv.reader(text.splitlines()))[1:]:
        out.setdefault(exhibit, {})[row, figure] = value
    return out
