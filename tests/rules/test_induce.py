"""Rule induction: the kernels against a slow twin, and what every rule must be."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules_twin import Rows, agreed, decision_tables, imprecise, lower, ours, plain, supported, unions

import countervail as cv
from countervail.rules import Inducer, ValueTable, grow, grow_bits
from countervail.rules.induce import SEMANTICS, conclude, mark_covered, mark_inside
from countervail.rules.inputs import build_value_table

TABLES = st.one_of(decision_tables(), decision_tables(sets=True))


@given(TABLES, st.sampled_from(SEMANTICS))
def test_kernels_find_the_rules_of_the_slow_twin(table, semantics):
    rows, inducer = Rows(table), Inducer(table, semantics)
    assert ours(inducer.precise()) == plain(unions(rows, 1, semantics), table.attributes)
    assert ours(inducer.imprecise()) == plain(imprecise(rows, semantics), table.attributes)


@given(TABLES, st.sampled_from(SEMANTICS), st.data())
def test_bits_and_lists_give_the_same_rules(table, semantics, data):
    inducer = Inducer(table, semantics)
    for union in range(1, 1 << len(table.classes)):
        inside, bad = inducer.lower(union)
        goal = inside & np.array(data.draw(st.lists(st.booleans(), min_size=len(inside), max_size=len(inside))))
        for mine, other in zip(
            grow_bits.induce(table.coded, goal, inside, bad), grow.induce(table.coded, goal, inside, bad)
        ):
            assert np.array_equal(mine, other)


def test_bits_and_lists_agree_where_a_rule_goes_through_many_cuts():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"p": rng.normal(size=300), "q": rng.normal(size=300), "c": rng.choice(list("abcd"), 300)})
    table = build_value_table(frame, np.where(rng.random(300) < 0.7, "x", "y"), None, "test")
    inside, bad = Inducer(table).lower(1)
    mine, other = (way.induce(table.coded, inside, inside, bad) for way in (grow_bits, grow))
    assert np.array_equal(mine[0], other[0]) and np.array_equal(mine[1], other[1]) and len(mine[0]) > 20


def test_bits_are_used_where_columns_have_few_values():
    rng = np.random.default_rng(0)
    few, many = rng.integers(0, 5, (500, 4)), rng.normal(size=(500, 4))
    label = np.where(few[:, 0] + few[:, 1] > 4, "a", "b")
    assert grow_bits.fits(build_value_table(pd.DataFrame(few).add_prefix("c"), label, None, "test").coded)
    assert not grow_bits.fits(build_value_table(pd.DataFrame(many).add_prefix("c"), label, None, "test").coded)


@given(TABLES, st.integers(2, 4), st.sampled_from(SEMANTICS))
def test_supported_rules_are_those_of_the_slow_twin(table, k, semantics):
    found = Inducer(table, semantics).supported(k)
    assert ours(found) == plain(supported(Rows(table), k, semantics), table.attributes)
    assert (found.support >= k).all()


@given(TABLES, st.sampled_from(SEMANTICS))
def test_every_rule_is_consistent(table, semantics):
    inducer = Inducer(table, semantics)
    rules = inducer.imprecise()
    for r in range(len(rules)):
        inside, _ = inducer.lower(int(rules.conclusions[r]))
        assert not (mark_inside(rules, r, table) & ~inside).any()


@given(decision_tables())
def test_a_rule_of_an_ordinary_table_is_never_wrong_about_its_rows(table):
    rules = Inducer(table).imprecise()
    for r in range(len(rules)):
        decisions = table.decisions[mark_inside(rules, r, table)]
        assert len(decisions) and not (decisions & ~rules.conclusions[r]).any()


@given(TABLES, st.sampled_from(SEMANTICS))
def test_every_rule_is_minimal(table, semantics):
    """Leaving out any elementary condition lets in a row that contradicts the rule."""
    rows = Rows(table)
    for size in (1, 2):
        for chosen, union, _ in unions(rows, size, semantics):
            inside, bad = lower(rows, union, semantics)
            for c in chosen:
                rest = [x for x in chosen if x is not c]
                block = possible = (1 << rows.n) - 1
                for x in rest:
                    block, possible = block & x[3], possible & x[4]
                assert not rest or block & ~inside or possible & bad


@given(decision_tables(), st.integers(0, 2))
def test_the_rules_cover_what_can_be_told(table, picked):
    inducer = Inducer(table)
    union = 1 << (picked % len(table.classes))
    inside, _ = inducer.lower(union)
    rules = inducer.cover([union])
    assert (mark_covered(rules, table) == inside).all()
    for r in range(len(rules)):
        assert len(rules) == 1 or not (mark_covered(rules.take(np.arange(len(rules)) != r), table) >= inside).all()


@given(decision_tables(), st.integers(2, 4))
def test_what_rules_agree_on_is_counted_as_the_twin_counts(table, k):
    rules, rows = Inducer(table).supported(k), Rows(table)
    known = conclude(rules, table)[table.group]
    assert known.tolist() == [agreed(supported(rows, k), i, rows.classes) for i in range(rows.n)]


@given(decision_tables())
def test_equal_rows_and_their_order_change_nothing_but_the_support(table):
    frame, y = _frame(table)
    turned = np.arange(len(frame))[::-1]
    twice = np.concatenate([turned, turned])
    once, doubled = (Inducer(build_value_table(frame.iloc[i], y[i], None, "test")).imprecise() for i in (turned, twice))
    assert [(c, u, 2 * s) for c, u, s in ours(once)] == ours(doubled)
    assert ours(once) == ours(Inducer(build_value_table(frame, y, None, "test")).imprecise())


def _frame(table):
    at = table.group
    frame = pd.DataFrame({"p": table.low[0, at], "q": table.low[1, at], "c": [f"v{int(c)}" for c in table.low[2, at]]})
    return frame, np.array([str(int(d)) for d in table.decisions[at]], dtype=object)


@pytest.mark.parametrize("name", ["car", "zoo", "hayes_roth", "iris"])
def test_the_data_sets_of_the_paper_give_the_twins_rules(name):
    try:
        table = cv.load(name)
    except cv.CountervailError as missing:
        pytest.skip(f"{name} is not on this machine: {type(missing).__name__}")
    rng = np.random.default_rng(0)
    part = table.take(np.sort(rng.permutation(len(table))[:120]))
    values = build_value_table(part.features, part.target, part.schema, "test")
    assert ours(Inducer(values).precise()) == plain(unions(Rows(values), 1), values.attributes)
    assert ours(Inducer(values).supported(5)) == plain(supported(Rows(values), 5), values.attributes)


def test_a_table_of_single_cells_equals_the_table():
    table = cv.load("toy_evaluation")
    cells = table.features.astype(object).map(lambda v: frozenset([v]))
    soft = build_value_table(cells, table.target, table.schema, "test")
    crisp = build_value_table(table.features, table.target, table.schema, "test")
    assert isinstance(soft, ValueTable) and soft.crisp
    assert Inducer(soft).imprecise().to_text() == Inducer(crisp).imprecise().to_text()
