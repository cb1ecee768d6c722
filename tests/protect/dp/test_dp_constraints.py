"""Private answers within constraints, and several of them: nothing is broken, nothing is paid twice."""

import numpy as np
import pandas as pd
import pytest
from test_dp_search import NUMBERS, D, M, made_up, model

import countervail as cv
from countervail.core.constraints import CONSTRAINTS
from countervail.core.rng import generator
from countervail.protect.dp.budgeted import spelling
from countervail.protect.dp.pool_search import Pooled, search, search_several
from countervail.testing import small_model, small_table

LEVELS, CITIES = ["low", "mid", "high"], ["a", "b", "c"]
KINDS = [
    cv.PrivateNeighbours(3.0, neighbours=5),
    cv.PrivateHistograms(3.0, records=100, neighbours=5),
    cv.NoisyCounterfactual(5.0),
    cv.NoisyCounterfactual(5.0, stop=0.2),
    cv.DPTableExplainer(3.0),
]
SEVERAL = [k for k in KINDS if "n_counterfactuals" in k.get_params()]


def asked(n=15, seed=1):
    """People off the grid: incomes with decimals, ages as they are."""
    rows = small_table(3 * n, seed=seed).features
    return rows[small_model(rows)[:, 1] < 0.5].head(n).reset_index(drop=True)


def drawn(rng):
    low = int(rng.integers(20, 50))
    every = {
        "immutable": [n for n in ("ill", "city") if rng.random() < 0.5],
        "ranges": {"age": (low, low + 25), "city": [str(c) for c in rng.choice(CITIES, 2, replace=False)]},
        "monotone": {"level": str(rng.choice(["up", "down"])), "income": str(rng.choice(["up", "down"]))},
        "forbidden": {"city": [("a", "b"), ("c", "a")], "level": [("low", "high")]},
        "max_changes": int(rng.integers(1, 5)),
        "costs": {"age": float(rng.integers(1, 9)), "income": 0.25},
    }
    return {name: value for name, value in every.items() if rng.random() < 0.6}


def broken(given, a, b):
    found = [n for n in given.get("immutable", ()) if a[n] != b[n]]
    for n, allowed in given.get("ranges", {}).items():
        if not (allowed[0] <= b[n] <= allowed[1] if n == "age" else b[n] in allowed):
            found.append(n)
    for n, way in given.get("monotone", {}).items():
        step = LEVELS.index(b[n]) - LEVELS.index(a[n]) if n == "level" else b[n] - a[n]
        if step * (1 if way == "up" else -1) < 0:
            found.append(n)
    found += [n for n, moves in given.get("forbidden", {}).items() if (a[n], b[n]) in moves]
    return found + ["max_changes"] * (sum(a[n] != b[n] for n in a) > given.get("max_changes", 9))


def rows_given(e):
    """The answers that are there, valid or not: what leaves must obey."""
    return np.flatnonzero(e.counterfactuals.notna().any(axis=1))


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: f"{k.name}-{getattr(k, 'stop', None)}")
def test_nothing_that_leaves_breaks_a_constraint(kind, counted, seeds):
    table, rows, seen = small_table(80), asked(), 0
    for seed in seeds(4, 60):
        rng = np.random.default_rng(seed)
        given, own = drawn(rng), [drawn(rng) if rng.random() < 0.3 else None for _ in range(len(rows))]
        more = {"n_counterfactuals": int(rng.integers(1, 4))} if kind in SEVERAL else {}
        ledger = cv.Ledger("people", epsilon=1_000) if counted else None
        made = type(kind)(**{**kind.get_params(deep=False), **given, **more, "ledger": ledger}).fit(table, small_model)
        for e in (made.explain(rows, constraints=own), made.explain(rows)):
            for i in rows_given(e):
                a, b = e.factuals.iloc[i].to_dict(), e.counterfactuals.iloc[i].to_dict()
                both = dict(given)
                for name, value in (own[e.query[i]] or {}).items():
                    both[name] = {**given.get(name, {}), **value} if isinstance(value, dict) else value
                    both[name] = [*given.get(name, ()), *value] if name == "immutable" else both[name]
                assert broken(both, a, b) == []
                seen += 1
            own = [None] * len(rows)
    assert seen > 50


@pytest.mark.parametrize("kind", SEVERAL, ids=lambda k: k.name)
def test_several_answers_differ_and_cost_what_one_costs(kind):
    made = type(kind)(**{**kind.get_params(deep=False), "n_counterfactuals": 3}).fit(small_table(120), small_model)
    rows = asked(30)
    e = made.explain(rows)
    assert e.guarantee.total == type(kind)(3.0).fit(small_table(120), small_model).explain(rows).guarantee.total
    for q in range(len(rows)):
        mine = e.counterfactuals[(e.query == q) & e.found]
        assert not mine.duplicated().any() and len(mine) <= 3
    assert (small_model(e.counterfactuals[e.found].astype(rows.dtypes.to_dict()))[:, 1] > 0.5).all()
    assert pd.Series(e.query[e.found]).value_counts().max() > 1


def test_one_debit_pays_for_all_answers_to_a_row_and_stored_ones_come_back():
    ledger = cv.Ledger("people", epsilon=10.0)
    made = cv.PrivateNeighbours(1.0, n_counterfactuals=3, monotone={"age": "up"}, ledger=ledger)
    made.fit(small_table(), small_model)
    rows = asked(2)
    first = made.explain(rows)
    assert ledger.left(1.0) == 8
    assert made.explain(rows).to_frame().equals(first.to_frame()) and ledger.left(1.0) == 8
    made.explain(rows, constraints=[{"immutable": ["city"]}, None])
    assert ledger.left(1.0) == 7, "another wish is another question; the second row is answered as before"
    made.explain(rows, constraints={"immutable": ["city"]})
    assert ledger.left(1.0) == 6


def test_several_wishes_are_paid_together_or_not_at_all():
    ledger = cv.Ledger("people", epsilon=1.0)
    made = cv.PrivateNeighbours(1.0, ledger=ledger).fit(small_table(), small_model)
    with pytest.raises(cv.BudgetError):
        made.explain(asked(2), constraints=[{"immutable": ["city"]}, {"immutable": ["ill"]}])
    assert ledger.left(1.0) == 1


def test_a_question_without_wishes_is_spelt_as_it_always_was():
    made = cv.PrivateNeighbours(1.0).fit(small_table(), small_model)
    params = made.get_params(deep=False)
    old = {n: v for n, v in params.items() if n not in (*CONSTRAINTS, "n_counterfactuals")}
    spelt = [spelling(p, made.shares_, made.public_.grid, made.public_) for p in (params, old)]
    assert spelt[0] == spelt[1]
    assert spelling({**params, "n_counterfactuals": 2}, made.shares_, made.public_.grid, made.public_) != spelt[0]


@pytest.mark.parametrize("kind", KINDS[:4], ids=lambda k: f"{k.name}-{getattr(k, 'stop', None)}")
def test_whoever_is_out_of_an_immutable_range_is_told_so_whatever_the_table_holds(kind):
    given = {"immutable": ["age"], "ranges": {"age": (80, 90)}}
    rows = asked(5).assign(age=30)
    said = set()
    for seed in range(3):
        made = type(kind)(**{**kind.get_params(deep=False), **given}).fit(small_table(seed=seed), small_model)
        e = made.explain(rows)
        said.add((tuple(e.status), e.notes))
    assert said == {
        (
            ("no_counterfactual",) * 5,
            ("Values that may not change, or not this way, lie outside what is allowed: age.",) * 5,
        )
    }


@pytest.mark.parametrize("kind", KINDS[:3], ids=lambda k: k.name)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"immutable": ["shoe"]}, "'immutable' parameter"),
        ({"immutable": ["age", "city", "level", "ill", "income"]}, "less than all feature columns"),
        ({"costs": {"age": 0}}, "'costs' parameter"),
        ({"max_changes": 0}, "'max_changes' parameter"),
        ({"monotone": {"city": "up"}}, "has no order"),
    ],
)
def test_contradictions_are_errors_at_fit(kind, wrong, words):
    with pytest.raises(cv.CountervailError, match=words):
        type(kind)(**wrong).fit(small_table(), small_model)


def test_answers_are_counted_in_whole_numbers():
    with pytest.raises(cv.CountervailError, match="'n_counterfactuals' parameter of PrivateNeighbours"):
        cv.PrivateNeighbours(n_counterfactuals=0).fit(small_table(), small_model)


def test_an_explainer_of_ones_own_keeps_its_own_wishes():
    with pytest.raises(cv.CountervailError, match="'immutable' parameter of DPTableExplainer must be given to the"):
        cv.DPTableExplainer(explainer=cv.NICE(), immutable=["age"]).fit(small_table(), small_model)


def test_what_is_not_allowed_might_as_well_not_be_in_the_pool():
    rng = generator(3)
    for share in (-2, 0, 2):
        p, judge = made_up(rng, 40, 4), model(rng, share)
        allowed = rng.random((40, D, M)) < 0.6
        seen = allowed[np.arange(40)[:, None, None], np.arange(D), p.pool]
        within = Pooled(p.x, p.pool, p.shown, p.distances, NUMBERS, allowed)
        without = Pooled(p.x, p.pool, p.shown & seen, p.distances, NUMBERS)
        for a, b in zip(search(within, judge), search(without, judge)):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("most", [0, 1, 2, D])
def test_no_more_columns_move_than_may(most):
    rng = generator(4)
    for share in (-2, 0, 2):
        p, judge = made_up(rng, 40, 4), model(rng, share)
        limited = Pooled(p.x, p.pool, p.shown, p.distances, NUMBERS, None, np.full(40, most))
        cells, valid = search(limited, judge)
        assert ((cells != p.x).sum(axis=1) <= most).all()
        free, everywhere = search(p, judge)
        if most == D:
            np.testing.assert_array_equal(cells, free)
        if most != 1:
            continue
        for i in range(40):
            single = [(j, p.pool[i, s, j]) for s, j in zip(*np.nonzero(p.shown[i])) if p.pool[i, s, j] != p.x[i, j]]
            rows = np.array([np.where(np.arange(D) == j, v, p.x[i]) for j, v in single]).reshape(-1, D)
            assert valid[i] == judge(rows, np.full(len(rows), i))[0].any()
        assert not (valid & ~everywhere).any()


def test_further_answers_are_new_and_valid_and_the_first_is_the_only_one():
    rng = generator(5)
    for share in (-2, 0, 2):
        p, judge = made_up(rng, 40, 4), model(rng, share)
        cells, valid = search(p, judge)
        several = search_several(p, judge, 3).reshape(40, 3, D)
        np.testing.assert_array_equal(several[:, 0], cells)
        for i in range(40):
            more = several[i][~np.isnan(several[i]).any(axis=1)]
            assert len({row.tobytes() for row in more}) == len(more)
            assert len(more) == 1 or judge(more, np.full(len(more), i))[0].all()
            assert len(more) == 1 or valid[i]
