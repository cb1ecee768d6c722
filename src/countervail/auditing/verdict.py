"""The verdict: for each recipient and criterion, is there evidence to reject, evidence to release, or neither?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from countervail.auditing.appetite import CRITERIA, Appetite, Recipient
from countervail.auditing.claims import Claim
from countervail.auditing.finding import ANSWERS_ALONE, LEFT_OUT, TIME_UP, UNSTEADY, Counts, Finding
from countervail.core.stats import Estimate, holm, plain_json

Word = Literal["reject", "not shown", "release", "void"]
WORDS: dict[Word, str] = {
    "reject": "The evidence speaks against letting this leave.",
    "not shown": "Open: the attacks do not show that it exposes people more than is accepted, nor that it does not.",
    "release": "The evidence speaks for letting this leave, within what was tested.",
    "void": "This audit says nothing.",
}
_TOLD = "noise is claimed, by which these may be nobody's; it was not at hand to be looked at: audit what draws it"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is decided for one recipient and criterion, and why."""

    recipient: str
    criterion: str
    threshold: float | None
    word: Word
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain JSON data."""
        return plain_json(self)


@dataclass(frozen=True, slots=True)
class _Tested:
    """One attack held against one threshold, with p-values corrected over the battery."""

    above: float
    below: float
    group: float = 1.0  # of the worst-off group, picked out of several: above


def decide(findings: Sequence[Finding], claims: Sequence[Claim], appetite: Appetite) -> tuple[Ruling, ...]:
    """All decisions, decided together: p-values are corrected for all that the battery tests (Holm 1979)."""
    tested = _tests(findings, appetite)
    alpha = 1 - appetite.confidence
    decisions: list[Ruling] = []
    for recipient in appetite.recipients:
        for criterion, threshold in recipient.thresholds.items():
            there = [f for f in findings if f.criterion == criterion and (recipient.asks or not f.asks)]
            decisions.append(_by_attacks(recipient, criterion, threshold, there, tested, alpha))
        decisions += _by_sizes(recipient, findings, claims)
        if recipient.epsilon is not None and claims:
            decisions.append(_by_claims(recipient, recipient.epsilon, claims))
    return tuple(decisions)


def overall(decisions: Sequence[Ruling], findings: Sequence[Finding]) -> Word:
    """The one word: void, else the worst of all decisions; a release only where every one is for it."""
    if any(f.status == "run" and not f.found_planted for f in findings) or not any(f.status == "run" for f in findings):
        return "void"
    words = [d.word for d in decisions]
    if "reject" in words:
        return "reject"
    if any(f.why == UNSTEADY for f in findings):
        return "void"
    return "release" if words and all(w == "release" for w in words) else "not shown"


def why_void(findings: Sequence[Finding]) -> str:
    """Why an audit says nothing."""
    missed = [f.attack for f in findings if f.status == "run" and not f.found_planted]
    if missed:
        return f"This audit says nothing: the leak that was planted for it was not found by {', '.join(missed)}."
    if not any(f.status == "run" for f in findings):
        return f"This audit says nothing: no attack was carried out ({'; '.join(_whys(findings)) or 'none applies'})."
    return f"This audit says nothing: {UNSTEADY}."


def _whys(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(f.why for f in findings if f.why not in ("", LEFT_OUT) and f.status != "does not apply"))[
        :3
    ]


def open_steps(findings: Sequence[Finding], appetite: Appetite) -> tuple[str, ...]:
    """What would settle what is open: somebody to ask, more people, more time."""
    tested, alpha = _tests(findings, appetite), 1 - appetite.confidence
    left = [f for f in findings if f.status == "not run" and any(r.asks or not f.asks for r in appetite.recipients)]
    asking = [f.attack for f in left if f.why == ANSWERS_ALONE]
    waiting = [f.attack for f in (*left, *findings) if f.why.startswith(TIME_UP)]
    waiting = list(dict.fromkeys(waiting))
    spared = [f.attack for f in left if f.why == LEFT_OUT]
    beside = [f.why.partition(": ")[2] for f in left if f.why not in (ANSWERS_ALONE, LEFT_OUT, TIME_UP)]
    few = [(people_needed(t, alpha, len(tested)), f.counts.n) for f in findings for (a, t) in tested if a == f.attack]
    few = [(least, n) for least, n in few if n < least]
    said = []
    if asking:
        said.append(
            f"Audit the fitted explainer, or the file that it was saved to, in the place of its answers: "
            f"{', '.join(asking)} can only be tried by asking it."
        )
    if few:
        said.append(
            f"Ask about more people and hold out more: some attacks had {min(n for _, n in few):,} cases, and it takes "
            f"{max(least for least, _ in few):,} members and as many controls to show that little is exposed."
        )
    if waiting:
        said.append(f"Let the audit run longer: the time was up for {', '.join(waiting)}.")
    if spared:
        said.append(f"Audit it without naming attacks: left out were {', '.join(spared)}.")
    if beside:
        said.append(f"Read what no attack reads, or leave it out: {'; '.join(beside)}.")
    return tuple(said)


def undecided(appetite: Appetite) -> tuple[str, ...]:
    """On what an appetite decides nothing: where it has no threshold, or one that accepts everything."""
    said = []
    for r in appetite.recipients:
        free = [c for c in CRITERIA if r.thresholds.get(c, 1.0) >= 1]
        free += ["maximum risk"] if r.max_risk is None or r.max_risk >= 1 else []
        if free:
            said.append(
                f"Mind that nothing was decided for {r.name} about {', '.join(free)}: the appetite has no threshold "
                f"there, or one that accepts everything."
            )
    return tuple(said)


def people_needed(threshold: float, alpha: float, tests: int) -> int:
    """How many members, with as many controls, it takes to show that nothing lies above a threshold."""
    if threshold <= 0:
        return 0
    n = 1
    while Counts(0, n, 0, n).p_value(threshold, "below") * tests >= alpha and n < 10**6:
        n = max(n + 1, int(n * 1.1))
    return n


def _tests(findings: Sequence[Finding], appetite: Appetite) -> dict[tuple[str, float], _Tested]:
    """Each attack that was run, held against each threshold once."""
    wanted = {
        (f.attack, t): f
        for r in appetite.recipients
        for f in findings
        if f.status == "run" and (r.asks or not f.asks) and (t := r.thresholds.get(f.criterion)) is not None
    }
    worst = {key: f.worst for key, f in wanted.items() if f.worst is not None}
    above = holm(
        [f.counts.p_value(t, "above") for (_, t), f in wanted.items()]
        + [min(1.0, g.of * g.counts.p_value(t, "above")) for (_, t), g in worst.items()]
    )
    below = holm([f.counts.p_value(t, "below") for (_, t), f in wanted.items()])
    groups = dict(zip(worst, above[len(wanted) :]))
    return {key: _Tested(a, b, groups.get(key, 1.0)) for key, a, b in zip(wanted, above, below)}


def _by_attacks(
    recipient: Recipient,
    criterion: str,
    threshold: float,
    there: Sequence[Finding],
    tested: dict[tuple[str, float], _Tested],
    alpha: float,
) -> Ruling:
    def made(word: Word, reasons: Sequence[str]) -> Ruling:
        return Ruling(recipient.name, criterion, threshold, word, tuple(reasons))

    run = [f for f in there if f.status == "run" and f.found_planted]
    rejected = [f for f in run if tested[f.attack, threshold].above < alpha]
    exposed = [f for f in run if f.worst is not None and tested[f.attack, threshold].group < alpha]
    if rejected or exposed:
        said = [f"{f.attack}: {_figure(f.counts.excess())} is shown to be above {threshold:g}" for f in rejected]
        said += [
            f"{f.attack}, in the group '{g.group}': {_figure(g.excess())} is shown to be above {threshold:g}"
            for f in exposed
            if (g := f.worst) is not None
        ]
        return made("reject", said)
    open_ones = [f"{f.attack} was not run: {f.why}" for f in there if f.status in ("not run", "failed")]
    open_ones += [f"{f.attack}: {f.why}" for f in run if f.why]
    open_ones += [
        f"{f.attack} did not find the leak planted for it" for f in there if f.status == "run" and f not in run
    ]
    unsure = [f for f in run if tested[f.attack, threshold].below >= alpha]
    least = people_needed(threshold, alpha, len(tested))
    few = [f for f in unsure if f.counts.n < least]
    open_ones += [
        f"{f.attack}: {_figure(f.counts.excess())} may be above {threshold:g}" for f in unsure if f not in few
    ]
    if few:
        each = ", ".join(f"{f.attack} ({f.counts.n:,})" for f in few)
        open_ones.append(f"too few cases to show anything below {threshold:g}, for which it takes {least:,}: {each}")
    if open_ones or not run:
        return made("not shown", open_ones or ["no attack of this kind applies"])
    return made(
        "release", [f"{f.attack}: {_figure(f.counts.excess())} is shown to be below {threshold:g}" for f in run]
    )


def _by_sizes(recipient: Recipient, findings: Sequence[Finding], claims: Sequence[Claim]) -> list[Ruling]:
    """The largest and the average risk, counted on everything that was released; not where noise protects.

    Where noise is only what a file says, or somebody else's code, a row that fits one person may be nobody's or not.
    """
    wishes: list[tuple[str, float | None, Callable[[Finding], float]]] = [
        ("maximum risk", recipient.max_risk, lambda f: f.sets.max_risk if f.sets else 0.0),
        ("average risk", recipient.average_risk, lambda f: f.sets.average_risk if f.sets else 0.0),
    ]
    sized = [
        f
        for f in findings
        if f.status == "run" and f.sets is not None and f.criterion == "singling out" and (recipient.asks or not f.asks)
    ]
    if any(c.noise and c.at_hand for c in claims):  # a row that fits one person may be nobody's
        return []
    told = any(c.noise for c in claims)
    decisions = []
    for criterion, threshold, risk in wishes:
        if threshold is None:
            continue
        above = [f for f in sized if risk(f) > threshold + 1e-12]
        least = {f.attack: f.sets.least for f in sized if f.sets is not None}
        said = [f"{f.attack}: {risk(f):.3g} (at least {people(least[f.attack])})" for f in above or sized]
        word: Word = "reject" if above else "release" if sized else "not shown"
        if above and told:
            word, said = "not shown", [*said, _TOLD]
        decisions.append(Ruling(recipient.name, criterion, threshold, word, tuple(said or ["nothing was counted"])))
    return decisions


def _by_claims(recipient: Recipient, threshold: float, claims: Sequence[Claim]) -> Ruling:
    refuted = [c for c in claims if c.refuted]
    large = [c for c in claims if c.epsilon > threshold]
    open_ones = [c for c in claims if c.audited is None or not c.proven]
    word: Word = "reject" if refuted or large else "not shown" if open_ones else "release"
    return Ruling(recipient.name, "epsilon", threshold, word, tuple(c.said for c in refuted or large or claims))


def people(count: int) -> str:
    """So many people."""
    return "1 person" if count == 1 else f"{count:,} people"


def _figure(e: Estimate) -> str:
    return f"excess {e.value:.3f} [{e.low:.3f}, {e.high:.3f}]"
