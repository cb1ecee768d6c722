"""What a dossier shows, part by part: the same for the page and for paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countervail.auditing.appetite import CRITERIA
from countervail.auditing.finding import Finding, estimate_from
from countervail.auditing.result import Audit
from countervail.auditing.subject import UNKNOWN
from countervail.auditing.written import texts
from countervail.auditing.written.pictures import excess_picture, roc_picture, sizes_picture
from countervail.core.stats import Estimate
from countervail.report.figures import to_svg
from countervail.report.page import Banner, Page, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Privacy dossier"
TONES = {"release": "good", "reject": "bad", "not shown": "open", "void": "bad"}


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A heading with any of: paragraphs, points, a table, a drawing with its caption, lines to fill in."""

    heading: str
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    drawing: Figure | None = None
    caption: str = ""
    blanks: Sequence[str] = ()


def lead_of(audit: Audit) -> str:
    """What was asked, in a sentence."""
    a = audit.asked
    things = f"{a['answers']:,} explanations" if "answers" in a else f"a table of {a['rows']:,} rows"
    maker = "" if a["name"] == UNKNOWN else f" by {a['name']}"
    return (
        f"May this leave? {things}{maker} about {a['people']:,} people, tried against {a['controls']:,} people "
        f"who were never in the data, on {a['date']}."
    )


def dossier_page(audit: Audit) -> Page:
    """The dossier as a page."""
    sections = [
        Section(
            p.heading,
            p.paragraphs,
            points=p.points,
            header=p.header,
            rows=p.rows,
            picture="" if p.drawing is None else to_svg(p.drawing, p.caption or p.heading),
            caption=p.caption,
            blanks=p.blanks,
        )
        for p in parts_of(audit)
    ]
    banner = Banner(audit.verdict, audit.sentence, TONES[audit.verdict])
    return Page(TITLE, lead_of(audit), sections, f"Promise: {audit.promise['text']}", footer_of(audit), banner=banner)


def footer_of(audit: Audit) -> str:
    """Whence the dossier comes, and until when it holds."""
    made = audit.provenance
    return (
        f"countervail {made['countervail']}, {audit.asked['date']}; valid until {made['expires']}. "
        f"Digest {audit.to_dict()['digest']}."
    )


def parts_of(audit: Audit) -> list[Part]:
    """All parts, the summary first."""
    run = [f for f in audit.findings if f.status == "run"]
    parts = [
        Part("What to do next", points=audit.steps),
        _decisions(audit),
        _leaving(audit),
        Part("What was found", header=_HEADER, rows=[_row(f) for f in audit.findings]),
    ]
    if run:
        limits = {
            c: min(t)
            for c in CRITERIA
            if (t := [r.thresholds[c] for r in audit.appetite.recipients if c in r.thresholds])
        }
        caption = "Excess of each attack with its 95% interval, and the threshold that it is held against."
        parts.append(Part("How much more than by chance", drawing=excess_picture(run, limits), caption=caption))
    parts += _sizes(run)
    parts += _curves(run)
    parts += _worst(run, audit)
    parts += _groups(audit)
    parts += _influence(audit)
    if audit.claims:
        parts.append(Part("Claimed and audited epsilon", [c.said + "." for c in audit.claims]))
    if audit.caveats:
        parts.append(Part("What must be known", points=audit.caveats))
    return [*parts, *_standing(audit)]


_HEADER = ("attack", "criterion", "members", "controls", "blind", "excess", "planted leak")


def _row(f: Finding) -> Sequence[str]:
    if f.status != "run":
        return (f.attack, f.criterion, f"{f.status}: {f.why}", "", "", "", "found" if f.found_planted else "")
    return (
        f.attack,
        f.criterion,
        share(f.counts.members),
        share(f.counts.controls) if f.counts.n_control else "none apply",
        "none applies" if f.baseline is None or not f.baseline.n else share(f.baseline),
        share(f.counts.excess()),
        "found" if f.found_planted else "NOT FOUND",
    )


def _decisions(audit: Audit) -> Part:
    rows = [
        (d.recipient, d.criterion, d.word, "" if d.threshold is None else f"{d.threshold:g}", "; ".join(d.reasons))
        for d in audit.decisions
    ]
    who = [
        f"{r.name}: {r.description or 'no description'}{'' if r.asks else ' (does not ask)'}"
        for r in audit.appetite.recipients
    ]
    sure = f"All decisions hold together with a confidence of {audit.appetite.confidence:.0%}."
    return Part(
        "Verdict per recipient and criterion",
        [sure],
        who,
        ("recipient", "criterion", "verdict", "threshold", "why"),
        rows,
    )


def _leaving(audit: Audit) -> Part:
    leaves, promise = audit.leaves, audit.promise
    quasi, others = (", ".join(leaves[key]) or "none" for key in ("quasi_identifiers", "others"))
    points = [f"What others may know of people (quasi-identifiers): {quasi}.", f"What else leaves: {others}."]
    if leaves.get("suppressed"):
        points.append(f"{leaves['suppressed']:,} rows were left out.")
    if "own_values" in leaves:
        points.append(f"Values of the person who asks: {leaves['own_values']}.")
    points.append(f"Promise: {promise['text']}")
    points.append(f"Proof: {promise['proof']}" if promise.get("proof") else "There is no proof of it.")
    return Part("What leaves, and what is promised", points=points)


def _sizes(run: Sequence[Finding]) -> list[Part]:
    sized = [f for f in run if f.sets is not None]
    if not sized:
        return []
    labels = list(sized[0].sets.shares) if sized[0].sets else []
    rows = [
        (f.attack, str(f.sets.least), f"{f.sets.average_risk:.3f}", *(f"{f.sets.shares[n]:.1%}" for n in labels))
        for f in sized
        if f.sets is not None
    ]
    return [
        Part(
            "How many people it could be",
            ["Of everything released that fits anybody. Few things are shown as five."],
            header=("by", "fewest", "average risk", *("1 person" if n == "1" else f"{n} people" for n in labels)),
            rows=rows,
            drawing=sizes_picture(sized),
            caption="Share of released things by the number of people that they may speak of.",
        )
    ]


def _curves(run: Sequence[Finding]) -> list[Part]:
    curves = {f.attack: f.curve for f in run if f.curve}
    rows = [(f.attack, name, share(e)) for f in run if f.curve for name, e in f.detail.items()]
    remarks = [f"{f.attack}: {text}" for f in run for text in f.remarks]
    if not curves:
        return [Part("What could not be measured", points=remarks)] if remarks else []
    caption = "Members recognised against controls taken for members, both on logarithmic axes."
    header = ("attack", "figure", "value")
    return [
        Part("Who was in the data", remarks, header=header, rows=rows, drawing=roc_picture(curves), caption=caption)
    ]


def _worst(run: Sequence[Finding], audit: Audit) -> list[Part]:
    groups = [f for f in run if f.worst is not None]
    if not groups:
        return []
    rows = [
        (f.attack, f.worst.group, str(f.worst.counts.n), share(f.worst.excess())) for f in groups if f.worst is not None
    ]
    said = (
        f"Groups by '{audit.asked['by']}' of at least 20 people; the one in which each attack succeeds most, with an "
        f"interval that is sure for all groups together."
    )
    return [Part("The worst-off group", [said], header=("attack", "group", "cases", "excess"), rows=rows)]


def _groups(audit: Audit) -> list[Part]:
    groups = audit.beside.get("groups")
    if not groups:
        return []
    said = f"Groups by '{audit.asked['by']}' of at least 20 people who ask. The intervals are sure for all together."
    rows = [
        (g, str(f["asked"]), share(estimate_from(f["answered"])), number(estimate_from(f["changes"])))
        for g, f in groups.items()
    ]
    header = ("group", "asked", "got an answer", "changes asked for")
    return [Part("How groups fare", [said], header=header, rows=rows)]


def _influence(audit: Audit) -> list[Part]:
    found = audit.beside.get("influence")
    if not found:
        return []
    said = (
        f"Differential inference test: a learner predicts {_named(found)} from the release made with and without "
        f"one person's record. A small distance is no guarantee; nothing is decided on it."
    )
    if "why" in found:
        return [Part("What one person's record changes", [said, f"It was not run: {str(found['why']).rstrip('.')}."])]
    rows = [("mean distance", number(estimate_from(found["mean"])))]
    rows += [(f"people above {at}", share(estimate_from(e))) for at, e in found["above"].items()]
    rows.append(("predictions that change", share(estimate_from(found["changed_predictions"]))))
    header = (f"{found['learner']}, {found['tested']:,} people", "")
    return [Part("What one person's record changes", [said], header=header, rows=rows)]


def influence_line(audit: Audit) -> str:
    """What became of the differential inference test, in a line; nothing where it is not about what leaves."""
    found = audit.beside.get("influence")
    if not found:
        return ""
    if "why" in found:
        return f"Differential inference test: not run: {str(found['why']).rstrip('.')}."
    return (
        f"Differential inference test on {found['tested']:,} people, predicting '{found['column']}': mean distance "
        f"{number(estimate_from(found['mean']))}; nothing is decided on it."
    )


def _named(found: Mapping[str, Any]) -> str:
    return "a column" if found["column"] is None else f"'{found['column']}'"


def _standing(audit: Audit) -> list[Part]:
    made = audit.provenance
    packages = ", ".join(f"{n} {v}" for n, v in made["packages"].items())
    parameters = ", ".join(f"{k}={v}" for k, v in made["made"].get("parameters", {}).items()) or "not said in it"
    maker = made["made"].get("protector") or made["made"].get("explainer") or made["made"].get("format")
    file = made.get("file", {})
    rows = [
        ("file", file.get("name", "none: it was audited where it was made")),
        *([("SHA-256 of the file", file["sha256"])] if "sha256" in file else []),
        ("made by", str(maker or "not said in it")),
        ("parameters", parameters),
        ("digest of the schema", str(made["schema"])),
        ("versions", f"countervail {made['countervail']}, Python {made['python']}, {packages}"),
        ("chance", str(made["chance"])),
        ("time", f"{made['seconds']:g} s" + ("" if made["time_limit"] is None else f" of {made['time_limit']:g} s")),
        ("valid until", str(made["expires"])),
    ]
    return [
        Part("How it was measured", texts.METHODS),
        Part("What this does not show", points=texts.LIMITS),
        Part("A new look is needed when", points=texts.TRIGGERS),
        Part("Where it fits in", header=("framework", "in this dossier"), rows=texts.CROSSWALK),
        Part("Provenance", header=("", ""), rows=rows),
        Part("To be filled in", blanks=texts.FIELDS),
    ]


def share(e: Estimate) -> str:
    """A share with its interval."""
    if e.n == 0 or e.value != e.value:
        return "none"
    low = "-" if e.low == float("-inf") else f"{e.low:z.1%}"
    return f"{e.value:z.1%} [{low}, {e.high:z.1%}] (n={e.n:,})"


def number(e: Estimate) -> str:
    """A mean with its interval."""
    if e.n == 0 or e.value != e.value:
        return "none"
    return f"{e.value:.3g} [{e.low:.3g}, {e.high:.3g}] (n={e.n:,})"
