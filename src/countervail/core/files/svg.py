"""Pictures as SVG text: empty axes in our colours, and how they become text that is the same every time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from countervail.core.cells import visible

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, SECOND = "#1c2430", "#1f6f8b", "#d1792a"
PALETTE = (ACCENT, SECOND, "#6b8f3c", "#7a5195")


def legend_above(axes: Axes, keys: Sequence[Artist] | None = None) -> None:
    """The legend above the axes, where it covers nothing; of `keys`, or of what was drawn with a label."""
    handles = list(keys) if keys is not None else axes.get_legend_handles_labels()[0]
    columns = min(len(handles), 5)
    axes.legend(handles=handles, frameon=False, fontsize=8, ncols=columns, loc="lower left", bbox_to_anchor=(0, 1))


def to_svg(figure: Figure, title: str) -> str:
    """The figure as an inline SVG element."""
    import matplotlib as mpl

    buffer, title = io.StringIO(), visible(title)
    with mpl.rc_context({"svg.hashsalt": "countervail", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": title}, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label={quoteattr(title)} ', 1)


def canvas(width: float = 7.0, height: float = 2.6) -> tuple[Figure, Axes]:
    """Empty axes in our colours."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9)
    return figure, axes
