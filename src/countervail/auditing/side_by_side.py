"""Several protections side by side: the same people, model and attacks, privacy against quality."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from countervail import measure
from countervail.auditing.appetite import Appetite
from countervail.auditing.finding import Finding
from countervail.auditing.result import Audit
from countervail.auditing.run import audit, read_appetite
from countervail.auditing.verdict import Ruling
from countervail.auditing.written.dossier import share
from countervail.auditing.written.pictures import trade_off_picture
from countervail.core.errors import CountervailError, PrivacyWarning, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.files.frames import write_text
from countervail.core.protocols import Progress
from countervail.core.stats import Estimate, clopper_pearson, mean_interval
from countervail.core.table import Table
from countervail.explain import NICE
from countervail.protect import CFK, GroupSearch, PrivateNeighbours, PrivateSynthetic
from countervail.report.figures import to_svg
from countervail.report.page import Page, Section, render_page

# Quick and telling: what reads the answers, and asks nothing again.
ATTACKS = ("linkage", "singling-out", "attribute-inference", "membership", "reidentification")


@dataclass(frozen=True, eq=False, slots=True)
class Contender:
    """One protection: its audit and the quality of its answers; `why` it could not be tried, where it could not."""

    name: str
    audit: Audit | None = None
    answered: Estimate | None = None
    changes: Estimate | None = None
    cost: Estimate | None = None
    why: str = ""

    @property
    def worst(self) -> Finding | None:
        """The attack that succeeds most beyond controls."""
        run = [f for f in self.audit.findings if f.status == "run" and f.counts.n] if self.audit is not None else []
        return max(run, key=lambda f: f.counts.excess().value, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The contender as plain JSON data."""
        figures = {n: getattr(self, n) for n in ("answered", "changes", "cost")}
        return {
            "name": self.name,
            "why": self.why,
            "verdict": None if self.audit is None else self.audit.verdict,
            **{n: None if e is None else e.to_dict() for n, e in figures.items()},
            "dossier": None if self.audit is None else self.audit.to_dict(),
        }


@dataclass(frozen=True, eq=False, slots=True)
class SideBySide:
    """Protections compared. `to_html` writes one page with all of them."""

    contenders: tuple[Contender, ...]
    people: int
    controls: int

    def __getitem__(self, name: str) -> Contender:
        return next(c for c in self.contenders if c.name == name)

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain JSON data."""
        return {"people": self.people, "controls": self.controls, "contenders": [c.to_dict() for c in self.contenders]}

    def rows(self) -> list[tuple[str, ...]]:
        """A line for each contender: promise, verdict, the attack that succeeds most, and quality."""
        return [_row(c) for c in self.contenders]

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page; written to a file where one is named."""
        text = render_page(self.page())
        if path is not None:
            write_text(text, path)
        return text

    def page(self) -> Page:
        """All of it, ready to be rendered."""
        points = [
            (c.name, e.value, e.low, e.high, c.changes.value)
            for c in self.contenders
            if (f := c.worst) is not None and c.changes is not None and c.changes.n
            for e in [f.counts.excess()]
        ]
        picture = to_svg(trade_off_picture(points, CHANGES), CAPTION) if points else ""
        drawn = [Section("Privacy against quality", picture=picture, caption=CAPTION)] if points else []
        reasons = [
            Section(f"{c.name}: not tried", [c.why])
            if c.audit is None
            else Section(f"{c.name}: {c.audit.verdict}", points=[_reason(d) for d in c.audit.decisions])
            for c in self.contenders
        ]
        ways = len(self.contenders)
        lead = f"{ways} ways to explain the same decisions, about {self.people:,} people, attacked alike."
        promises = (
            "Each line has a promise of its own; a verdict is about the attacks that were tried and is no proof. "
            "Nobody passes for attacks that were left out, such as those that ask again: audit the one that you choose."
        )
        first = Section("Side by side", header=HEADER, rows=self.rows())
        return Page("Protections compared", lead, [first, *drawn, *reasons], promises)


HEADER = ("protection", "promise", "verdict", "attack that succeeds most", "answered", "things to change", "distance")
CHANGES = "things to change (fewer is better)"
CAPTION = "The largest excess of an attack, and how much an answer asks for."


def compare(
    table: Table,
    model: Any,
    *,
    control: Table,
    protections: Mapping[str, Any] | None = None,
    appetite: Appetite | Mapping[str, Any] | str | Path | None = None,
    attacks: Sequence[str] | None = ATTACKS,
    answers: int = 500,
    progress: Progress | None = None,
) -> SideBySide:
    """Fit several explainers or protectors on the same people, audit each, and set privacy beside quality.

    Parameters
    ----------
    table : Table
    model : estimator or callable
        What is explained.
    control : Table
        People who were held out.
    protections : dict of str to explainer, optional
        Unfitted, by the names they are shown under; by default plain NICE, CFK with k = 5, 10 and 20, and on the
        classes of Mondrian, PrivateSynthetic and PrivateNeighbours.
    appetite, attacks, answers
        As for :func:`audit`; by default the attacks that read answers and ask nothing again.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> members, others = small_table(300).split(test_size=0.5, random_state=0)
    >>> both = {"plain": cv.NICE(target="favourable"), "private": cv.CFK(k=5)}
    >>> found = cv.compare(members, small_model, control=others, protections=both, attacks=["singling-out"])
    >>> [c.audit.verdict for c in found.contenders]
    ['reject', 'not shown']
    """
    wanted, tried = read_appetite(appetite), usual() if protections is None else dict(protections)
    if not tried:
        raise bad_parameter("compare", "protections", "at least one explainer or protector", "none")
    done = []
    for name, made in tried.items():
        done.append(_tried(name, made, table, model, control, appetite=wanted, attacks=attacks, answers=answers))
        if progress is not None:
            progress(len(done), len(tried))
    return SideBySide(tuple(done), len(table), len(control))


def usual() -> dict[str, Any]:
    """What is compared unless told otherwise."""
    private = {f"CFK, k={k}": CFK(k=k) for k in (5, 10, 20)}
    private["CFK on Mondrian's classes, k=10"] = CFK(k=10, search=GroupSearch(grouping="mondrian"))
    noisy = {"PrivateSynthetic": PrivateSynthetic(), "PrivateNeighbours": PrivateNeighbours()}
    return {"plain NICE": NICE(target="favourable", reward="sparsity"), **private, **noisy}


def _tried(name: str, made: Any, table: Table, model: Any, control: Table, **wishes: Any) -> Contender:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # what is not promised stands in its line
            fitted = made.fit(table, model)
        found = audit(fitted, table, control=control, budget=None, jobs=1, **wishes)
        rows = control.frame[control.schema.features].iloc[: wishes["answers"]].reset_index(drop=True)
        given = fitted.explain(rows)
    except CountervailError as error:
        return Contender(name, why=str(error))
    return Contender(name, found, *_quality(given, table))


def _quality(e: Explanations, table: Table) -> tuple[Estimate, Estimate, Estimate]:
    asked = (e.status != "already_favourable").to_numpy()
    answered = clopper_pearson(int(e.found.sum()), int(asked.sum()))
    costs = measure.recourse_cost(e, table=table)
    return answered, mean_interval(measure.sparsity(e)[e.found]), mean_interval(np.asarray(costs)[e.found])


def _row(c: Contender) -> tuple[str, ...]:
    if c.audit is None or c.answered is None or c.changes is None or c.cost is None:
        return (c.name, "", "not tried", "", "", "", "")
    worst = c.worst
    said = "none" if worst is None else f"{worst.attack}: {share(worst.counts.excess())}"
    promise = str(c.audit.promise["text"]).split(" against ", 1)[0].rstrip(", ")
    quality = (f"{c.answered.value:.0%}", f"{c.changes.value:.2f}", f"{c.cost.value:.2f}")
    return (c.name, promise, c.audit.verdict, said, *quality)


def _reason(d: Ruling) -> str:
    return f"{d.criterion}: {d.word} ({'; '.join(d.reasons)})"
