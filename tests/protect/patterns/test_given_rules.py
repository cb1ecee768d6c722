"""Pattern tables of rules that somebody brings: the paper's own, learnt ones read back, and rules with exceptions."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.rules import read_rules

TOY = cv.load("toy_evaluation")
# Table 2 of Inuiguchi, Ichida, Torra (2019), "Imprecise rules found in Table 1": I1 to I6.
TABLE_2 = [
    {"if": {"sex": "female"}, "then": ["low", "medium"]},
    {"if": {"occupation": "engineer"}, "then": ["low", "medium"]},
    {"if": {"sex": "male"}, "then": ["low", "high"]},
    {"if": {"occupation": "salesman"}, "then": ["low", "high"]},
    {"if": {"domicile": "Fukuoka"}, "then": ["medium", "high"]},
    {"if": {"sex": "male", "occupation": "salesman"}, "then": ["medium", "high"]},
]


M, F, MF = (frozenset(v) for v in (["male"], ["female"], ["male", "female"]))
S, E, SE = (frozenset(v) for v in (["salesman"], ["engineer"], ["salesman", "engineer"]))
TOK, OSA, FUK = (frozenset([v]) for v in ("Tokyo", "Osaka", "Fukuoka"))
LH, LM, MH = (frozenset(v) for v in (["low", "high"], ["low", "medium"], ["medium", "high"]))
_BOTH = [(M, S, TOK | OSA, LH), (M, S, OSA | FUK, MH), (MF, S, TOK, LH), (M, S, TOK | FUK, MH)]
_BOTH += [(F, SE, TOK | FUK, LM), (MF, E, OSA | FUK, LM), (MF, SE, FUK, MH)]
TABLE_5 = {
    "max": [*_BOTH, (M, SE, OSA, LH), (M, S, OSA | FUK, LH)],
    "min": [*_BOTH, (MF, S, TOK | OSA, LH), (M, SE, TOK | OSA, LH), (M, SE, OSA | FUK, LH)],
}


def shown(release):
    return sorted(release.regions.text())


def test_the_rules_of_table_2_have_the_support_that_the_paper_says():
    """All imprecise rules shown in Table 2 are 2-anonymous rules."""
    found = read_rules(TABLE_2, TOY)
    assert found.support.tolist() == [2, 2, 4, 4, 2, 3]
    assert found[5].sentence == "If sex is male and occupation is salesman then evaluation is high or medium."


def by_the_definition(rows, rules, k, objects):
    """The patterns of nominal columns by (ii), (s1)-(s5), without (s6), row by row: sets of (column, values)."""
    out = set()
    rows = sorted(rows, key=lambda r: tuple(map(str, r.values())))
    for i, u in enumerate(rows):
        mine = [r for r in rules if all(fits(u[n], c) for n, c in r["if"].items()) and u["evaluation"] in r["then"]]
        if not mine:
            continue
        goal = frozenset.intersection(*(frozenset(r["then"]) for r in mine))
        chosen = next(
            c
            for size in range(1, len(mine) + 1)
            for c in combinations(mine, size)
            if frozenset.intersection(*(frozenset(r["then"]) for r in c)) == goal
        )
        for r in chosen:
            named = r["if"].items()
            others = [
                v
                for j, v in enumerate(rows)
                if j != i and all(fits(v[n], c) for n, c in named) and v["evaluation"] in r["then"]
            ]
            sign = -1 if objects == "max" else 1
            company = [u, *sorted(others, key=lambda v: sign * sum(v[n] == u[n] for n in v if n != "evaluation"))][:k]
            cells = {n: frozenset(v[n] for v in company) for n in u}
            cells |= {n: frozenset([c] if isinstance(c, str) else c["any_of"]) for n, c in named}
            cells["evaluation"] = frozenset(r["then"])
            out.add(frozenset(cells.items()))
    return out


def patterns(release):
    cells = release.to_frame().to_dict("records")
    return {frozenset((n, c if isinstance(c, frozenset) else frozenset({c})) for n, c in row.items()) for row in cells}


@pytest.mark.parametrize("objects", ["max", "min"])
def test_patterns_of_the_rules_of_table_2_are_those_of_the_definition(objects):
    made = cv.KCommonPatterns(2, objects, rules=read_rules(TABLE_2, TOY), random_state=0)
    release = made.fit(TOY).protect(TOY)
    assert patterns(release) == by_the_definition(TOY.frame.to_dict("records"), TABLE_2, 2, objects)


@pytest.mark.parametrize("objects", ["max", "min"])
def test_most_of_table_5_comes_of_the_rules_of_table_2(objects):
    """Table 4 takes I4 or I5 where I3 or I6 would do as well: ties, which the paper settles by hand."""
    release = cv.KCommonPatterns(2, objects, rules=read_rules(TABLE_2, TOY), random_state=0).fit(TOY).protect(TOY)
    names = ("sex", "occupation", "domicile", "evaluation")
    as_printed = {frozenset(zip(names, row)) for row in TABLE_5[objects]}
    assert len(patterns(release) & as_printed) == {"max": 8, "min": 7}[objects]


def test_in_any_order_patterns_fit_k_people_and_tell_the_class_of_everybody():
    """Section 4.2: the correct values are known by intersecting the decisions of patterns that match."""
    for turned in (TABLE_2, TABLE_2[::-1]):
        release = cv.KCommonPatterns(2, rules=read_rules(turned, TOY), random_state=0).fit(TOY).protect(TOY)
        assert release.suppressed == 0 and (release.regions.count(TOY.frame) >= 2).all()
        features = cv.Regions(release.regions.axes[:-1], len(release.regions))
        for row, label in zip(features.covers(TOY.frame).T, TOY.target):
            sets = [cells["evaluation"] for cells, met in zip(release.to_frame().to_dict("records"), row) if met]
            assert frozenset.intersection(*(s if isinstance(s, frozenset) else frozenset({s}) for s in sets)) == {label}


def people(seed, n=30):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(0, 9, n), "city": rng.choice(list("abc"), n)})
    frame["grade"] = pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True)
    frame["y"] = rng.choice(list("uvw"), n)
    frame.loc[:2, "y"] = list("uvw")
    return cv.Table.from_frame(frame, target="y")


@st.composite
def written_rules(draw):
    cells = {
        "age": st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda p: {"from": min(p), "to": max(p)})
        | st.integers(1, 7).map(lambda v: {"from": None, "to": v})
        | st.integers(0, 8),
        "city": st.frozensets(st.sampled_from("abc"), min_size=1).map(lambda s: {"any_of": sorted(s)}),
        "grade": st.sampled_from(["low", "high", {"any_of": ["low", "mid"]}, {"any_of": ["high", "mid"]}]),
    }
    named = draw(st.frozensets(st.sampled_from(sorted(cells)), min_size=1))
    then = draw(st.frozensets(st.sampled_from("uvw"), min_size=1, max_size=2))
    return {"if": {n: draw(cells[n]) for n in sorted(named)}, "then": sorted(then)}


def fits(value, cell):
    """The plain meaning of a written cell."""
    if isinstance(cell, dict) and "any_of" in cell:
        return value in cell["any_of"]
    if isinstance(cell, dict):
        return (cell["from"] is None or cell["from"] <= value) and (cell["to"] is None or value <= cell["to"])
    return value == cell


@given(st.integers(0, 10**6), st.lists(written_rules(), min_size=1, max_size=5), st.booleans())
def test_support_is_counted_row_by_row_and_every_pattern_fits_k_people(seed, written, spread):
    table, k = people(seed), 3
    found = read_rules(written, table)
    rows = table.frame.to_dict("records")
    by_hand = [
        sum(all(fits(r[n], c) for n, c in w["if"].items()) and r["y"] in w["then"] for r in rows) for w in written
    ]
    assert found.support.tolist() == by_hand
    made = cv.KCommonPatterns(k, "max", spread, rules=found, random_state=0)
    if min(by_hand) < k:
        with pytest.raises(ValueError, match=rf"{sum(s < k for s in by_hand)} of {len(written)} rules with fewer"):
            made.fit(table)
        return
    release = made.fit(table).protect(table)
    assert (release.regions.count(table.frame) >= k).all()
    told = [any(all(fits(r[n], c) for n, c in w["if"].items()) and r["y"] in w["then"] for w in written) for r in rows]
    assert release.suppressed == len(rows) - sum(told)
    wrong = any(
        all(fits(r[n], c) for n, c in w["if"].items()) and r["y"] not in w["then"] for w in written for r in rows
    )
    assert any("have exceptions" in text for text in release.caveats) == wrong


def test_learnt_rules_come_back_from_their_file_with_the_same_patterns(tmp_path):
    table = cv.load("iris")
    learnt = cv.LERS(k=5).fit(table)
    (tmp_path / "r.json").write_text(json.dumps(learnt.rules_.to_dict()))
    back = read_rules(tmp_path / "r.json", table)
    assert [r.sentence for r in back] == [r.sentence for r in learnt.rules_]
    assert back.support.tolist() == learnt.rules_.support.tolist()
    own = cv.KCommonPatterns(5, random_state=0).fit(table).protect(table)
    assert shown(cv.KCommonPatterns(5, rules=back, random_state=0).fit(table).protect(table)) == shown(own)


def test_what_rules_were_given_stands_neither_in_the_release_nor_in_a_saved_protector(tmp_path):
    unused = {"if": {"domicile": {"any_of": ["Tokyo", "Osaka"]}, "sex": "male"}, "then": ["low", "high"]}
    made = cv.KCommonPatterns(2, rules=read_rules([*TABLE_2, unused], TOY), random_state=0).fit(TOY)
    assert made.protect(TOY).provenance["parameters"]["rules"] == "RuleSet"
    made.save(tmp_path / "p.json")
    back = cv.load_protector(tmp_path / "p.json")
    assert back.rules is None and shown(back.protect()) == shown(made.protect(TOY))


def test_rows_that_support_no_given_rule_are_deleted_or_widened():
    rules = read_rules(TABLE_2[:1], TOY)
    assert cv.KCommonPatterns(2, rules=rules).fit(TOY).protect(TOY).suppressed == 4
    wide = cv.KCommonPatterns(2, rules=rules, undescribed="widen").fit(TOY).protect(TOY)
    assert wide.suppressed == 0 and (wide.regions.count(TOY.frame) >= 2).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "a list of at least one rule"),
        ("no such file.json", "There is no file"),
        (["male"], "Rule 1 of those given to read_rules must have a mapping with 'if' and 'then'"),
        ([{"if": {}, "then": ["low"]}], "a condition on at least one column"),
        ([TABLE_2[0], {"if": {"salary": 3}, "then": ["low"]}], "Rule 2 .* columns of the table .* Got 'salary'"),
        ([{"if": {"sex": "other"}, "then": ["low"]}], "values of 'sex' that the table has or its schema declares"),
        ([{"if": {"sex": {"any_of": [["male"]]}}, "then": ["low"]}], "a value of 'sex' or several"),
        ([{"if": {"sex": {"from": 1, "to": 2}}, "then": ["low"]}], "a value of 'sex' or several"),
        ([{"if": {"sex": "male"}, "then": ["best"]}], "classes that the table has"),
        ([{"if": {"sex": "male"}, "then": ["low", "high", "medium"]}], "but not of all"),
        ([{"if": {"sex": "male"}, "then": []}], "one class or several"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_with_its_number(given, words):
    with pytest.raises(cv.CountervailError, match=words):
        read_rules(given, TOY)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"age": {"from": 5, "to": 2}}, "from low to high"),
        ({"age": {"from": None, "to": None}}, "from low to high"),
        ({"age": "five"}, "a number or a range of 'age'"),
        ({"age": True}, "a number or a range of 'age'"),
        ({"grade": {"any_of": ["low", "high"]}}, "stand side by side"),
    ],
)
def test_numbers_and_levels_must_be_ranges(cell, words):
    with pytest.raises(cv.SchemaError, match=words):
        read_rules([{"if": cell, "then": ["u"]}], people(0))


def test_parameters_that_do_not_go_with_rules_are_refused():
    rules = read_rules(TABLE_2, TOY)
    with pytest.raises(cv.ParameterError, match="read_rules reads files and data"):
        cv.KCommonPatterns(2, rules=TABLE_2).fit(TOY)
    with pytest.raises(cv.ParameterError, match=r"'max_union' .* None where rules are given"):
        cv.KCommonPatterns(2, rules=rules, max_union=1).fit(TOY)
