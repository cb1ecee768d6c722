"""What a reproduction found: each figure of the paper beside ours, and a word where they differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pandas as pd

from countervail.core.errors import SchemaError
from countervail.core.files.json_data import need, whole_json
from countervail.core.stats import plain_json
from countervail.study.reproduce.together import HOW, Figure, Found
from countervail.study.reproduce.values import Beside, Exhibit, Piece

FORMAT = 1
UNKNOWN = "no reason is known"
NOBODY = "ours answered nobody here, so that there is no figure to compare"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: as printed, ours by column, and whether the first of ours agrees."""

    row: str
    figure: str
    printed: str | None
    ours: Mapping[str, Figure]
    verdict: str
    reason: str = ""
    x: float | None = None


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A table or a figure of a paper, reproduced."""

    paper: str
    id: str
    name: str
    title: str
    size: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    cpu_seconds: float
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, paper: str, exhibit: Exhibit, size: str, found: Mapping[Piece, Found], about: Mapping[str, Any]
    ) -> Self:
        """From what the pieces found."""
        entries = list(exhibit.entries(size) if exhibit.entries is not None else ())  # type: ignore[arg-type]
        used = {p for e in entries for o in e.ours.values() for p in o.pieces}
        lines = tuple(_line(e, found, exhibit.reasons) for e in entries)
        notes = (*exhibit.notes, *([exhibit.sizes[size]] if size in exhibit.sizes else []))
        spent = sum(float(found[p].get("cpu_seconds", 0.0)) for p in used)
        return cls(paper, exhibit.id, exhibit.name, exhibit.title, size, lines, notes, spent, about)

    def differing(self) -> tuple[Line, ...]:
        """The lines whose figure is not the printed one."""
        return tuple(line for line in self.lines if line.verdict == "differs")

    def to_frame(self) -> pd.DataFrame:
        """One row per figure and column of ours."""
        rows = [
            {
                "row": line.row,
                "figure": line.figure,
                "reported": line.printed,
                "column": column,
                "ours": f.get("text", f.get("value")),
                "low": f.get("low"),
                "high": f.get("high"),
                "n": f.get("n"),
                "verdict": line.verdict if i == 0 else "",
                "reason": line.reason if i == 0 else "",
            }
            for line in self.lines
            for i, (column, f) in enumerate(line.ours.items())
        ]
        return pd.DataFrame(rows)

    def to_text(self) -> str:
        """The figures as a table for a terminal, and the reasons below."""
        from countervail.study.reproduce.shown import as_text

        return as_text(self)

    def plot(self) -> str:
        """The printed figures and ours as an SVG picture."""
        from countervail.study.reproduce.picture import drawn

        return drawn(self)

    def to_dict(self) -> dict[str, Any]:
        """The reproduction as plain JSON data."""
        return {"format": FORMAT, **plain_json(self)}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; a record of another form is refused."""
        with whole_json("data", "Reproduction.from_dict", "Reproduction.to_dict()"):
            if data["format"] != FORMAT:
                raise SchemaError(
                    f"This record has the form {data['format']!s:.20}, and this version reads {FORMAT} alone. "
                    f"Record it anew: countervail reproduce ... --record."
                )
            lines = tuple(Line(**line) for line in data["lines"])
            need(all(isinstance(line.ours, dict) and line.ours for line in lines))
            rest = {n: data[n] for n in ("paper", "id", "name", "title", "size", "cpu_seconds", "about")}
            need(isinstance(data["about"], dict) and isinstance(data["cpu_seconds"], (int, float)))
            return cls(lines=lines, notes=tuple(data["notes"]), **rest)


def _line(entry: Beside, found: Mapping[Piece, Found], reasons: Mapping[str, str]) -> Line:
    ours = {c: HOW[o.how]([found[p] for p in o.pieces], o.key) for c, o in entry.ours.items()}
    line = Line(entry.row, entry.figure, entry.printed, ours, verdict(entry.printed, next(iter(ours.values()))))
    return replace(line, reason=why(line, reasons), x=entry.x)


def why(line: Line, reasons: Mapping[str, str]) -> str:
    """Why a figure differs: the first reason whose key stands in the names of its row and figure."""
    if line.verdict != "differs":
        return ""
    first = next(iter(line.ours.values()))
    if "text" not in first and first["value"] is None:
        return NOBODY
    names = f"{line.row} {line.figure}"
    return next((r for k, r in reasons.items() if k in names), UNKNOWN)


def verdict(printed: str | None, ours: Figure) -> str:
    """Whether a figure is the printed one: as a text, or within the interval and the rounding of the print."""
    if printed is None:
        return "ours alone"
    if "text" in ours:
        return "equal" if ours["text"] == printed else "differs"
    value = ours["value"]
    if value is None:
        return "differs"
    wanted, step = float(printed), rounding(printed)
    low = value if ours["low"] is None or ours["low"] > value else ours["low"]
    high = value if ours["high"] is None or ours["high"] < value else ours["high"]
    if abs(value - wanted) <= step:
        return "equal"
    open_ended = ours["low"] is None and ours["high"] is None and ours["n"] == 1
    return "within" if open_ended or low - step <= wanted <= high + step else "differs"


def rounding(printed: str) -> float:
    """Half a unit of the last printed digit.

    Examples
    --------
    >>> [round(rounding(printed), 9) for printed in ("0.55", "12", "9.6e-05")]
    [0.005, 0.5, 5e-07]
    """
    digits, _, power = printed.lower().partition("e")
    places = len(digits.partition(".")[2])
    return math.pow(10, int(power or 0) - places) / 2 * (1 + 1e-12)


def counted(lines: Sequence[Line]) -> str:
    """How many lines agree, in words."""
    n = {w: sum(line.verdict == w for line in lines) for w in ("equal", "within", "differs", "ours alone")}
    parts = [
        (n["equal"], "as printed"),
        (n["within"], "within the interval"),
        (n["differs"], "different"),
        (n["ours alone"], "without a printed number"),
    ]
    return ", ".join(f"{count} {words}" for count, words in parts if count) or "nothing to compare"
