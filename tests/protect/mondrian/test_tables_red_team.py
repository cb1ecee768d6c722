"""Attacks on released tables and rules that worked once; none of them may work again."""

import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import RefusedError
from countervail.rules.ruleset import RuleSet


def cells(release):
    return sorted(map(tuple, release.to_text_frame()[["age", "y", "ill"]].to_numpy().tolist()))


def test_new_rows_of_different_classes_do_not_make_up_one_crowd():
    # Cells of the classes p and q share the name 0-2. At 4, q goes elsewhere: the two rows would be told apart.
    fit = pd.DataFrame({"age": [0, 2, 8, 9, 0, 2, 3, 9], "y": list("ppppqqqq"), "ill": list("abcdefgh")})
    table = cv.Table.from_frame(fit, target="y", quasi_identifiers=["age"], sensitive=["ill"])
    made = cv.Mondrian(k=2, by_class=True).fit(table)
    new = pd.DataFrame({"age": [1, 4], "y": ["q", "p"], "ill": ["flu", "HIV"]})
    with pytest.raises(RefusedError):
        made.protect(new)
    # Four illnesses: of two people with the same one, a swap would be the same world counted twice.
    ill = ["flu", "HIV", "cold", "acne"]
    enough = pd.concat([new] * 2, ignore_index=True).assign(ill=ill)
    released = made.protect(enough)
    assert any("one by one" in text for text in released.caveats)
    worlds = set()
    for ills in itertools.permutations(ill):
        for ys in itertools.product("pq", repeat=4):
            try:
                if cells(made.protect(enough.assign(y=ys, ill=ills))) == cells(released):
                    worlds.add((ys, ills))
            except RefusedError:
                continue
    assert len({ills for _, ills in worlds}) == 4, "each of the four hides behind one other"


@pytest.mark.parametrize("more", [{}, {"l": 2, "sensitive": "ill"}])
def test_groups_of_new_rows_are_no_finer_than_what_was_counted(more):
    lines = tuple((v, "north", "*") for v in "abcd") + tuple((v, "south", "*") for v in "wxyz")
    fit = pd.DataFrame(
        {"city": list("aaaaabbbbbcccccdddddwwwwwxxxxx"), "ill": ["flu", "hiv", "cold", "flu", "acne"] * 6}
    )
    table = cv.Table.from_frame(fit, quasi_identifiers=["city"], sensitive=["ill"])
    made = cv.Mondrian(k=8, labels="hierarchy", hierarchies={"city": cv.Hierarchy(lines, "city")}, **more).fit(table)
    new = pd.DataFrame({"city": list("aaaabbbd"), "ill": ["flu"] * 7 + ["hiv"]})
    with pytest.raises(RefusedError):  # all are called north, but the cell of c and d would hold one
        made.protect(new)
    enough = pd.DataFrame({"city": ["a"] * 8 + ["d"] * 9, "ill": ["flu", "hiv"] * 8 + ["flu"]})
    sizes = np.bincount(json.loads(made.protect(enough).to_json())["groups"])
    assert sizes.min() >= 8 and sizes.sum() == 17


@pytest.mark.parametrize("made", [cv.Mondrian(k=5), cv.Mondrian(k=5, mode="local"), cv.Microaggregation(k=5)], ids=str)
def test_many_new_rows_of_one_person_are_no_crowd(made):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(60)], "age": rng.integers(20, 70, 60), "ill": "flu"})
    table = cv.Table.from_frame(frame, identifiers=["id"], quasi_identifiers=["age"], sensitive=["ill"])
    made.fit(table)
    one = pd.DataFrame({"id": ["x1"] * 12, "age": 30, "ill": "HIV"})
    with pytest.raises(RefusedError):  # once 5-anonymous: twelve rows in a class, and one person
        made.protect(one)
    # Six people of whom one has a third of the rows are no five to hide among; five and six with two each are.
    some = pd.DataFrame({"id": ["x1"] * 3 + [f"x{i}" for i in range(2, 8)], "age": 30, "ill": "flu"})
    with pytest.raises(RefusedError):
        made.protect(some)
    twice = pd.DataFrame({"id": [f"y{i % 5}" for i in range(10)], "age": 65, "ill": "flu"})
    release = made.protect(pd.concat([some, twice], ignore_index=True))
    assert len(release) == 10 and release.suppressed == 9
    assert any("some people have several rows" in text for text in release.caveats)
    assert any("another set of rows" in text for text in release.caveats)
    assert len(made.protect(some.drop(columns="id"))) == 9, "without a name every row counts as a person"


def test_levels_of_people_who_were_suppressed_do_not_leave():
    stage = pd.Categorical(["I"] * 10 + ["II"] * 10 + ["IV"], ["I", "II", "IV"], ordered=True)
    frame = pd.DataFrame({"age": [20] * 10 + [21] * 10 + [90], "stage": stage})
    prints = set()
    for last in ("III", "IV"):
        renamed = frame.assign(stage=stage.rename_categories(["I", "II", last]))
        table = cv.Table.from_frame(renamed, quasi_identifiers=["age"], sensitive=["stage"])
        released = cv.Mondrian(k=5, suppress=0.05).fit(table).protect(table)
        assert released.suppressed == 1
        text = released.to_json()
        assert last not in text.replace("II", "") and last.encode() not in pickle.dumps(released).replace(b"II", b"")
        prints.add(json.dumps(released.provenance, sort_keys=True))
    assert len(prints) == 1


@pytest.mark.parametrize("odd", [np.nan, 2.5])
def test_the_dtype_of_a_column_does_not_tell_of_people_who_were_suppressed(odd):
    frame = pd.DataFrame({"age": [20] * 10 + [21] * 10 + [90], "visits": [1, 2] * 10 + [odd]})
    table = cv.Table.from_frame(frame, quasi_identifiers=["age"], sensitive=["visits"])
    released = cv.Mondrian(k=5, suppress=0.05).fit(table).protect(table)
    assert released.suppressed == 1 and released.others["visits"].dtype == np.int64


def test_the_order_of_categories_does_not_tell_who_came_first():
    ill = ["hiv"] + ["flu", "cold", "acne"] * 13
    frame = pd.DataFrame({"age": range(20, 60), "ill": pd.Categorical(ill, list(dict.fromkeys(ill)))})
    table = cv.Table.from_frame(frame, quasi_identifiers=["age"], sensitive=["ill"])
    released = cv.Mondrian(k=5).fit(table).protect(table)
    assert released.others["ill"].cat.categories.tolist() == ["acne", "cold", "flu", "hiv"]


def rare():
    """Forty people without the illness, and one who is alone with it, her age and her town."""
    frame = pd.DataFrame(
        {
            "age": [20] * 20 + [50] * 20 + [35],
            "town": ["A"] * 20 + ["B"] * 20 + ["Hamlet"],
            "ill": ["no"] * 40 + ["HIV"],
        }
    )
    return cv.Table.from_frame(frame, quasi_identifiers=["age", "town"], target="ill")


def test_a_class_and_values_that_no_rule_speaks_of_do_not_leave_with_the_rules():
    made = cv.LERS(k=5).fit(rare())
    assert len(made.rules_) and made.rules_.to_dict()["classes"] == ["no"]
    kept = pickle.dumps(made.rules_)
    assert b"HIV" not in kept and b"Hamlet" not in kept
    shares = made.predict_proba(pd.DataFrame({"age": [np.nan], "town": ["?"]}))
    assert shares.tolist() == [[0.0, 1.0]] and made.classes_.tolist() == ["HIV", "no"]


def test_pattern_tables_do_not_say_whether_there_is_a_rare_class():
    common = rare().frame.assign(ill=["no"] * 21 + ["HIV"] * 20)
    other = cv.Table.from_frame(common, quasi_identifiers=["age", "town"], target="ill")
    words = [
        [c for c in cv.KCommonPatterns(k=5).fit(t).protect(t).caveats if "deleted" not in c] for t in (rare(), other)
    ]
    assert words[0] == words[1]


def test_pruned_rules_predict_what_whole_ones_do(monkeypatch):
    table = cv.load("toy_evaluation")
    pruned = cv.LERS(k=2).fit(table.features, table.target)
    monkeypatch.setattr(RuleSet, "publishable", lambda rules: rules)
    whole = cv.LERS(k=2).fit(table.features, table.target)
    assert len(pruned.rules_) == len(whole.rules_) and pruned.rules_.to_text() == whole.rules_.to_text()
    assert np.array_equal(pruned.scores(table.features), whole.scores(table.features))


def test_written_bounds_hold_everybody_they_are_about():
    x = [0.123456] + [0.1234561 + i * 1e-9 for i in range(9)] + [0.9 + i * 1e-9 for i in range(10)]
    frame = pd.DataFrame({"x": x, "c": ["a"] * 10 + ["b"] * 10})
    table = cv.Table.from_frame(frame, quasi_identifiers=["x"], target="c")
    for line in cv.KCommonPatterns(k=5).fit(table).protect(table).to_text_frame()["x"]:
        low, _, high = str(line).partition("-")
        assert frame["x"].between(float(low), float(high or low)).sum() >= 5
    for rule in cv.LERS(k=5).fit(table).rules_.to_text().splitlines():
        bound = float(rule.split("at most ")[1].split(" ")[0]) if "at most" in rule else None
        assert bound is None or (frame["x"] <= bound).sum() >= 5
