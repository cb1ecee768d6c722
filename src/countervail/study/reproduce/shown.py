"""Reproductions as text: tables for the terminal and for pages, one line per row of the paper and column of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from countervail.study.reproduce.result import Line, Reproduction, counted
from countervail.study.reproduce.together import Figure

REPORTED = "reported"


def grid(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """The header, and for each row: the printed figures first, then ours, column by column."""
    figures = list(dict.fromkeys(line.figure for line in lines))
    columns = list(dict.fromkeys(c for line in lines for c in line.ours))
    rows: dict[str, dict[str, Line]] = {}
    for line in lines:
        rows.setdefault(line.row, {})[line.figure] = line
    body: list[list[str]] = []
    for row, found in rows.items():
        if any(line.printed is not None for line in found.values()):
            body.append([row, REPORTED, *((found[f].printed or "") if f in found else "" for f in figures)])
        for i, column in enumerate(columns):
            cells = [_cell(found.get(f), column, first=i == 0) for f in figures]
            if any(cells):
                body.append([row, column, *cells])
    return ["", "", *figures], body


def _cell(line: Line | None, column: str, *, first: bool) -> str:
    if line is None or column not in line.ours:
        return ""
    mark = " ≠" if first and line.verdict == "differs" else ""
    return told(line.ours[column]) + mark


def told(figure: Figure) -> str:
    """A figure with its interval, where it has one."""
    if "text" in figure:
        return str(figure["text"])
    value, low, high = figure["value"], figure["low"], figure["high"]
    if value is None:
        return "-"
    if low is None or high is None or low == high:
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]"


def number(value: float) -> str:
    """A number in as many digits as say something.

    Examples
    --------
    >>> [number(v) for v in (0.99998, 1.22, 0.04567, 27.04, 1234.5, 3.0)]
    ['1', '1.22', '0.0457', '27.0', '1,234', '3']
    """
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.3f}".rstrip("0").rstrip(".")


def reasons(lines: Iterable[Line]) -> list[str]:
    """What differs, gathered by its reason."""
    by: dict[str, list[str]] = {}
    for line in lines:
        if line.verdict == "differs":
            by.setdefault(line.reason, []).append(f"{line.row}: {line.figure}")
    return [f"{_few(names)}: {reason}" for reason, names in by.items()]


def _few(names: Sequence[str]) -> str:
    return "; ".join(names[:6]) + (f"; and {len(names) - 6} more" if len(names) > 6 else "")


def as_text(found: Reproduction) -> str:
    """All of it for a terminal."""
    header, body = grid(found.lines)
    wide = [max(len(r[i]) for r in [header, *body]) for i in range(len(header))]
    table = ["  ".join(cell.ljust(w) for cell, w in zip(r, wide)).rstrip() for r in [header, *body]]
    parts = [f"{found.name}: {found.title} ({found.size})", "", *table, "", f"{counted(found.lines).capitalize()}."]
    parts += [f"≠ {r}" for r in reasons(found.lines)]
    parts += [f"Note: {n}" for n in found.notes]
    return "\n".join(parts)
