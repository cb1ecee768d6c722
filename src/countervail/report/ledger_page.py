"""The page that shows a ledger: the promise, what is left, and the budget over time. No query is on it."""

from __future__ import annotations

from collections.abc import Sequence

from countervail.ledger.history import KINDS, Entry, Statement, in_words
from countervail.report.figures import budget_line
from countervail.report.page import Fact, Page, Section

HEADER = ("number", "time (UTC)", "what", "by", "epsilon", "query (keyed hash)", "spent")
_CAPTION = "Every step is an answer or a draw that was paid for. The promise is the line at the top, all the time."
_NOT_COVERED = (
    "A ledger counts what is released with it. It does not cover other releases about the same people, what the model "
    "itself has memorised, how long an answer takes, or somebody who can write to its file."
)


def rows_of(entries: Sequence[Entry]) -> list[list[str]]:
    """Entries as words."""
    return [
        [
            f"{e.number:,}",
            e.when,
            KINDS[e.kind] if e.stored or e.kind == "groups" else f"{KINDS[e.kind]} that was never sent",
            e.mechanism,
            f"{e.epsilon:g}" if e.epsilon else "",
            e.request,
            f"{e.spent:.1%}",
        ]
        for e in entries
    ]


def ledger_page(statement: Statement, entries: Sequence[Entry], curve: Sequence[tuple[int, float]]) -> Page:
    """The budget, the picture, and the last entries."""
    budget = statement.budget
    facts = [
        Fact(f"{statement.share_spent:.1%}", "of the budget is spent"),
        Fact(f"{statement.entries:,}", "entry" if statement.entries == 1 else "entries"),
        Fact(f"{statement.groupings:,}", f"grouping{'' if statement.groupings == 1 else 's'} for k-anonymous releases"),
    ]
    left = f"Left: {statement.left}. Composition: {budget.composition}; adjacency: {budget.adjacency}."
    last = f"Last entry: {in_words(statement.last)} UTC." if statement.last else "No entry yet."
    picture = budget_line([t for t, _ in curve], [s for _, s in curve])
    sections = [
        Section("Where it stands", [left, last], facts),
        Section("The budget over time", picture=picture, caption=_CAPTION),
        Section("The last entries", header=HEADER, rows=rows_of(entries)),
    ]
    return Page(f"Ledger of {budget.dataset}", f"Budget: {budget.claim}.", sections, statement.promise, _NOT_COVERED)
