"""Explainers and releases that hide what they give away: none of them is released."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.shared.planted import explained, open_release
from countervail.auditing.finding import LEFT_OUT, TIME_UP, UNSTEADY
from countervail.auditing.result import verify
from countervail.auditing.subject import check_controls
from countervail.core.errors import ParameterError, RefusedError
from countervail.testing import small_table

ATTACKS = ["linkage", "singling-out", "reidentification"]
APPETITE = {"version": 1, "recipients": {"public": {"singling_out": 0.2, "max_risk": 0.1}}}

READING = {"version": 1, "recipients": {"reader": {**APPETITE["recipients"]["public"], "asks": False}}}


@pytest.fixture(scope="module")
def people():
    return small_table(800).split(test_size=0.5, random_state=0)


def tried(what, people, **more):
    given = {"attacks": ATTACKS, "jobs": 1, "budget": None, "appetite": APPETITE, **more}
    return cv.audit(what, people[0], control=people[1], **given)


class Silent:
    """Answers everybody with their own row, said to be theirs; `spoil` is what a subclass does to that."""

    def __init__(self, table):
        self.table, self.calls = table, 0

    def explain(self, rows):
        self.calls += 1
        rows = pd.DataFrame(rows).reset_index(drop=True)
        honest = replace(explained(rows, rows.copy(), self.table), own=np.ones(rows.shape, dtype=bool))
        return self.spoil(honest, rows)

    def spoil(self, e, rows):
        return e

    def records(self, rows):
        return self.table.features.iloc[np.arange(len(rows)) % len(self.table)].reset_index(drop=True)


def opened(e, records):
    return replace(e, counterfactuals=records, own=np.zeros(records.shape, dtype=bool))


class CallsThemOwn(Silent):
    def spoil(self, e, rows):
        # The same person for the same asker, whatever stands around her.
        at = rows["age"].to_numpy() % len(self.table)
        return replace(e, counterfactuals=self.table.features.iloc[at].reset_index(drop=True))


class CallsThemNone(Silent):
    def spoil(self, e, rows):
        at = rows["age"].to_numpy() % len(self.table)
        shown = opened(e, self.table.features.iloc[at].reset_index(drop=True))
        return replace(shown, status=pd.Series(["no_counterfactual"] * len(rows), dtype=object))


class ChangesWhoAsked(Silent):
    def spoil(self, e, rows):
        return replace(e, counterfactuals=self.records(rows), factuals=self.records(rows))


class LeaksOnTheThirdCall(Silent):
    def spoil(self, e, rows):
        return opened(e, self.records(rows)) if self.calls == 3 else e


class LeaksByThePlaceInTheBatch(Silent):
    def spoil(self, e, rows):
        cells = e.counterfactuals.copy()
        cells.iloc[-1] = self.table.features.iloc[0]
        return replace(e, counterfactuals=cells)


class RefusesLater(Silent):
    def spoil(self, e, rows):
        if self.calls > 13:  # three questions of many people, ten of one
            raise RefusedError("income 52.3")
        return e


class TellsInNotes(Silent):
    def spoil(self, e, rows):
        return replace(e, notes=tuple("somebody earns 52.3" for _ in range(len(e))))


class TellsInALimit(Silent):
    def spoil(self, e, rows):
        return replace(e, notes=tuple("There would be one without income 52.3." for _ in range(len(e))))


class TellsInCaveats(Silent):
    def spoil(self, e, rows):
        return replace(e, caveats=("income 52.3",))


class TellsInTheOrderOfColumns(Silent):
    def spoil(self, e, rows):
        return replace(e, counterfactuals=e.counterfactuals[list(e.counterfactuals.columns)[::-1]])


class TellsInAColumn(Silent):
    def spoil(self, e, rows):
        cells = e.counterfactuals.assign(note="income 52.3")
        return replace(e, counterfactuals=cells, own=np.ones(cells.shape, dtype=bool))


class TellsIdentifiers(Silent):
    def spoil(self, e, rows):
        cells = e.counterfactuals.assign(id=self.table.frame["id"].iloc[0])
        return replace(e, counterfactuals=cells, own=np.ones(cells.shape, dtype=bool))


def test_who_gives_nothing_away_is_released(people):
    assert tried(Silent(people[0]), people, appetite=READING).verdict == "release"


def test_nobody_passes_for_attacks_that_were_left_out(people):
    made = tried(Silent(people[0]), people)
    left = {f.attack for f in made.findings if f.why == LEFT_OUT}
    assert {"averaging", "intersection"} <= left and not any(n.startswith(("linkage", "singling", "row")) for n in left)
    assert made.verdict == "not shown"
    assert any("averaging was not run: it was left out" in why for d in made.decisions for why in d.reasons)
    assert any(step.startswith("Audit it without naming attacks: left out were") for step in made.steps)
    assert "it was left out" in made.to_html()
    some = tried(Silent(people[0]), people, appetite=READING, attacks=ATTACKS[:2])
    assert some.verdict == "not shown" and "reidentification was not run: it was left out" in str(some)


@pytest.mark.parametrize("kind", [CallsThemOwn, CallsThemNone])
def test_records_are_found_whatever_is_said_of_them(people, kind):
    made = tried(kind(people[0]), people)
    assert made.verdict == "reject"
    assert {d.criterion: d.word for d in made.decisions}["maximum risk"] == "reject"


@pytest.mark.parametrize("kind", [ChangesWhoAsked, TellsInAColumn, TellsIdentifiers])
def test_answers_about_other_rows_columns_or_names_are_refused(people, kind):
    with pytest.raises((RefusedError, ParameterError), match=r"other rows|does not have|identifiers"):
        tried(kind(people[0]), people)


def test_a_leak_to_whoever_asks_last_is_found_though_others_get_nothing(people):
    made = tried(LeaksByThePlaceInTheBatch(people[0]), people)
    assert made.verdict == "reject" and made["asked twice"].why == UNSTEADY


def test_answers_that_change_make_an_audit_void(people):
    made = tried(LeaksOnTheThirdCall(people[0]), people)
    assert made.verdict == "void" and made.sentence == f"This audit says nothing: {UNSTEADY}."
    assert made["asked twice"].status == "failed" and verify(made.to_json()) == []


def test_an_explainer_that_is_silent_when_attacked_is_no_pass(people):
    made = tried(RefusesLater(people[0]), people, attacks=["linkage", "singling-out", "intersection"])
    assert made.verdict == "not shown"
    assert made["intersection"].status == "failed"
    assert made["intersection"].why == "what is audited raised RefusedError when it was asked"
    assert "52.3" not in made.to_json()


@pytest.mark.parametrize("kind", [TellsInNotes, TellsInALimit, TellsInCaveats, TellsInTheOrderOfColumns])
def test_what_no_attack_reads_is_no_pass_and_is_not_repeated(people, kind):
    made = tried(kind(people[0]), people)
    assert made.verdict == "not shown"
    assert made["beside the values"].why.startswith("no attack reads this: ")
    assert any("Read what no attack reads" in text for text in made.steps)
    assert "52.3" not in made.to_json() + made.to_html()


def test_notes_that_we_write_are_read(people):
    schema = people[0].schema
    ours = [
        "Without any constraints there would be none either.",
        "There would be one without that 'age' stays as it is.",
        "There would be one without the range of 'age', or the direction of 'income'.",
        "Values that may not change, or not this way, lie outside what is allowed: age, city.",
    ]
    from countervail.core.words.notes import is_written

    assert all(is_written(text, schema) for text in ours)
    assert not is_written("There would be one without that 'Anna' stays as it is.", schema)
    assert not is_written("Values that may not change, or not this way, lie outside what is allowed: Anna.", schema)


def test_a_published_table_with_identifiers_or_strange_columns_is_refused(people):
    made = open_release(people[0])
    named = replace(made, others=made.others.assign(id=people[0].frame["id"].to_numpy()))
    with pytest.raises(ParameterError, match="identifiers"):
        tried(named, people)
    with pytest.raises(ParameterError, match="does not have"):
        tried(replace(made, others=made.others.assign(note="income 52.3")), people)


def test_a_differential_test_that_has_no_time_is_said(people, monkeypatch):
    members, _ = people
    protector = cv.Mondrian(k=10).fit(members)
    assert tried(protector, people, budget=1e-6).beside["influence"]["why"] == TIME_UP

    def patient(self, *given, **more):
        while True:
            pass

    monkeypatch.setattr(cv.DifferentialInferenceTest, "run", patient)
    made = tried(protector, people, attacks=["linkage"], budget=3)
    assert made.beside["influence"]["why"] == TIME_UP
    assert "It was not run: the time was up." in made.to_html()


def test_groups_that_had_no_time_are_said_and_no_pass(people, monkeypatch):
    from countervail.auditing import battery

    def hasty(setting, plan, until, jobs=1):
        for step in plan:
            if step.on == "group" and step.group == 0:
                continue
            yield battery.carry_out(setting, step)

    monkeypatch.setattr(battery, "_one_by_one", hasty)
    made = tried(Silent(people[0]), people, by="city")
    assert made["linkage"].why == "the time was up for 1 of 3 groups"
    assert made.verdict == "not shown" and any("Let the audit run longer" in text for text in made.steps)


def test_what_does_not_apply_is_said(people):
    made = tried(open_release(people[0]), people)
    assert made["singling-out (changed values)"].status == "does not apply"
    assert "Rows of a table change nothing" in made["singling-out (changed values)"].why


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("how", ["rounded", "jittered"])
def test_controls_who_are_members_under_noise_or_rounding_are_refused(people, how, named):
    members, others = people
    rng = np.random.default_rng(0)
    frame = members.frame.assign(id=[f"new-{i}" for i in range(len(members))])
    income = frame["income"].round(0) if how == "rounded" else frame["income"] + rng.normal(0, 1e-3, len(frame))
    twins = cv.Table(frame.assign(income=income), members.schema)
    given = [members, twins, others]
    if not named:
        given = [cv.Table(t.frame.drop(columns="id"), t.schema.without_identifiers()) for t in given]
    with pytest.raises(ParameterError, match="equal to members in every column"):
        cv.audit(open_release(given[0]), given[0], control=given[1], jobs=1)
    check_controls(given[0], given[2])


@pytest.mark.parametrize("seed", range(5))
def test_people_of_the_same_kind_are_no_twins(seed):
    for table in (small_table(300, seed=seed), cv.load("german_credit")):
        check_controls(*table.split(test_size=0.5, random_state=seed))
