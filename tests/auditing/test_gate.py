"""Gates close on what is worse than allowed, and on whatever cannot be told."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from countervail.auditing.finding import TIME_UP, Counts
from countervail.auditing.gate import Condition, check_gate, junit
from countervail.core.errors import ParameterError


def test_a_condition_on_the_upper_end_closes_where_it_is_above(rejected, kept):
    text = "linkage.excess.upper > 0.05"
    assert not Condition.parse(text).check(rejected).passed
    assert Condition.parse(text).check(kept).passed
    assert not Condition.parse("linkage.members.value >= 0").check(kept).passed


def test_an_attack_that_was_not_run_closes_the_gate(kept):
    assert not Condition.parse("tickle.excess.upper > 0.5").check(kept).passed
    late = replace(kept, findings=tuple(replace(f, status="not run", why="late") for f in kept.findings))
    gate = Condition.parse("linkage.excess.upper > 0.5").check(late)
    assert not gate.passed and "late" in gate.why


@pytest.mark.parametrize(
    "text",
    ["linkage", "linkage.excess > 1", "linkage.excess.upper > ", "linkage.luck.upper > 1", "a.excess.top > 1", ""],
)
def test_what_is_no_condition_is_refused_by_the_flag(text):
    with pytest.raises(ParameterError, match="--fail-if"):
        Condition.parse(text)


def test_nothing_may_get_worse_than_a_baseline_beyond_its_interval(rejected, kept):
    assert all(g.passed for g in check_gate(kept, [], kept, verdict=False))
    assert not all(g.passed for g in check_gate(rejected, [], kept, verdict=False))
    gone = replace(kept, findings=kept.findings[:1])
    assert not all(g.passed for g in check_gate(gone, [], kept, verdict=False))


def test_a_void_audit_closes_every_gate(kept):
    void = replace(kept, findings=tuple(replace(f, planted=Counts(0, 50, 0, 50)) for f in kept.findings))
    assert [g.passed for g in check_gate(void, [], verdict=False)] == [False]


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "failed", "why": "it raised MemoryError"},
        {"status": "not run", "why": TIME_UP},
        {"why": f"{TIME_UP} for 2 of 5 groups"},
    ],
)
def test_a_verdict_counts_on_its_attacks(kept, changed):
    def gates(name, asks=True):
        found = tuple(replace(f, **changed) if f.attack.startswith(name) else f for f in kept.findings)
        recipients = tuple(replace(r, asks=asks) for r in kept.appetite.recipients)
        tried = replace(kept, findings=found, appetite=replace(kept.appetite, recipients=recipients))
        return [g for g in check_gate(tried, [], verdict=True) if not g.passed]

    assert [(g.name, g.why) for g in gates("linkage (p")] == [("linkage (prosecutor) was carried out", changed["why"])]
    assert not gates("nothing")
    none = [g for g in check_gate(replace(kept, findings=()), [], verdict=True) if g.passed]
    assert not none


def test_junit_shows_what_failed_and_why(rejected):
    gates = check_gate(rejected, ["linkage.excess.upper > 0.05"], verdict=True)
    tree = ElementTree.fromstring(junit(gates))
    assert (tree.attrib["tests"], tree.attrib["failures"]) == ("2", "2")
    assert "excess.upper" in tree.find("testcase/failure").attrib["message"]
