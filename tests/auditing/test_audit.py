"""Audits of releases and explainers: open data is found, nothing is found in nothing, and no pass is unearned."""

import dataclasses
import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import registry
from countervail.attack import OracleAttack
from countervail.attack.shared.planted import explained, open_explanations, open_release
from countervail.auditing import battery
from countervail.auditing.battery import Setting, Step, carry_out, fitting_attacks, in_order, run_battery
from countervail.auditing.finding import LEFT_OUT
from countervail.auditing.gate import check_gate
from countervail.auditing.groups import part_of
from countervail.auditing.subject import read_subject
from countervail.core.errors import ParameterError, RefusedError, SchemaError
from countervail.testing import small_model, small_table

QUICK = ["linkage", "singling-out", "membership"]


def audit(what, halves, **more):
    members, others = halves
    given = {"jobs": 1, "budget": None, "attacks": QUICK, **more}
    return cv.audit(what, members, control=others, **given)


def test_plain_counterfactuals_are_rejected_by_singling_out_and_private_ones_are_not_rejected(rejected, kept):
    assert rejected.verdict == "reject" and kept.verdict != "reject"
    words = {d.criterion: d.word for d in rejected.decisions}
    assert words["singling out"] == words["maximum risk"] == "reject"
    assert {d.criterion: d.word for d in kept.decisions}["maximum risk"] == "release"
    assert all(f.found_planted for f in (*rejected.findings, *kept.findings) if f.status == "run")


@pytest.mark.parametrize("opened", [open_explanations, open_release])
def test_open_data_is_found(halves, opened):
    made = audit(opened(halves[0]), halves)
    assert made.verdict == "reject"
    assert made["singling-out"].counts.excess().low > 0.3


def test_a_release_that_says_the_same_of_everybody_gives_nothing(halves):
    members, _ = halves
    cells = members.features.iloc[[0] * len(members)].reset_index(drop=True)
    wide = pd.DataFrame({n: [frozenset(members.frame[n])] * len(cells) for n in ("city", "level")})
    cells = cells.assign(**wide, age=[pd.Interval(20, 80, closed="both")] * len(cells))
    constant = explained(members.features, cells, members)
    made = audit(constant, halves)
    assert made.verdict != "reject"
    assert all(f.counts.excess().low <= 0 for f in made.findings)


def test_an_attack_finds_its_leak_and_unrelated_attacks_find_nothing_in_nothing(halves):
    members, others = halves
    subject = read_subject(open_explanations(members), members, others)
    attacks = fitting_attacks(subject)
    assert {type(a).name for a in attacks} >= {"linkage", "singling-out", "membership", "attribute-inference"}
    setting = Setting(subject, members, attacks)
    for i, attack in enumerate(attacks):
        done = carry_out(setting, Step(i, "planted"))
        assert done.outcome == "run" and done.result.excess.low > 0, attack.label


def test_quick_attacks_come_before_patient_ones_and_each_after_its_planted_leak(halves):
    members, others = halves
    oracle = cv.NICE(target="favourable").fit(members, small_model)
    subject = read_subject(oracle, members, others)
    setting = Setting(subject, members, fitting_attacks(subject))
    plan = in_order(setting)
    assert len(plan) == len(set(plan)) == 2 * len(setting.attacks)
    assert all(plan.index(Step(i, "planted")) < plan.index(Step(i, "real")) for i in range(len(setting.attacks)))

    def places(keep):
        return [plan.index(Step(i, "real")) for i, a in enumerate(setting.attacks) if keep(a)]

    asks = places(lambda a: isinstance(a, OracleAttack))
    patient = places(lambda a: registry.fact(type(a), "for_small_tables"))
    reads = set(places(lambda a: True)) - {*asks, *patient}
    assert max(reads) < min(asks) and max(asks) < min(patient)


def test_a_leak_too_small_to_be_found_is_no_leak_that_was_missed_when_the_time_is_up(halves, monkeypatch):
    members, others = halves
    subject = read_subject(open_explanations(members), members, others)
    setting = Setting(subject, members, (cv.attack.SinglingOut("univariate"), cv.attack.Linkage()))

    def planted_only(setting, plan, until):
        return (carry_out(setting, step) for step in plan if step.on == "planted")

    monkeypatch.setattr(battery, "_one_by_one", planted_only)
    few, waiting = run_battery(setting)
    assert few.planted.n < 20 and few.status == "does not apply"
    assert waiting.status == "not run" and waiting.why.startswith("the time was up")


class LeaksToOneCity:
    """Answers everybody with the asker's own row, but people of city a with somebody's record."""

    def __init__(self, table):
        self.table = table

    def explain(self, rows):
        rows = pd.DataFrame(rows).reset_index(drop=True)
        cells = rows.copy().astype(object)
        leak = np.flatnonzero(rows["city"] == "a")
        for place, i in enumerate(leak):
            cells.iloc[i] = self.table.features.iloc[place % len(self.table)].to_numpy()
        return explained(rows, cells.infer_objects(), self.table)


def test_a_leak_to_the_askers_of_one_group_is_seen_in_that_group():
    members, others = small_table(1500).split(test_size=0.7, random_state=0)
    made = audit(LeaksToOneCity(members), (members, others), by="city", attacks=["singling-out"])
    worst = made["singling-out"].worst
    assert worst.group == "a" and worst.of == 3
    assert made["singling-out"].counts.excess().low <= 0 < worst.excess().low


def test_published_inline_noise_is_rejected_for_its_claim(halves):
    members, _ = halves
    with pytest.warns(cv.PrivacyWarning):
        inline = cv.published.InlineDP(epsilon=1.0).fit(members, small_model)
    made = audit(inline, halves, attacks=["linkage"])
    assert [c.refuted for c in made.claims] == [True]
    assert made.verdict == "reject"


def test_answers_alone_are_no_pass_for_a_recipient_who_asks(halves):
    members, others = halves
    answers = cv.CFK(k=10).fit(members, small_model).explain(others)
    tried = [*QUICK, "reidentification", "intersection"]
    asking = {"version": 1, "recipients": {"public": {"singling_out": 1.0}}}
    reading = {"version": 1, "recipients": {"reader": {"singling_out": 1.0, "asks": False}}}
    words = [audit(answers, halves, attacks=tried, appetite=a).verdict for a in (asking, reading)]
    assert words == ["not shown", "release"]


def test_no_time_gives_no_pass(halves, plain):
    made = audit(plain, halves, budget=1e-6)
    assert made.verdict == "void"
    assert {f.status for f in made.findings} == {"not run"}


def test_an_attack_that_takes_too_long_is_interrupted_in_this_process_too(halves, plain, monkeypatch):
    def patient(self, release, table, control):
        while True:
            pass

    monkeypatch.setattr(cv.attack.Membership, "figures", patient)
    made = audit(plain, halves, attacks=["linkage", "membership"], budget=0.5)
    assert made["membership"].status == "not run" and made.verdict != "release"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_processes_find_what_one_process_finds(halves, plain, rejected):
    made = audit(plain, halves, jobs=2, attacks=["linkage"])
    assert [(f.attack, f.counts) for f in made.findings if f.why != LEFT_OUT] == [
        ("linkage (prosecutor)", rejected["linkage"].counts)
    ]


def test_what_cannot_be_sent_to_a_process_stays_in_this_one(halves, rejected):
    members, _ = halves
    lock = __import__("threading").Lock()

    def model(frame):
        with lock:
            return small_model(frame)

    made = audit(cv.NICE(target="favourable").fit(members, model), halves, jobs=2)
    assert made.verdict == rejected.verdict


def test_a_process_that_is_killed_fails_its_attacks_and_earns_no_pass(halves, plain):
    here = os.getpid()

    class Deadly:
        def explain(self, rows):
            if os.getpid() != here:
                os._exit(1)
            return plain.explain(rows)

    made = audit(Deadly(), halves, attacks=["linkage", "averaging"], jobs=2)
    broken = [f for f in made.findings if f.status == "failed"]
    assert broken and all("ended from outside" in f.why for f in broken)
    assert made.verdict != "release"
    assert any(not g.passed for g in check_gate(made, [], verdict=True))


def test_controls_who_are_members_are_refused(halves, plain):
    members, _ = halves
    with pytest.raises(ParameterError, match="equal to members by their identifiers"):
        cv.audit(plain, members, control=members)
    nameless = [cv.Table(t.frame.drop(columns="id"), t.schema.without_identifiers()) for t in halves]
    both = cv.Table(pd.concat([t.frame for t in nameless], ignore_index=True), nameless[0].schema)
    with pytest.raises(ParameterError, match="in every column"):
        cv.audit(plain, nameless[0], control=both)


def test_controls_who_asked_are_not_compared_with(halves, plain):
    members, others = halves
    answers = plain.explain(others.features.iloc[:150])
    subject = read_subject(answers, members, others)
    assert len(subject.strangers) == len(others) - 150
    with pytest.raises(ParameterError, match="did not ask"):
        cv.audit(plain.explain(others), members, control=others)


@pytest.mark.parametrize(
    "given, says",
    [
        ({"appetite": 3}, "'appetite'"),
        ({"budget": "soon"}, "'budget'"),
        ({"budget": -1}, "'budget'"),
        ({"attacks": ["tickle"]}, "'attacks'"),
        ({"answers": 0}, "'answers'"),
        ({"jobs": 0}, "'jobs'"),
        ({"by": "income"}, "at most 20 values"),
        ({"by": "colour"}, "'by'"),
    ],
)
def test_what_cannot_be_done_is_said_by_the_name_of_the_parameter(halves, plain, given, says):
    with pytest.raises(ParameterError, match=says):
        audit(plain, halves, **given)


def test_too_few_people_are_refused(halves, plain):
    members, others = halves
    with pytest.raises(ParameterError, match="at least 20 people"):
        cv.audit(plain, members, control=others.take(np.arange(5)))
    with pytest.raises(ParameterError, match="a Table"):
        cv.audit(plain, members, control=others.frame)


class Raises:
    """An explainer whose error tells a person's income."""

    def explain(self, rows):
        raise ValueError("income 52.3")


def test_an_explainer_that_raises_is_named_without_what_it_said(halves):
    with pytest.raises(RefusedError, match="ValueError") as raised:
        audit(Raises(), halves)
    assert "52.3" not in str(raised.value)


def test_something_else_is_no_subject(halves, plain):
    with pytest.raises(ParameterError, match="'what'"):
        audit(3, halves)
    ledger = cv.Ledger(dataset="x", epsilon=4.0)
    with pytest.raises(ParameterError, match="without a ledger"):
        audit(cv.PrivateHistograms(ledger=ledger), halves)


def test_explanations_of_another_table_are_refused(halves):
    other = open_explanations(cv.load("toy_credit"))
    with pytest.raises((ParameterError, SchemaError), match="does not have"):
        audit(other, halves)


def test_an_attack_that_breaks_is_said_to_have_failed_and_decides_nothing(halves, plain, monkeypatch):
    def broken(self, *given):
        raise ZeroDivisionError("income 52.3")

    monkeypatch.setattr(registry.attacks()["linkage"], "guess", broken)
    made = audit(plain, halves, attacks=["linkage"])
    assert made.verdict == "void" and "52.3" not in made.to_json()
    assert [(f.status, f.why) for f in made.findings if f.why != LEFT_OUT] == [
        ("failed", "it raised ZeroDivisionError")
    ]


def test_a_part_of_the_answers_is_that_part(halves, plain):
    answers = plain.explain(halves[1].features.iloc[:40])
    rows = np.arange(len(answers)) % 2 == 0
    part = part_of(answers, rows)
    assert len(part) == rows.sum()
    assert [x.sentence for x in part] == [x.sentence for x, kept in zip(answers, rows) if kept]
    assert dataclasses.replace(part).audit is None


def test_a_dossier_names_the_page_that_proves_the_promise_and_says_where_there_is_none(halves, kept, rejected):
    members, others = halves
    assert kept.promise["proof"] == "docs/decisions/reciprocal-groups.md"
    assert rejected.promise["proof"] is None
    exact = cv.CFK(k=10, search="exact").fit(members, small_model).explain(others.take(range(60)))
    tables = (cv.Mondrian(k=10), "mondrian-guarantee"), (cv.Microaggregation(k=10), "microaggregation")
    subjects = [(exact, "k-anonymity-register"), *((m.fit(members).protect(members), page) for m, page in tables)]
    for subject, page in subjects:
        found = cv.audit(subject, members, control=others, jobs=1, attacks=["linkage"], budget=None)
        assert found.promise["proof"] == f"docs/decisions/{page}.md"
        assert (Path(__file__).parents[2] / found.promise["proof"]).is_file()
