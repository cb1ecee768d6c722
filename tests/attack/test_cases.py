"""What attacks count: an answer once, however many people got it, and people once, however many rows they have."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.shared.cases import first_of_each
from countervail.attack.shared.persons import one_row_each, owners, people_fitting, thinned, without_members
from countervail.attack.shared.planted import explained, open_explanations, open_release
from countervail.attack.shared.released import value_sets
from countervail.core.errors import ParameterError
from countervail.testing import small_model, small_table

TABLE, CONTROL = small_table(120), small_table(120, seed=1)
OTHERS = small_table(40, seed=2)


def handed_out(records, asked, seed=0):
    """Some records, each handed to many askers."""
    which = np.random.default_rng(seed).integers(len(records), size=asked)
    which[: len(records)] = np.arange(len(records))
    askers = small_table(asked, seed=seed + 100)
    return explained(askers.features, records.features.iloc[which].reset_index(drop=True), TABLE)


def visits(seed, people=60, rows=None):
    """People with one to ten rows each, who keep their age and city."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.integers(1, 11, people) if rows is None else rows)
    n = len(who)
    frame = pd.DataFrame(
        {
            "id": [f"p-{seed}-{w}" for w in who],
            "age": rng.integers(20, 90, people)[who],
            "city": rng.integers(0, 40, people)[who],
            "ill": rng.choice(["no", "flu", "cold", "gout"], n),
            "income": rng.normal(50, 20, people).round(1)[who],
        }
    )
    frame["ok"] = np.where(frame["income"] > 50, "yes", "no")
    frame = frame.iloc[rng.permutation(n)].reset_index(drop=True)
    return cv.Table.from_frame(
        frame,
        target="ok",
        favourable="yes",
        identifiers=["id"],
        quasi_identifiers=["age", "city"],
        sensitive=["ill"],
    )


@pytest.mark.parametrize("attack", [cv.attack.Reidentification(), cv.attack.SinglingOut("whole")])
def test_an_answer_that_many_got_is_one_case(attack):
    found = attack.run(handed_out(OTHERS.take([0, 1, 2]), 67), TABLE, CONTROL)
    assert found.members.n == found.controls.n == 3


def test_answers_that_say_nothing_are_one_case_where_they_show_the_same():
    blank = handed_out(OTHERS.take([0, 1]), 30)
    own = replace(blank, own=np.ones(blank.counterfactuals.shape, dtype=bool))
    assert len(first_of_each(value_sets(own), ["age"])) == 2
    said = replace(blank, own=~(np.arange(30) < 20)[:, None] & np.ones(blank.counterfactuals.shape, dtype=bool))
    sets = value_sets(said)
    first = first_of_each(sets, ["age", "city"])
    cells = [("said", *r) if i < 20 else ("nothing", *r) for i, r in enumerate(said.counterfactuals.astype(str).values)]
    assert first.tolist() == sorted(cells.index(c) for c in set(cells))


def test_intervals_hold_where_many_harmless_answers_are_equal():
    """A release of three strangers' records, each of whom many askers are told of; members fare as strangers do."""
    held = 0
    for seed in range(40):
        table, control, others = (small_table(n, seed=3 * seed + i) for i, n in ((5, 100), (6, 100), (7, 3)))
        found = cv.attack.Reidentification(share=0.3).run(handed_out(others, 67, seed), table, control).excess
        held += found.low <= 0 <= found.high
    assert held >= 36


def test_attacks_that_ask_count_equal_answers_once():
    few = cv.CFK(k=20).fit(TABLE, small_model)
    asked = CONTROL.features
    answers = few.disclosed(asked)
    shown = answers.counterfactuals.astype(str)[answers.found].drop_duplicates()
    for attack in (cv.attack.Inversion(), cv.attack.Intersection(repeats=2, n_targets=None)):
        found = attack.run(few, TABLE, CONTROL)
        assert found.members.n <= len(shown) < len(found.set_sizes)
    averaged = cv.attack.Averaging(answers=3, n_targets=30).run(few, TABLE, CONTROL)
    assert averaged.members.n <= len(few.explain(asked).counterfactuals.astype(str).drop_duplicates())


ALL = [
    cv.attack.Linkage(),
    cv.attack.Homogeneity(),
    cv.attack.AttributeInference(),
    cv.attack.Linkability(),
    cv.attack.Membership(),
    cv.attack.SinglingOut(),
    cv.attack.SinglingOut("univariate"),
    cv.attack.SinglingOut("whole"),
    cv.attack.Reidentification(),
    cv.attack.RowOrder(),
]


@pytest.mark.parametrize("attack", ALL, ids=lambda a: a.label)
def test_no_more_cases_than_people(attack):
    table, control = visits(0), visits(1)
    found = attack.run(open_release(table), table, control)
    assert 0 < found.members.n <= 60 and found.controls.n <= 60


@pytest.mark.parametrize(
    ("attack", "opened"),
    [
        (cv.attack.Linkage(), open_explanations),
        (cv.attack.SinglingOut(), open_release),
        (cv.attack.SinglingOut("whole"), open_explanations),
        (cv.attack.Reidentification(), open_release),
        (cv.attack.AttributeInference(), open_release),
        (cv.attack.Linkability(), open_release),
        (cv.attack.RowOrder(), open_release),
    ],
    ids=lambda a: getattr(a, "label", ""),
)
def test_people_whose_rows_are_alike_are_found_in_open_data(attack, opened):
    """Five rows with the same quasi-identifiers are one person's, and no crowd."""
    table, control = visits(2, rows=5), visits(3, rows=5)
    found = attack.run(opened(table), table, control)
    assert found.members.value > 0.4 and found.excess.low > 0.05


@pytest.mark.parametrize("attack", ALL, ids=lambda a: a.label)
def test_whoever_has_a_row_among_the_members_is_no_control(attack):
    table, control = visits(4), visits(5)
    mixed = control.with_frame(pd.concat([control.frame, table.frame.iloc[::3]], ignore_index=True), control.schema)
    told = [attack.run(open_release(table), table, c).to_dict() for c in (control, mixed)]
    assert told[0] == told[1]


def test_members_alone_are_no_controls():
    table = visits(6)
    with pytest.raises(ParameterError, match="all of them have rows among the members"):
        without_members(table.take(np.arange(10)), table)


def test_one_row_of_everybody_is_drawn():
    table = visits(7)
    drawn = one_row_each(table, 0)
    assert sorted(drawn.frame["id"]) == sorted(set(table.frame["id"]))
    merged = drawn.frame.merge(table.frame.drop_duplicates(), how="left", indicator=True)
    assert (merged["_merge"] == "both").all()
    assert owners(drawn) is None and one_row_each(drawn, 1) is drawn


def test_people_in_a_region_are_counted_as_a_slow_twin_counts():
    table = visits(8)
    sets = value_sets(cv.Mondrian(k=2).fit(table).protect(table))
    person = owners(table)
    slow = [len(set(person[row])) for row in sets.covers(table.frame)]
    assert people_fitting(sets, table.frame, person).tolist() == slow


def test_outcomes_that_weigh_less_keep_their_shares():
    table = visits(9, rows=5)
    outcomes = np.repeat([0, 1, 7], [100, 50, 150])
    fewer = thinned(outcomes, table)
    assert 55 <= len(fewer) <= 65  # five rows of each of 60 people, who may fare alike
    assert abs((fewer == 1).mean() - 50 / 300) < 0.02
    assert thinned(outcomes, TABLE) is outcomes


def test_intervals_hold_where_people_have_several_rows():
    """A table of other people, each with as many rows: it says nothing of members that it does not say of strangers."""
    held = {a.label: 0 for a in ALL if a.name in ("singling-out", "attribute-inference", "linkability")}
    for seed in range(12):
        table, control, others = (visits(1000 + 3 * seed + i, people=40) for i in range(3))
        for attack in ALL:
            if attack.label in held:
                found = attack.run(open_release(others), table, control).excess
                held[attack.label] += found.low <= 0 <= found.high
    assert min(held.values()) >= 10, held


def test_an_audit_counts_people():
    table, control = visits(10), visits(11)
    told = cv.audit(
        open_release(table), table, control=control, attacks=["linkage", "singling-out"], jobs=1, budget=None
    )
    assert any("attacks count people" in text for text in told.caveats)
    assert told["linkage (prosecutor)"].counts.n == told["linkage (prosecutor)"].counts.n_control == 60
    assert told.verdict == "reject"


def test_open_answers_of_people_with_several_rows_speak_of_one_person():
    table, control = visits(12, rows=4), visits(13, rows=4)
    found = cv.attack.Linkage().run(open_explanations(table), table, control)
    assert np.median(found.set_sizes) == 1 and found.members.value > 0.8
