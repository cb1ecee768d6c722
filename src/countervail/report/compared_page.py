"""The page that compares mechanisms: a sentence, a table, and what privacy costs over epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from countervail.core.stats import Estimate
from countervail.report.page import Fact, Page, Section
from countervail.report.trade_off import trade_off
from countervail.study.choose import Recommendation, title, total_epsilon
from countervail.study.mechanisms import OPEN
from countervail.study.result import FIGURES, Row, Study

HEADER = (
    "mechanism",
    "guarantee",
    "Correctness %",
    "Dist_rec",
    "Plaus_prox",
    "M0 %",
    "M1 %",
    "d_min",
    "claimed epsilon",
    "audited, at least",
    "all answers",
)
LABELS = {
    "dist_rec": "Dist_rec",
    "plaus_prox": "Plaus_prox",
    "correctness": "Correctness",
    "m0": "M0",
    "m1": "M1",
    "d_min": "d_min",
}
_MEANINGS = (
    "Correctness: the share of answers that change the decision, in percent. Dist_rec: how far an answer lies from the "
    "person who asked. Plaus_prox: how far from the nearest real person; less is more plausible. M0 and M1: the shares "
    "of answers that equal no record of the table, and exactly one, in percent. d_min: the distance to the nearest "
    "record.",
    "Claimed epsilon: the budget of one answer. Audited: what was measured from outside, at the least. All answers: "
    "the budget of all answers together. In brackets: 95% intervals.",
)
_INTERNAL = (
    "M0, M1 and d_min compare answers with the private table: they are for its owner, and are no private figures "
    "themselves."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the page says, as plain data."""

    lead: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[tuple[str, ...], ...]
    pictures: tuple[tuple[str, str], ...]
    promise: str


def summarize_comparison(study: Study, chosen: Recommendation) -> Comparison:
    """The recommendation, all rows, and a picture of each figure where there are several budgets."""
    rows = [*([chosen.without_noise] if chosen.without_noise is not None else []), *chosen.ranked]
    best = chosen.best.figures
    facts = (
        (title(chosen.best), f"suits {chosen.priority} best"),
        (f"{100 * best['correctness'].mean.value:.1f}%", "of its answers change the decision"),
        (f"{best['dist_rec'].mean.value:.2f}", "is how far they lie from the person who asked"),
    )
    lines = tuple(line(r, chosen.answers) for r in rows)
    return Comparison(chosen.sentence, facts, lines, tuple(pictures(study.rows())), chosen.best.guarantee)


def compared_page(summary: Comparison, heading: str = "Which mechanism?") -> Page:
    """The sentence, the table, the pictures."""
    sections = [
        Section("Recommendation", facts=[Fact(*f) for f in summary.facts]),
        Section("Measured", [*_MEANINGS, _INTERNAL], header=HEADER, rows=summary.lines),
        *(Section(name, picture=svg, caption="Over the budget, with 95% intervals.") for name, svg in summary.pictures),
    ]
    return Page(heading, summary.lead, sections, summary.promise)


def line(row: Row, answers: int) -> tuple[str, ...]:
    """A row as text."""
    f = {n: row.figures[n] for n in FIGURES}
    total = total_epsilon(row, answers)
    return (
        title(row),
        "yes" if row.proven else "none",
        *(_figure(f[n].mean, 100 if n in ("correctness", "m0", "m1") else 1) for n in _ORDER),
        "" if row.epsilon is None else f"{row.epsilon:g}",
        "" if row.audited is None else f"{max(row.audited, 0.0):.2f}",
        "no bound" if not row.proven else f"{total:g}" if math.isfinite(total) else "no epsilon",
    )


_ORDER = ("correctness", "dist_rec", "plaus_prox", "m0", "m1", "d_min")


def pictures(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """One picture per figure, a line per mechanism; four of them to a picture."""
    series: dict[str, list[Row]] = {}
    for row in rows:
        if row.epsilon is not None:
            near = f", {row.neighbours} neighbours" if row.neighbours is not None else ""
            series.setdefault(f"{row.mechanism}{near}", []).append(row)
    if all(len(found) < 2 for found in series.values()):
        return []
    plain = next((r for r in rows if r.mechanism == OPEN), None)
    names, drawn = list(series), []
    for n in FIGURES:
        for start in range(0, len(names), 4):
            some = {m: {float(_budget(r)): r.figures[n].mean for r in series[m]} for m in names[start : start + 4]}
            svg = trade_off(some, LABELS[n], without_noise=plain.figures[n].mean if plain is not None else None)
            drawn.append((LABELS[n], svg))
    return drawn


def _budget(row: Row) -> Any:
    return row.epsilon


def _figure(e: Estimate, scale: float) -> str:
    digits = 1 if scale > 1 else 3
    return f"{scale * e.value:.{digits}f} [{scale * e.low:.{digits}f}, {scale * e.high:.{digits}f}]"
