"""The page that helps to choose k: what each costs, what it hides, and where the knee is."""

from __future__ import annotations

from countervail.measure.sweep import Sweep, SweepPoint
from countervail.report.figures import ACCENT, INK, SECOND, canvas, legend_above, to_svg
from countervail.report.page import Page, Section

_HEADER = ("k", "classes", "left out", "NCP", "highest risk", "average risk", "query error")
_ACCURACY = " Accuracy is that of a model trained on a release of one part of the rows and tested on the rest."


def sweep_header(sweep: Sweep) -> tuple[str, ...]:
    """What stands over the lines; nothing of a model where there is none."""
    return (*_HEADER, "accuracy", "before") if _judged(sweep) else _HEADER


def sweep_rows(sweep: Sweep) -> list[list[str]]:
    """One line per k, as people read it."""
    return [_row(point)[: len(sweep_header(sweep))] for point in sweep.points]


def _judged(sweep: Sweep) -> bool:
    return any(point.model is not None for point in sweep.points)


def _row(p: SweepPoint) -> list[str]:
    shown = [f"{p.k:,}", f"{p.classes:,}", f"{p.suppressed:,}", f"{p.ncp:.2%}"]
    shown += [f"{p.prosecutor:.1%}", f"{p.marketer:.1%}", f"{p.query_error:.1%}"]
    if p.model is None:
        return [*shown, "-", "-"]
    return [*shown, f"{p.model.released.value:.1%}", f"{p.model.original.value:.1%}"]


def sweep_page(sweep: Sweep, title: str = "Which k?") -> Page:
    """The knee in words, the figures, and two pictures."""
    table = Section(
        "Figures",
        paragraphs=[
            "NCP is the share of information in the quasi-identifiers that is lost. The highest and the average risk "
            "are chances of finding a person again by them. The query error is the median over random counts."
            + (_ACCURACY if _judged(sweep) else "")
        ],
        header=sweep_header(sweep),
        rows=sweep_rows(sweep),
    )
    sections = [
        table,
        Section(
            "What it costs", picture=cost_picture(sweep), caption="Information lost, and the average risk, over k."
        ),
    ]
    if all(p.model is not None for p in sweep.points):
        caption = "Accuracy with 95% intervals; dashed: the same model trained on the original rows."
        sections.append(Section("What a model keeps", picture=model_picture(sweep), caption=caption))
    promise = "Nothing on this page is a promise: it compares releases that could be made."
    footer = "The figures describe the table as a whole. They were computed from its rows and are not protected."
    return Page(title, sweep.words, sections, promise, footer)


def cost_picture(sweep: Sweep) -> str:
    """NCP and the average risk over k; a line marks the knee."""
    figure, axes = canvas(height=3.0)
    ks = [p.k for p in sweep.points]
    axes.plot(ks, [100 * p.ncp for p in sweep.points], marker="o", markersize=4, color=ACCENT, label="NCP")
    axes.plot(
        ks, [100 * p.marketer for p in sweep.points], marker="s", markersize=4, color=SECOND, label="average risk"
    )
    if sweep.knee is not None:
        axes.axvline(sweep.knee, color=INK, linestyle=":", linewidth=1.2, label=f"knee, k={sweep.knee}")
    _scale(axes, ks)
    axes.set_ylabel("%")
    legend_above(axes)
    return to_svg(figure, "Loss and risk over k")


def model_picture(sweep: Sweep) -> str:
    """Accuracy over k beside that on the original rows."""
    figure, axes = canvas(height=3.0)
    judged = [(p.k, p.model) for p in sweep.points if p.model is not None]
    ks = [k for k, _ in judged]
    values = [100 * m.released.value for _, m in judged]
    low = [100 * (m.released.value - m.released.low) for _, m in judged]
    high = [100 * (m.released.high - m.released.value) for _, m in judged]
    axes.errorbar(ks, values, yerr=[low, high], color=ACCENT, marker="o", markersize=4, capsize=3, label="released")
    axes.axhline(100 * judged[0][1].original.value, color=INK, linestyle="--", linewidth=1, label="original rows")
    _scale(axes, ks)
    axes.set_ylabel("accuracy, %")
    legend_above(axes)
    return to_svg(figure, "Accuracy over k")


def _scale(axes: object, ks: list[int]) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    axes.set_xscale("log")
    axes.set_xticks(ks, [str(k) for k in ks])
    axes.minorticks_off()
    axes.set_xlabel("k (more is more private)")
