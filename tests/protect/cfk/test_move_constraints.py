"""Constraints on private answers hold for every value of every cell; several answers differ; both keep the promise."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from moves_twin import REWARDS, Twin, labels, people, permuted, scores

import countervail as cv
from countervail.core.words.notes import say_note
from countervail.protect.cfk.moves.relax import NOTHING_HELPS

pytestmark = pytest.mark.usefixtures("quick_groups")


def test_immutable_columns_count_for_nothing_and_the_fewest_others_move(seeds):
    compared = 0
    for seed in seeds(5, 300):
        table, queries, model = people(seed, 20), people(seed + 500, 6).features, labels(seed)
        protector = cv.CFK(k=3, immutable=["age", "ill"]).fit(table, model)
        twin = Twin(
            table, protector.search_.row_group_, protector.search_.sealed_.sealed.regions, model, ["age", "ill"]
        )
        e = protector.explain(queries)
        for i in np.flatnonzero(e.status != "already_favourable"):
            best = twin.best(queries.iloc[int(i)].to_dict(), "sparsity")
            if best is not None:
                compared += 1
                assert len(e[int(i)].changes) == best[0]
    assert compared > 3


def test_an_own_value_out_of_range_must_move():
    moved = 0
    for seed in range(6):
        table, queries = people(seed, 40), people(seed + 500, 20)
        e = cv.CFK(k=3, ranges={"pay": (3, 7)}).fit(table, labels(seed)).explain(queries)
        for answer in (a for a in e if a.found):
            assert ("pay" in answer.changes) or answer.factual["pay"] >= 3
            moved += answer.factual["pay"] < 3
    assert moved > 3


def test_whoever_breaks_an_immutable_range_gets_no_answer():
    seen = 0
    for seed in range(4):
        table, queries = people(seed, 40), people(seed + 500, 30)
        e = cv.CFK(k=3, ranges={"pay": (3, 7)}, immutable=["pay"]).fit(table, labels(seed)).explain(queries)
        low = (queries.frame["pay"] < 3).to_numpy() & (e.status != "already_favourable").to_numpy()
        assert (e.status[low] == "no_counterfactual").all()
        seen += low.sum()
    assert seen > 3


def test_everything_immutable_is_refused():
    table = people(1, 40)
    with pytest.raises(ValueError, match="'immutable' parameter of CFK must be less than all feature columns"):
        cv.CFK(k=3, immutable=table.schema.features).fit(table, labels(1))


@pytest.mark.parametrize("reward", REWARDS)
def test_several_answers_differ_and_hold(reward, seeds):
    several, apart = 0, 0
    for seed in seeds(5, 200):
        table, queries = people(seed, 50), people(seed + 500, 12)
        model = (labels if seed % 2 else scores)(seed)
        one = cv.CFK(k=3, reward=reward).fit(table, model).explain(queries)
        e = cv.CFK(k=3, reward=reward, n_counterfactuals=3).fit(table, model).explain(queries)
        assert (cv.measure.pureness(e, model)[e.found] == 1).all()
        assert e.guarantee.refute(e, table) is None
        for q in range(len(queries)):
            answers = [e[int(i)] for i in np.flatnonzero((e.query == q) & e.found)]
            assert (len(answers) > 0) == bool(one.found[q])
            if answers:
                assert answers[0].to_text() == one[q].to_text()
            said = [tuple(sorted((n, str(c)) for n, c in a.changes.items())) for a in answers]
            assert len(set(said)) == len(said)
            assert not any(set(a) < set(b) for a in said for b in said)
            several += len(answers) == 3
            apart += len(answers) > 1 and not set(answers[0].changes) & set(answers[1].changes)
    assert several > 5 and apart > 5


def test_later_answers_take_other_features_first():
    """Pay alone and debt alone lead to the decision: the second answer leaves the first one's feature as it is."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 60, 80), "pay": rng.integers(0, 9, 80), "debt": rng.integers(0, 9, 80)}
    )
    frame["ok"] = np.where((frame["pay"] > 6) | (frame["debt"] < 3), "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])

    def model(rows):
        return np.where((rows["pay"] > 6) | (rows["debt"] < 3), "yes", "no")

    e = cv.CFK(k=4, n_counterfactuals=3).fit(table, model).explain({"age": 30, "pay": 2, "debt": 8})
    moved = [set(a.changes) for a in e]
    assert sorted(map(sorted, moved[:2])) == [["debt"], ["pay"]]
    assert len(moved) == 3 and len({a.sentence for a in e}) == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"immutable": "age"}, "'immutable' parameter of CFK must be a list"),
        ({"immutable": ["height"]}, "'immutable' parameter of CFK"),
        ({"ranges": {"pay": (7, 2)}}, "'ranges' parameter of CFK"),
        ({"monotone": {"pay": "sideways"}}, "'monotone' parameter of CFK"),
        ({"monotone": {"city": "up"}}, "has no order"),
        ({"forbidden": {"city": ["a"]}}, "'forbidden' parameter of CFK"),
        ({"n_counterfactuals": 0}, "'n_counterfactuals' parameter of CFK"),
        ({"n_counterfactuals": 2, "reward": "none"}, "'n_counterfactuals' parameter of CFK must be left out"),
        ({"immutable": ["age"], "reward": "none"}, "'immutable' parameter of CFK must be left out"),
        ({"reward": "speed"}, "'reward' parameter of CFK must be one of"),
    ],
)
def test_bad_constraints_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        cv.CFK(k=3, **parameters).fit(people(0, 40), labels(0))


# ---------------------------------------------------------------- which constraint stands in the way


def test_without_an_answer_the_fewest_constraints_to_give_up_are_named(seeds):
    """Checked against every set of constraints, each fitted by itself."""
    every = {"immutable": ["pay", "debt"], "ranges": {"age": (24, 30)}, "monotone": {"level": "up"}}
    words = {
        "that 'pay' stays as it is": lambda c: {**c, "immutable": [n for n in c["immutable"] if n != "pay"]},
        "that 'debt' stays as it is": lambda c: {**c, "immutable": [n for n in c["immutable"] if n != "debt"]},
        "the range of 'age'": lambda c: {**c, "ranges": {}},
        "that 'level' does not go down": lambda c: {**c, "monotone": {}},
    }
    told = 0
    for seed in seeds(4, 100):
        table, queries, model = people(seed, 30), people(seed + 500, 15).features, scores(seed)
        e = cv.CFK(k=3, **every).fit(table, model).explain(queries)
        for i in np.flatnonzero(e.status == "no_counterfactual"):
            note = e[int(i)].note
            assert say_note(note, e.schema, "en", e[int(i)].factual) in e[int(i)].to_text()
            helping: list[set[str]] = []  # all smallest sets
            for size in range(1, 5):
                for chosen in combinations(words, size) if not helping or size == len(helping[0]) else ():
                    left = every
                    for word in chosen:
                        left = words[word](left)
                    if cv.CFK(k=3, **left).fit(table, model).explain(queries.iloc[[int(i)]]).found[0]:
                        helping.append(set(chosen))
            if helping:
                told += 1
                assert {word for word in words if word in note} in helping
            else:
                assert note == NOTHING_HELPS
    assert told > 3


def test_a_value_that_may_not_be_left_is_told_from_steps_that_are_ruled_out():
    rows = pd.DataFrame(
        {"age": [30, 31, 32] * 20, "gain": [0.0, 500.0, 900.0] * 20, "pet": ["none", "cat", "dog"] * 20}
    )
    rows["rich"] = np.where(rows["gain"] >= 900, "yes", "no")
    table = cv.Table.from_frame(rows, target="rich", favourable="yes", quasi_identifiers=["age"])

    def notes(**limits):
        made = cv.CFK(k=3, **limits).fit(table, lambda x: np.where(x["gain"] >= 900, "yes", "no"))
        return made.explain(table.features.head(2)).notes

    assert (
        notes(forbidden={"gain": [(0, "*"), (500, "*")]})
        == ("There would be one without that 'gain' keeps its value.",) * 2
    )
    assert notes(forbidden={"gain": [("*", 900)]}) == ("There would be one without the forbidden steps of 'gain'.",) * 2
    assert notes(monotone={"gain": "down"}) == ("There would be one without that 'gain' does not go up.",) * 2


@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_projected_answers_name_the_constraint_too(search):
    table, queries = people(2, 30), people(502, 15)
    limits = {"immutable": [n for n in table.schema.features if n != "ill"]}
    e = cv.CFK(k=3, search=search, **limits).fit(table, scores(2)).explain(queries)
    notes = {a.note for a in e if a.status == "no_counterfactual"}
    assert any(note.startswith("There would be one without that '") for note in notes)


@pytest.mark.parametrize("search", ["groups", "exact", "grasp"])
def test_without_advice_the_answers_are_the_same(search):
    table, queries = people(2, 30), people(502, 15)
    limits = {"immutable": [n for n in table.schema.features if n != "ill"]}
    protector = cv.CFK(k=3, search=search, **limits).fit(table, scores(2))
    told, untold = protector.explain(queries), protector.unadvised(queries)
    advice = [bool(note) and not found for note, found in zip(told.notes, told.found)]
    assert any(advice) and told.found.any()
    assert untold.counterfactuals.equals(told.counterfactuals) and untold.status.equals(told.status)
    assert (untold.own == told.own).all() and untold.after.equals(told.after)
    said = untold.notes or [""] * len(advice)
    assert [s for s, a in zip(said, advice) if not a] == [s for s, a in zip(told.notes, advice) if not a]
    assert not any(s.startswith("There would be one") for s in said)


def test_advice_does_not_change_when_private_vectors_are_permuted(seeds):
    limits = {"immutable": ["pay", "debt", "ill"], "monotone": {"age": "up", "level": "up"}}
    advised = 0
    for seed in seeds(5, 200):
        table, queries, model = people(seed, 30), people(seed + 500, 12).features, scores(seed)
        first = cv.CFK(k=3, **limits).fit(table, model)
        again = cv.CFK(k=3, **limits).fit(permuted(table, first.search_.row_group_, seed), model)
        a, b = first.explain(queries), again.explain(queries)
        assert a.notes == b.notes
        advised += sum(bool(note) for note in a.notes or ())
    assert advised > 5
