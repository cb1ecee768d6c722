"""What a dossier shows, part by part: the same for the page and for paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countervail.auditing.appetite import CRITERIA
from countervail.auditing.finding import GROUP, Finding, estimate_from
from countervail.auditing.result import Audit
from countervail.auditing.subject import UNKNOWN
from countervail.auditing.verdict import undecided
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
    things = f"{a['answers']:,} explanations" if "answers" in a else f"A table of {a['rows']:,} rows"
    maker = "" if a["name"] == UNKNOWN else f" by '{a['name']}'"
    return (
        f"May this leave? {things}, made{maker} from the records of {a['people']:,} people. Attacked on {a['date']}, "
        f"and compared with {a['controls']:,} people whose records were never used."
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
        Part("What was found", [_CASES] if run else [], header=_HEADER, rows=[_row(f) for f in run]),
        *_left(audit),
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


_CASES = (
    "Each figure has its 95% interval, and the number n of cases behind it. Where several values of each person are "
    "guessed, n is the number of single guesses that would be as sure: it can be larger than the number of people."
)
_HEADER = ("attack", "criterion", "members", "controls", "blind", "excess", "planted leak")


def _left(audit: Audit) -> list[Part]:
    """Attacks without a result, with the reason: those that would apply first."""
    left = [f for f in audit.findings if f.status != "run"]
    rows = [
        (f.attack, f.criterion, f.status, f.why.rstrip(".") + ".")
        for f in sorted(left, key=lambda f: f.status == "does not apply")
    ]
    said = "What was not run, or failed, is no evidence: no criterion is passed while one of its attacks is open."
    header = ("attack", "criterion", "what became of it", "why")
    return [Part("What was not tried", [said], header=header, rows=rows)] if rows else []


def _row(f: Finding) -> Sequence[str]:
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
    sure = (
        f"Excess is how much more an attack achieves on people in the data than on people who never were, as a share "
        f"of what was left to achieve; the threshold is the largest that is accepted. Maximum and average risk are one "
        f"divided by the number of people "
        f"that something may speak of. All decisions hold together, with {audit.appetite.confidence:.0%} confidence."
    )
    return Part(
        "Verdict per recipient and criterion",
        [sure, *undecided(audit.appetite)],
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
    if words := _in_words(promise["data"]):
        points.append(words)
    nothing = promise["data"].get("promise") == "NoGuarantee"
    unproven = "So there is nothing to prove." if nothing else "There is no proof of it."
    points.append(f"Proof: {promise['proof']}" if promise.get("proof") else unproven)
    return Part("What leaves, and what is promised", points=points)


def _in_words(data: Mapping[str, Any]) -> str:
    """What the commonest promises mean, for whoever has not met them."""
    if data.get("promise") == "KAnonymity":
        return (
            f"In plain words: by all that others may know of people, whatever leaves fits at least {data['k']} of them "
            f"alike. It is not promised that these {data['k']} differ in anything else."
        )
    if data.get("promise") == "DifferentialPrivacy":
        return "In plain words: what leaves would have been about as likely without the record of any one person."
    return ""


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
            [
                "Of everything that leaves and fits somebody: how many people it fits. One to four things are counted "
                "as five, so that no small number tells of anybody: shares may add up to more than 100%."
            ],
            header=("by", "fewest", "average risk", *("1 person" if n == "1" else f"{n} people" for n in labels)),
            rows=rows,
            drawing=sizes_picture(sized),
            caption="Share of released things by the number of people that they may speak of.",
        )
    ]


def _curves(run: Sequence[Finding]) -> list[Part]:
    curves = {f.attack: f.curve for f in run if f.curve}
    rows = [
        (f.attack, name, share(e)) for f in run if f.curve for name, e in f.detail.items() if not name.startswith(GROUP)
    ]
    open_ones = [f"{f.attack}: {f.why}." for f in run if f.why]
    remarks = [f"{f.attack}: {text}" for f in run for text in f.remarks if f.curve]
    beside = [f"{f.attack}: {text}" for f in run for text in f.remarks if not f.curve]
    parts = [Part("What must be said beside the figures", points=[*open_ones, *beside])] if open_ones or beside else []
    if not curves:
        return parts
    caption = "Members recognised against controls taken for members, both on logarithmic axes."
    header = ("attack", "figure", "value")
    return [
        *parts,
        Part("Who was in the data", remarks, header=header, rows=rows, drawing=roc_picture(curves), caption=caption),
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
    each = [
        (f.attack, name.removeprefix(GROUP), share(e))
        for f in groups
        for name, e in f.detail.items()
        if name.startswith(GROUP)
    ]
    parts = [Part("The worst-off group", [said], header=("attack", "group", "cases", "excess"), rows=rows)]
    if each:
        fair = "Where two intervals do not meet, the one group is more exposed than the other."
        parts.append(Part("How exposed each group is", [fair], header=("attack", "group", "excess"), rows=each))
    return parts


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
