"""Pictures as SVG text: drawn without a screen, without outside references, the same every time."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from countervail.core.files.svg import ACCENT as ACCENT
from countervail.core.files.svg import INK as INK
from countervail.core.files.svg import PALETTE as PALETTE
from countervail.core.files.svg import SECOND as SECOND
from countervail.core.files.svg import canvas as canvas
from countervail.core.files.svg import legend_above as legend_above
from countervail.core.files.svg import to_svg as to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def histograms(series: Mapping[str, ArrayLike], label: str, *, bins: int = 24) -> str:
    """Distributions of one quantity for several variants, as outlines on common bins."""
    figure, axes = canvas()
    finite = {n: np.asarray(v, dtype=float)[np.isfinite(np.asarray(v, dtype=float))] for n, v in series.items()}
    pooled = np.concatenate([v for v in finite.values() if len(v)] or [np.zeros(1)])
    edges = np.histogram_bin_edges(pooled, bins=bins)
    for colour, (name, values) in zip(PALETTE, finite.items()):
        axes.hist(values, bins=list(edges), histtype="step", linewidth=1.8, color=colour, label=name)
    axes.set_xlabel(label)
    axes.set_ylabel("explanations")
    if len(series) > 1:
        legend_above(axes)
    return to_svg(figure, f"Histogram: {label}")


def bars(names: Sequence[str], values: Sequence[float], label: str) -> str:
    """One horizontal bar per name."""
    figure, axes = canvas(height=0.6 + 0.34 * len(names))
    words = [name.replace("$", r"\$") for name in names]  # a pair of dollars would be read as mathematics
    axes.barh(words[::-1], list(values)[::-1], color=ACCENT, height=0.6)
    axes.set_xlabel(label)
    return to_svg(figure, f"Bars: {label}")


def before_after(names: Sequence[str], before: Sequence[float], after: Sequence[float], label: str) -> str:
    """Two bars per value or bin: as it was, and as it is published."""
    figure, axes = canvas()
    place = np.arange(len(names))
    axes.bar(place - 0.2, list(before), width=0.4, color=INK, label="original")
    axes.bar(place + 0.2, list(after), width=0.4, color=ACCENT, label="released")
    words = [(n if len(n) <= 14 else n[:13] + "…").replace("$", r"\$") for n in names]
    axes.set_xticks(place, words, rotation=45 if max(map(len, words), default=0) > 3 else 0, ha="right")
    axes.set_xlabel(label.replace("$", r"\$"))
    axes.set_ylabel("rows")
    legend_above(axes)
    return to_svg(figure, f"Before and after: {label}")


def rule_bars(
    conditions: Sequence[str], conclusions: Sequence[Sequence[str]], support: Sequence[int], classes: Sequence[str]
) -> str:
    """A small table of rules: condition, and a bar of its supporters with one stripe per class it leaves open."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.patches import Patch

    figure, axes = canvas(height=1.0 + 0.3 * len(conditions))
    wheel = [to_hex(colormaps["tab20"](i % 20)) for i in range(len(classes))]
    colour = dict(zip(classes, PALETTE if len(classes) <= len(PALETTE) else wheel))
    for row, (left, people) in enumerate(zip(conclusions, support)):
        stripe = 0.7 / len(left)
        for i, name in enumerate(left):
            axes.barh(row - 0.35 + (i + 0.5) * stripe, people, height=stripe, color=colour[name])
        axes.text(people, row, f" {people:,}", va="center", fontsize=8, color=INK)
    words = [(c if len(c) <= 70 else c[:69] + "…").replace("$", r"\$") for c in conditions]
    axes.set_yticks(range(len(conditions)), words)
    axes.invert_yaxis()
    axes.set_xlabel("people who support the rule")
    keys = [Patch(color=colour[name], label=name.replace("$", r"\$")) for name in classes]
    legend_above(axes, keys)
    return to_svg(figure, "Rules and their support")


def budget_line(times: Sequence[int], spent: Sequence[float]) -> str:
    """How much of a budget was spent by when: steps that only go up, towards a line that they never cross."""
    from datetime import UTC, datetime

    figure, axes = canvas()
    when = [datetime.fromtimestamp(t, UTC) for t in times]
    shares = [100 * s for s in spent]
    axes.step(when, shares, where="post", color=ACCENT, linewidth=1.8)  # type: ignore[arg-type]
    axes.fill_between(when, shares, step="post", color=ACCENT, alpha=0.15)  # type: ignore[arg-type]
    axes.axhline(100, color=SECOND, linewidth=1.4)
    axes.text(0.01, 102, "the budget", color=SECOND, fontsize=9, transform=axes.get_yaxis_transform())
    axes.set_ylim(0, 116)
    axes.set_ylabel("% of the budget")
    figure.autofmt_xdate()
    return to_svg(figure, "The budget over time")


def to_png(figure: Figure) -> bytes:
    """The figure as a picture of points, for paper."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200, bbox_inches="tight", metadata={"Software": None})
    return buffer.getvalue()
