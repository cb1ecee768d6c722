"""The picture of what privacy costs: one figure over epsilon, with intervals, beside the open explainer."""

from __future__ import annotations

from collections.abc import Mapping

from countervail.core.stats import Estimate
from countervail.report.figures import INK, PALETTE, canvas, legend_above, to_svg


def trade_off(
    series: Mapping[str, Mapping[float, Estimate]], label: str, *, without_noise: Estimate | None = None
) -> str:
    """Lines over epsilon (on a logarithmic axis) with error bars; the open explainer as a dashed line.

    Examples
    --------
    >>> from countervail.core.stats import mean_interval
    >>> svg = trade_off({"all": {0.1: mean_interval([1, 2]), 1.0: mean_interval([1, 1.5])}}, "distance")
    >>> svg.startswith("<svg role=")
    True
    """
    figure, axes = canvas(height=3.0)
    for colour, (name, points) in zip(PALETTE, series.items()):
        at = sorted(points)
        low, high = ([abs(points[e].value - getattr(points[e], side)) for e in at] for side in ("low", "high"))
        values = [points[e].value for e in at]
        axes.errorbar(at, values, yerr=[low, high], color=colour, marker="o", markersize=4, capsize=3, label=name)
    if without_noise is not None:
        axes.axhline(without_noise.value, color=INK, linestyle="--", linewidth=1, label="no noise (no guarantee)")
    axes.set_xscale("log")
    every = sorted({e for points in series.values() for e in points})
    axes.set_xticks(every, [f"{e:g}" for e in every])
    axes.minorticks_off()
    axes.set_xlabel("epsilon of one answer (less is more private)")
    axes.set_ylabel(label)
    legend_above(axes)
    return to_svg(figure, f"Trade-off: {label} over epsilon")
