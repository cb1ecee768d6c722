"""Gates: conditions that a release must meet before it goes on, for pipelines. What cannot be decided fails."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from countervail.auditing.finding import TIME_UP, Finding
from countervail.auditing.result import Audit
from countervail.core.cells import visible
from countervail.core.errors import ParameterError

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_RATES = ("members", "controls", "excess")
_ENDS = {"value": "value", "lower": "low", "upper": "high"}
_FORM = "such as 'linkage.excess.upper > 0.05' (members, controls or excess; value, lower or upper)"


@dataclass(frozen=True, slots=True)
class GateResult:
    """One condition: its name, whether it is passed, and why not."""

    name: str
    passed: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """`attack.rate.end sign number`: fails where that holds, or where it cannot be told."""

    text: str
    attack: str
    rate: str
    end: str
    sign: str
    number: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """A condition as it is written on the command line."""
        number = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
        found = re.fullmatch(rf"\s*([\w-]+)\.(\w+)\.(\w+)\s*(>=|<=|>|<)\s*({number})\s*", text)
        if found is None or found[2] not in _RATES or found[3] not in _ENDS:
            raise ParameterError(f"--fail-if takes a condition {_FORM}. Got '{text}'.")
        return cls(text.strip(), found[1], found[2], found[3], found[4], float(found[5]))

    def check(self, audit: Audit) -> GateResult:
        """Whether the gate opens."""
        there = [f for f in audit.findings if self.attack in (f.attack, f.attack.partition(" ")[0])]
        if not there:
            return GateResult(self.text, False, f"no attack '{self.attack}' was run")
        # One way of an attack that does not apply is no reason; if none of them applies, nothing is known.
        for f in [f for f in there if f.status != "does not apply"] or there:
            if f.status != "run":
                return GateResult(self.text, False, f"{f.attack} was not run: {f.why or f.status}")
            value = getattr(_estimate(f, self.rate), _ENDS[self.end])
            if math.isnan(value) or _SIGNS[self.sign](value, self.number):
                return GateResult(self.text, False, f"{f.attack}: {self.rate}.{self.end} is {value:.4g}")
        return GateResult(self.text, True)


def check_gate(
    audit: Audit, conditions: Sequence[str], baseline: Audit | None = None, *, verdict: bool
) -> list[GateResult]:
    """All conditions: those named, nothing worse than a baseline, and the verdict where an appetite is given.

    A verdict counts on its attacks: one that broke or had no time closes the gate.
    """
    gates = [Condition.parse(text).check(audit) for text in conditions]
    if audit.verdict == "void":
        gates.append(GateResult("the audit is valid", False, audit.sentence))
    elif verdict:
        gates.append(GateResult("the verdict is no rejection", audit.verdict != "reject", audit.sentence))
        gates += [GateResult(f"{f.attack} was carried out", False, f.why) for f in audit.findings if _missed(f, audit)]
    if baseline is not None:
        gates += [_compared(f, audit) for f in baseline.findings if f.status == "run"]
    return gates


def _missed(f: Finding, audit: Audit) -> bool:
    """Whether an attack that some recipient is judged by broke, or had no time for all of it."""
    counts = any(f.criterion in r.thresholds and (r.asks or not f.asks) for r in audit.appetite.recipients)
    late = f.status == "not run" and f.why.startswith(TIME_UP)
    return counts and (f.status == "failed" or late or (f.status == "run" and bool(f.why)))


def _compared(before: Finding, audit: Audit) -> GateResult:
    """Worse beyond the intervals: the new one begins above where the old one ends."""
    name = f"{before.attack} is no worse than before"
    now = next((f for f in audit.findings if f.attack == before.attack), None)
    if now is None or now.status != "run":
        return GateResult(name, False, "it was not run this time")
    old, new = before.counts.excess(), now.counts.excess()
    if new.low > old.high:
        return GateResult(
            name, False, f"excess {new.value:.3g} [{new.low:.3g}, ...] after {old.value:.3g} [..., {old.high:.3g}]"
        )
    if before.sets is not None and now.sets is not None and now.sets.least < before.sets.least:
        return GateResult(
            name, False, f"something speaks of {now.sets.least} people, before of at least {before.sets.least}"
        )
    return GateResult(name, True)


def junit(gates: Sequence[GateResult]) -> str:
    """The gates as JUnit XML, which build servers show."""
    failed = sum(not g.passed for g in gates)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuite name="countervail audit" tests="{len(gates)}" failures="{failed}" errors="0">')
    for g in gates:
        lines.append(f'  <testcase classname="countervail.audit" name={quoteattr(visible(g.name))}>')
        if not g.passed:
            lines.append(f"    <failure message={quoteattr(visible(g.why))}/>")
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def _estimate(f: Finding, rate: str) -> object:
    return f.counts.excess() if rate == "excess" else getattr(f.counts, rate)
