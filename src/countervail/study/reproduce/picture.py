"""Reproductions as pictures: printed figures beside ours, a panel per figure, lines where there is an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from countervail.core.files.svg import ACCENT, INK, PALETTE, SECOND, to_svg
from countervail.study.reproduce.result import Line, Reproduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS, _ROWS = 6, 40
_MORE = (*PALETTE, "#a23b4a", "#3b6fa2", "#8a8a3b", "#5d5d5d")


def drawn(found: Reproduction) -> str:
    """The picture: what has a place on an axis as lines, the rest as points."""
    from matplotlib.figure import Figure

    numeric = [line for line in found.lines if _number(line) is not None]
    if not numeric:
        return _words(found)
    over = any(line.x is not None for line in numeric)
    panels: dict[str, list[Line]] = {}
    for line in numeric:
        if line.x is not None or not over:
            panels.setdefault(_panel(line, over=over), []).append(line)
    figures = list(panels)[:_PANELS]
    rows = max(len({line.row for line in panels[f]}) for f in figures)
    wide = min(len(figures), 2 if over else 3)
    deep = -(-len(figures) // wide)
    height = 2.8 if over else 0.8 + 0.24 * min(rows, _ROWS)
    sheet = Figure(figsize=(4.6 * wide, height * deep), layout="constrained")
    for place, name in enumerate(figures):
        axes = sheet.add_subplot(deep, wide, place + 1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=7)
        (_lines if over else _points)(axes, panels[name])
        axes.set_title(_safe(name), fontsize=9)
    handles: dict[str, Any] = {}
    for axes in sheet.axes:
        handles |= {label: h for h, label in zip(*axes.get_legend_handles_labels())}
    sheet.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    return to_svg(sheet, f"{found.name}: {found.title}")


def _panel(line: Line, *, over: bool) -> str:
    """The title of a line's panel: its figure, and which parameter grows, where series differ in that."""
    parameter = line.row.partition("=")[0] if over and "=" in line.row.partition(",")[0] else ""
    return f"{line.figure}, by {parameter}" if parameter else line.figure


def _points(axes: Axes, lines: list[Line]) -> None:
    """One row each: the printed figure as a ring, ours as points with their intervals."""
    rows = list(dict.fromkeys(line.row for line in lines))[:_ROWS]
    columns = list(dict.fromkeys(c for line in lines for c in line.ours))
    step = 0.7 / max(len(columns), 1)
    for line in lines:
        if line.row not in rows:
            continue
        place = rows.index(line.row)
        if line.printed is not None and (at := _float(line.printed)) is not None:
            axes.plot(at, place, "o", color=SECOND, markerfacecolor="none", markersize=7, label="reported")
        for i, column in enumerate(columns):
            f = line.ours.get(column)
            if f is None or f.get("value") is None:
                continue
            colour = ACCENT if i == 0 else _MORE[(i + 1) % len(_MORE)]
            y = place + (i - (len(columns) - 1) / 2) * step
            axes.plot(f["value"], y, ".", color=colour, label=column)
            if f["low"] is not None and f["high"] is not None:
                axes.plot([f["low"], f["high"]], [y, y], color=colour, linewidth=1)
    axes.set_yticks(range(len(rows)), [_safe(r) for r in rows])
    axes.invert_yaxis()


def _lines(axes: Axes, lines: list[Line]) -> None:
    """A line per series: what stands before the last comma of the row."""
    columns = list(dict.fromkeys(c for line in lines for c in line.ours))
    series: dict[str, list[Line]] = {}
    for line in lines:
        if line.x is not None:
            series.setdefault(line.row.rpartition(", ")[0] or line.row, []).append(line)
    for i, (name, some) in enumerate(series.items()):
        colour = _MORE[i % len(_MORE)]
        for style, column in zip(("-", "--", ":", "-."), columns):
            at = [(line.x, line.ours[column]) for line in some if column in line.ours]
            known = [(x, f["value"]) for x, f in at if f.get("value") is not None]
            if known:
                label = _safe(name if len(columns) == 1 else f"{name}, {column}")
                axes.plot(*zip(*known), style, marker=".", color=colour, label=label, linewidth=1.2)
        reported = [(line.x, _float(line.printed)) for line in some if line.printed is not None]
        reported = [(x, y) for x, y in reported if y is not None]
        if reported:
            axes.plot(*zip(*reported), "o", color=colour, markerfacecolor="none", markersize=7)
            axes.plot([], [], "o", color=INK, markerfacecolor="none", label="reported")


def _words(found: Reproduction) -> str:
    """Texts alone: how many of them are as printed."""
    from countervail.core.files.svg import canvas

    figure, axes = canvas(height=1.4)
    words = ("equal", "within", "differs", "ours alone")
    counts = [sum(line.verdict == w for line in found.lines) for w in words]
    axes.barh(list(words)[::-1], counts[::-1], color=ACCENT, height=0.6)
    axes.set_xlabel("figures")
    return to_svg(figure, f"{found.name}: {found.title}")


def _number(line: Line) -> float | None:
    return next((f["value"] for f in line.ours.values() if f.get("value") is not None), None)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _safe(text: str) -> str:
    return text.replace("$", r"\$")
