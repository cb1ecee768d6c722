"""The page that shows rules: sentences, and bars for how many people support each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from countervail.core.cells import cell_text
from countervail.core.guarantee import Guarantee
from countervail.report.figures import rule_bars
from countervail.report.page import Fact, Page, Section
from countervail.rules.ruleset import RuleSet

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class RulesSummary:
    """What the page says, as plain data; the rules with most support first."""

    target: str
    classes: tuple[str, ...]
    conditions: tuple[str, ...]
    conclusions: tuple[tuple[str, ...], ...]
    support: tuple[int, ...]
    specificity: tuple[int, ...]
    rows: int
    promise: str


def summarize_rules(rules: RuleSet, guarantee: Guarantee) -> RulesSummary:
    """The rules in words, in the order in which they are shown."""
    found = sorted(rules, key=lambda r: -r.support)
    return RulesSummary(
        rules.target,
        _words(rules.classes),
        tuple(r.condition for r in found),
        tuple(_words(r.conclusion) for r in found),
        tuple(r.support for r in found),
        tuple(r.specificity for r in found),
        rules.rows,
        str(guarantee),
    )


def rules_page(summary: RulesSummary, title: str = "Rules") -> Page:
    """A picture of the rules with most support, then all of them."""
    n = len(summary.support)
    settled = sum(len(c) == 1 for c in summary.conclusions)
    facts = [
        Fact(f"{n:,}", f"rules for {summary.target}, learnt from {summary.rows:,} rows"),
        Fact(f"{settled:,}", "of them conclude a single class; the others leave several"),
        Fact(f"{min(summary.support, default=0):,}", "people support the rule with least support"),
    ]
    sections = [Section("At a glance", facts=facts)]
    if n:
        shown = slice(0, _SHOWN)
        picture = rule_bars(
            summary.conditions[shown], summary.conclusions[shown], summary.support[shown], summary.classes
        )
        more = f" The {_SHOWN} with most support of {n} are drawn." if n > _SHOWN else ""
        caption = f"Each bar is as long as a rule has supporters; its colours are the classes it leaves open.{more}"
        sections.append(Section("The rules", picture=picture, caption=caption))
        rows = [
            (condition, " or ".join(classes), f"{support:,}", str(specificity))
            for condition, classes, support, specificity in zip(
                summary.conditions, summary.conclusions, summary.support, summary.specificity
            )
        ]
        sections.append(Section("In full", header=("if", summary.target, "support", "columns"), rows=rows))
    lead = f"What {summary.target} depends on, in rules that enough people support."
    return Page(title, lead, sections, summary.promise)


def _words(classes: Sequence[Any]) -> tuple[str, ...]:
    return tuple(cell_text(c) for c in classes)
