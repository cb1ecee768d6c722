"""The page of differential inference tests: several anonymisations side by side, and what the figures do not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countervail.attack.differential.test import DifferentialResult
from countervail.report.figures import INK, PALETTE, canvas, legend_above, to_svg
from countervail.report.page import Fact, Page, Section

_LINE = 10**-2.5
_NO_GUARANTEE = (
    "No promise: the test shows what one learner gains from one person's record. A large distance is a finding; a "
    "small one only says that this learner missed it."
)


def differential_summary(results: Mapping[str, DifferentialResult]) -> dict[str, Any]:
    """All figures as plain JSON data: no row numbers, and nobody's exact distance."""
    return {"kind": "differential inference test", "version": 1, "tests": {n: r.to_dict() for n, r in results.items()}}


def differential_page(results: Mapping[str, DifferentialResult], title: str = "Differential inference test") -> Page:
    """The page: the distributions, the figures, what stands beside them, and kinds of people."""
    first = next(iter(results.values()))
    tested = f"{len(first.d_pp):,} of {first.people:,} people were tested." if first.sampled else "All were tested."
    lead = f"Would the adversary have learnt this about you without you? {tested}"
    sections = [
        Section("In short", facts=_facts(results)),
        Section(
            "How far predictions move",
            picture=cdf_picture(_curves(results)),
            caption="Share of people whose prediction moves at most this far when their record is left out. Farther "
            "left is better.",
        ),
        Section("Side by side", header=_HEADER, rows=[_row(n, r) for n, r in results.items()]),
        *_beside(results),
        *_controls(results),
        *_kinds(results),
    ]
    notes = dict.fromkeys(c for r in results.values() for c in r.caveats)
    return Page(title, lead, sections, _NO_GUARANTEE, " ".join(notes))


def cdf_picture(results: Mapping[str, DifferentialResult]) -> str:
    """Distribution functions on a logarithmic axis, at fixed points."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    figure, axes = canvas(height=3.4)
    wheel = [to_hex(colormaps["viridis"](0.92 * i / len(results))) for i in range(len(results))]
    colours = PALETTE if len(results) <= len(PALETTE) else wheel
    for colour, (name, result) in zip(colours, results.items()):
        at, share = result.cdf()
        style = "--" if name.startswith("as it is") else "-"
        axes.plot(at, 100 * share, style, color=colour, linewidth=1.6, label=name.replace("$", r"\$"))
    axes.axvline(_LINE, color=INK, linewidth=0.6, linestyle=":")
    axes.set_xscale("log")
    axes.set_xlabel("distance between the predictions with and without the person (d_pp)")
    axes.set_ylabel("% of people at most that")
    axes.set_ylim(0, 102)
    legend_above(axes)
    return to_svg(figure, "Distribution of d_pp")


_HEADER = ("", "learner", "people tested", "mean", "largest distance", "above 10^-2.5", "predictions that change")


def _row(name: str, r: DifferentialResult) -> list[str]:
    above = r.share_above(_LINE)
    span = f" ({above.low:.1%} to {above.high:.1%})" if r.sampled else ""
    return [
        name,
        r.learner,
        f"{len(r.d_pp):,}",
        f"{r.mean:.2g}",
        f"{r.epsilon:.2g}",
        f"{above.value:.1%}{span}",
        f"{r.changed.value:.1%}",
    ]


def _facts(results: Mapping[str, DifferentialResult]) -> list[Fact]:
    out = []
    for name, r in list(results.items())[:4]:
        above = r.share_above(_LINE)
        whom = "of all people" if not r.sampled else f"of the {len(r.d_pp):,} of {r.people:,} people who were tested"
        span = f" (of all: {above.low:.0%} to {above.high:.0%})" if r.sampled else ""
        out.append(Fact(f"{above.value:.0%}", f"{whom} move the prediction by over 10^-2.5: {name}{span}"))
    return out


def _curves(results: Mapping[str, DifferentialResult]) -> dict[str, DifferentialResult]:
    curves = dict(results)
    first = next(iter(results.values()))
    for key, r in first.beside.items():
        if key.startswith("identity"):
            curves[f"as it is ({r.learner})"] = r
    return curves


def _beside(results: Mapping[str, DifferentialResult]) -> list[Section]:
    """The open table and the second learner."""
    rows, seen = [], False
    for name, result in results.items():
        for key, r in result.beside.items():
            if key == "second learner":
                rows.append(_row(name, r))
            elif not seen:
                rows.append(_row("the table as it is", r))
        seen = True
    if not rows:
        return []
    words = (
        "The same test on the table as it is, and with a second learner. If the table as it is looks good to a "
        "learner, that learner cannot tell good from bad: believe the other one."
    )
    return [Section("Beside it", paragraphs=[words], header=_HEADER, rows=rows)]


def _controls(results: Mapping[str, DifferentialResult]) -> list[Section]:
    """What chance alone does, where lots are drawn."""
    rows = []
    for name, r in results.items():
        if r.control is not None:
            delta = r.delta(_LINE)
            rows.append(
                [name, f"{r.draws.shape[1]}", f"{r.mean:.2g}", f"{r.control.mean():.2g}",
                 f"{delta.value:.2f} (at most {delta.high:.2f})"]
            )  # fmt: skip
    if not rows:
        return []
    header = ("", "runs per person", "mean, with and without", "mean, twice with", "delta of the worst-off at 10^-2.5")
    words = (
        "Here chance plays a part. Two releases of the same table differ by the control; only what exceeds it counts."
    )
    return [Section("Chance", paragraphs=[words], header=header, rows=rows)]


def _kinds(results: Mapping[str, DifferentialResult]) -> list[Section]:
    out = []
    for name, r in results.items():
        if r.kinds:
            rows = [[k.who, f"{k.people:,}", f"{k.mean.value:.2g}"] for k in r.kinds]
            words = "Kinds of people, at least ten in each, whose predictions move most on average."
            out.append(
                Section(f"Who sticks out: {name}", paragraphs=[words], header=("who", "people", "mean"), rows=rows)
            )
    return out
