"""k-common pattern tables: the promise, what patterns say, and what is refused."""

from functools import reduce
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.errors import ParameterError, RefusedError, SchemaError
from countervail.protect.patterns.compose import pick_company, pick_rules
from countervail.rules import Inducer
from countervail.rules.induce import conclude
from countervail.rules.inputs import build_value_table
from countervail.testing import protector_checks

VARIANTS = [("max", False), ("max", True), ("min", False), ("min", True)]


@st.composite
def tables(draw, classes="xyz"):
    n = draw(st.integers(6, 30))
    columns = {
        "p": st.integers(0, 3),
        "c": st.sampled_from("abc"),
        "s": st.sampled_from(["low", "mid", "high"]),
        "y": st.sampled_from(classes),
    }
    frame = pd.DataFrame({name: draw(st.lists(cells, min_size=n, max_size=n)) for name, cells in columns.items()})
    frame.loc[: len(classes) - 1, "y"] = list(classes)
    frame["s"] = pd.Categorical(frame["s"], ["low", "mid", "high"], ordered=True)
    return cv.Table.from_frame(frame, target="y")


def released(table, k, variant):
    """The release, or None where no rule has enough support."""
    try:
        return cv.KCommonPatterns(k, *variant, random_state=0).fit(table).protect(table)
    except RefusedError:
        return None


@given(tables(), st.integers(2, 5), st.sampled_from(VARIANTS))
def test_every_pattern_has_k_supporters(table, k, variant):
    release = released(table, k, variant)
    if release is not None:
        counts = [sum(_fits(row, cells) for row in table.frame.to_dict("records")) for cells in _cells(release)]
        assert min(counts) >= k
        assert release.guarantee.refute(release, table) is None


@given(tables(), st.integers(2, 5), st.sampled_from(VARIANTS))
def test_patterns_say_of_an_explained_row_what_the_rules_say(table, k, variant):
    release = released(table, k, variant)
    if release is None:
        return
    values = build_value_table(table.features, table.target, table.schema, "test")
    known = conclude(Inducer(values).supported(k), values)[values.group]
    everything = (1 << len(values.classes)) - 1
    deleted = 0
    for row, rules_say in zip(table.features.to_dict("records"), known.tolist()):
        matching = [cells["y"] for cells in _cells(release) if _fits(row, {n: cells[n] for n in row})]
        if not matching:
            deleted += 1
            assert rules_say == everything
            continue
        patterns_say = frozenset.intersection(*[c if isinstance(c, frozenset) else frozenset({c}) for c in matching])
        assert patterns_say == {c for i, c in enumerate(values.classes) if rules_say >> i & 1}
    assert deleted == release.suppressed


@given(tables(), st.integers(2, 4))
def test_spreading_only_widens(table, k):
    plain, wide = (released(table, k, v) for v in (("max", False), ("max", True)))
    if plain is not None:
        assert wide is not None and wide.suppressed == plain.suppressed
        for cells in _cells(plain):
            assert any(all(_parts(cells[n]) <= _parts(w[n]) for n in cells) for w in _cells(wide))


@given(tables(), st.integers(2, 4), st.sampled_from(VARIANTS))
def test_the_order_of_the_rows_does_not_matter(table, k, variant):
    one, other = released(table, k, variant), released(table.take(np.arange(len(table))[::-1]), k, variant)
    assert (one is None) == (other is None)
    if one is not None:
        assert sorted(one.regions.text()) == sorted(other.regions.text())


@pytest.mark.parametrize("example", cv.KCommonPatterns.examples(), ids=str)
def test_the_contract_of_protectors_holds(example):
    for check in protector_checks(example):
        check(example)


def test_deleted_rows_are_counted():
    frame = pd.DataFrame({"a": ["x"] * 5 + ["y"] * 5 + ["z"], "y": ["p"] * 5 + ["q"] * 5 + ["p"]})
    table = cv.Table.from_frame(frame, target="y")
    release = cv.KCommonPatterns(k=3).fit(table).protect(table)
    assert release.suppressed == 1 and len(release) == 2
    assert any(text.startswith("1 row(s) were deleted") for text in release.caveats)


def test_two_classes_work_and_the_release_says_what_is_lost():
    table = cv.load("german_credit")
    release = cv.KCommonPatterns(k=5).fit(table).protect(table)
    assert release.guarantee.refute(release, table) is None
    assert any("two classes" in text for text in release.caveats)


def test_a_class_below_k_appears_only_with_others():
    table = cv.load("toy_evaluation")
    release = cv.KCommonPatterns(k=2).fit(table).protect(table)
    assert not (release.to_frame()["evaluation"] == "medium").any()
    assert any("fewer than k rows" in text for text in release.caveats)


def test_identifiers_stay_behind():
    try:
        table = cv.load("zoo")
    except cv.CountervailError:
        pytest.skip("zoo is not on this machine")
    release = cv.KCommonPatterns(k=5).fit(table).protect(table)
    assert "name" not in release.to_frame() and "name" not in release.schema
    assert not any(animal in release.to_json() for animal in ("aardvark", "wren"))


def test_the_promise_is_not_k_anonymity_and_says_so():
    promise = cv.KCommonPatterns(k=7).guarantee()
    assert promise == cv.KCommonality(7)
    assert "7-commonality" in str(promise) and "may fit fewer" in str(promise) and "anonym" not in str(promise)


def test_a_pattern_of_too_few_people_is_refuted():
    table = cv.load("toy_evaluation")
    regions = cv.Regions.from_cells(table.frame.astype(object).to_dict("records")[:2], table.schema)
    n = len(regions)
    raw = cv.Release(regions, np.arange(n), pd.DataFrame(index=range(n)), table.schema, cv.KCommonality(2))
    assert raw.guarantee.refute(raw, table) == "2 of 2 patterns fit fewer than k=2 people; the least fits 1"


def test_the_fewest_rules_win_then_the_first():
    conclusions = [0b011, 0b110, 0b010, 0b010]
    assert pick_rules((0, 1), conclusions) == (0, 1)
    assert pick_rules((0, 1, 2), conclusions) == (2,)
    assert pick_rules((3, 0, 1), conclusions) == (3,)
    assert pick_rules((0,), conclusions) == (0,)


@given(st.lists(st.integers(1, 31), min_size=1, max_size=7))
def test_the_smallest_subset_is_that_of_brute_force(conclusions):
    rules = range(len(conclusions))
    goal = reduce(lambda a, b: a & b, conclusions)
    sets = (c for size in rules for c in combinations(rules, size + 1))
    best = next(c for c in sets if reduce(lambda a, b: a & b, (conclusions[i] for i in c)) == goal)
    found = pick_rules(rules, conclusions)
    assert [conclusions[i] for i in found] == [conclusions[i] for i in best]


@given(st.data())
def test_company_is_ranked_by_equal_values_and_then_by_order(data):
    n = data.draw(st.integers(2, 8))
    values = np.array(data.draw(st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n), min_size=2, max_size=3)))
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    alike, k, row = data.draw(st.booleans()), data.draw(st.integers(2, 4)), data.draw(st.integers(0, n - 1))
    found = pick_company(values.astype(float), weight, np.arange(n), row, k, alike).tolist()
    same = [(values[:, i] == values[:, row]).sum() for i in range(n)]
    people = [i for i in sorted(range(n), key=lambda i: -same[i] if alike else same[i]) for _ in range(weight[i])]
    people.remove(row)
    assert found[0] == row
    assert {tuple(values[:, i]) for i in found} == {tuple(values[:, i]) for i in [row, *people[: k - 1]]}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"k": 1}, "'k' parameter of KCommonPatterns must be a whole number of at least 2"),
        ({"k": 2.5}, "'k' parameter"),
        ({"k": 7}, "at most the number of rows, 6"),
        ({"objects": "both"}, "'objects' parameter"),
        ({"max_union": 0, "k": 2}, "'max_union' parameter"),
    ],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(ParameterError, match=words):
        cv.KCommonPatterns(**parameters).fit(cv.load("toy_evaluation"))


def test_other_rows_than_the_fitted_ones_are_refused():
    table = cv.load("toy_evaluation")
    with pytest.raises(ParameterError, match="its patterns say nothing of other rows"):
        cv.KCommonPatterns(k=2).fit(table).protect(table.take([0, 1]))


def test_a_table_without_target_is_refused():
    with pytest.raises(SchemaError, match="lacks a target"):
        cv.KCommonPatterns(k=2).fit(cv.Table.from_frame(pd.DataFrame({"a": [1, 2]})))


def test_nothing_leaves_when_no_rule_has_support():
    table = cv.Table.from_frame(pd.DataFrame({"a": list("abcd"), "y": list("pqpq")}), target="y")
    with pytest.raises(RefusedError, match="Nothing has left"):
        cv.KCommonPatterns(k=3).fit(table)


def _cells(release):
    return release.to_frame().to_dict("records")


def _fits(row, cells):
    return all(row[n] in _parts(c) for n, c in cells.items())


def _parts(cell):
    if isinstance(cell, pd.Interval):
        return frozenset(range(int(cell.left), int(cell.right) + 1))
    return cell if isinstance(cell, frozenset) else frozenset({cell})
