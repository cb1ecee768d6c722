"""The figures of a dossier, drawn once for the page and once for paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from countervail.auditing.finding import Finding, size_labels
from countervail.core.cells import visible
from countervail.report.figures import ACCENT, INK, SECOND, canvas, legend_above

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (ACCENT, SECOND, "#6b8f3c", "#7a5195", "#c44569", "#3d5a80")
_LEAST_RATE = 1e-3


def excess_picture(findings: Sequence[Finding], thresholds: Mapping[str, float]) -> Figure:
    """Each attack's excess with its interval, and the threshold that it is held against."""
    figure, axes = canvas(height=0.9 + 0.36 * len(findings))
    for row, f in enumerate(findings):
        e = f.counts.excess()
        low, high = max(e.low, -1.0), min(e.high, 1.0)
        axes.plot([low, high], [row, row], color=ACCENT, linewidth=2)
        axes.plot([max(min(e.value, 1.0), -1.0)], [row], "o", color=ACCENT, markersize=5)
        if (limit := thresholds.get(f.criterion)) is not None:
            axes.plot([limit, limit], [row - 0.4, row + 0.4], color=SECOND, linewidth=2)
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.set_yticks(range(len(findings)), [_plain(f.attack) for f in findings])
    axes.invert_yaxis()
    axes.set_xlim(min([-0.1, *(max(f.counts.excess().low, -1.0) for f in findings)]) - 0.02, 1.02)
    axes.set_xlabel("excess over people who were never in the data; orange: threshold")
    return figure


def sizes_picture(findings: Sequence[Finding]) -> Figure:
    """How many people released things speak of, by attack: nominally, and for someone who does more."""
    figure, axes = canvas()
    with_sizes = [f for f in findings if f.sets is not None]
    labels = size_labels(with_sizes[0].sets.shares) if with_sizes and with_sizes[0].sets else []
    width = 0.8 / max(len(with_sizes), 1)
    for i, f in enumerate(with_sizes):
        if f.sets is None:
            continue
        heights = [100 * f.sets.shares[label] for label in labels]
        places = [x - 0.4 + (i + 0.5) * width for x in range(len(labels))]
        axes.bar(places, heights, width=width, color=_COLOURS[i % len(_COLOURS)], label=_plain(f.attack))
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel("people that something released may speak of")
    axes.set_ylabel("% of what was released")
    legend_above(axes)
    return figure


def roc_picture(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """True against false positives of membership attacks, on log axes; the dashed line is guessing."""
    figure, axes = canvas(width=5.0, height=4.0)
    for colour, (name, curve) in zip(_COLOURS, curves.items()):
        xs, ys = ([max(p[i], _LEAST_RATE) for p in curve] for i in (0, 1))
        axes.plot(xs, ys, color=colour, linewidth=1.8, label=_plain(name))
    axes.plot([_LEAST_RATE, 1], [_LEAST_RATE, 1], "--", color=INK, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(_LEAST_RATE, 1)
    axes.set_ylim(_LEAST_RATE, 1.05)
    axes.set_xlabel("controls taken for members")
    axes.set_ylabel("members recognised")
    legend_above(axes)
    return figure


def trade_off_picture(points: Sequence[tuple[str, float, float, float, float]], label: str) -> Figure:
    """Name, risk with the ends of its interval, and quality: privacy against what it costs."""
    figure, axes = canvas(height=3.2)
    for i, (name, risk, low, high, quality) in enumerate(points):
        colour = _COLOURS[i % len(_COLOURS)]
        axes.plot([max(low, -0.1), min(high, 1.0)], [quality, quality], color=colour, linewidth=1.2)
        axes.plot([risk], [quality], "os^Dv*"[i // len(_COLOURS) % 6], color=colour, markersize=7, label=_plain(name))
    axes.set_xlabel("largest excess of an attack (left is more private)")
    axes.set_ylabel(_plain(label))
    legend_above(axes)
    return figure


def _plain(text: str) -> str:
    return visible(text).replace("$", r"\$")
