"""A study as a picture: a panel per figure, a point with its interval per row."""

from __future__ import annotations

from collections.abc import Sequence

from countervail.core.files.svg import ACCENT, INK, to_svg
from countervail.study.result import FIGURES, Row


def study_picture(rows: Sequence[Row]) -> str:
    """Six panels, each with all rows."""
    from matplotlib.figure import Figure

    names = [_name(r, several=len({(x.table, x.model) for x in rows}) > 1) for r in rows]
    sheet = Figure(figsize=(11, 2 * (1.0 + 0.24 * max(len(rows), 1))), layout="constrained")
    for place, figure in enumerate(FIGURES):
        axes = sheet.add_subplot(2, 3, place + 1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=7)
        for y, row in enumerate(rows):
            e = row.figures[figure].mean
            axes.plot([e.low, e.high], [y, y], color=ACCENT, linewidth=1)
            axes.plot(e.value, y, ".", color=ACCENT)
        axes.set_yticks(range(len(rows)), names if place % 3 == 0 else [""] * len(rows))
        axes.invert_yaxis()
        axes.set_title(figure, fontsize=9)
    return to_svg(sheet, "A study: every figure of every row with its interval")


def _name(row: Row, *, several: bool) -> str:
    setting = [f"{v:g}" for v in (row.epsilon, row.neighbours) if v is not None]
    words = f"{row.mechanism} {' '.join(setting)}".strip()
    return (f"{words} ({row.table}, {row.model})" if several else words).replace("$", r"\$")
