"""Protectors with a ledger: one budget for the people, replay on the public grid, and labels that say so."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import countervail as cv
from countervail.core.errors import BudgetError, ParameterError, RefusedError
from countervail.protect.cfk.groups.roster import Roster
from countervail.testing import small_model, small_table

PER_ANSWER = (cv.PrivateNeighbours, cv.NoisyCounterfactual)
ALL = (*PER_ANSWER, cv.PrivateHistograms, cv.DPTable, cv.DPTableExplainer)
QUIET = {cv.PrivateHistograms: {"records": 50}}


def refused(n=40, seed=1):
    """Rows of people whose decision is not the one they hope for."""
    rows = small_table(n, seed=seed).features
    return rows[small_model(rows)[:, 1] < 0.5].reset_index(drop=True)


def fitted(kind, ledger, table=None, **more):
    made = kind(0.1, ledger=ledger, **QUIET.get(kind, {}), **more)
    table = table if table is not None else small_table()
    return made.fit(table) if kind is cv.DPTable else made.fit(table, small_model)


def answers(private, rows):
    return private.explain(rows, small_model) if isinstance(private, cv.DPTable) else private.explain(rows)


def same(one, other):
    return one.to_frame().equals(other.to_frame())


@pytest.mark.parametrize("kind", PER_ANSWER)
def test_equal_queries_are_debited_once_and_answered_alike(kind):
    ledger = cv.Ledger("people", epsilon=1.0)
    private, rows = fitted(kind, ledger), refused()
    first = answers(private, rows.iloc[[0, 1, 0]])
    assert ledger.left(0.1) == 8
    assert first.counterfactuals.iloc[0].equals(first.counterfactuals.iloc[2])
    assert same(answers(private, rows.iloc[[0, 1, 0]]), first) and ledger.left(0.1) == 8
    answers(private, rows.iloc[[2]])
    assert ledger.left(0.1) == 7


@pytest.mark.parametrize("kind", PER_ANSWER)
def test_queries_are_equal_on_the_public_grid_and_keep_their_own_values(kind):
    # Incomes lie on a grid of 101 levels, 2 apart.
    ledger = cv.Ledger("people", epsilon=1.0)
    private = fitted(kind, ledger)
    one = refused().iloc[[0]].assign(income=20.1)
    other = one.assign(income=19.7)
    first, second = answers(private, one), answers(private, other)
    assert ledger.left(0.1) == 9
    for asked, e in ((one, first), (other, second)):
        income = e.counterfactuals["income"].iloc[0]
        assert income == asked["income"].iloc[0] or income % 2 == 0
    assert (first.counterfactuals["income"].iloc[0] == 20.1) == (second.counterfactuals["income"].iloc[0] == 19.7)


def test_what_one_asker_stored_never_shows_another_her_values():
    ledger = cv.Ledger("people", epsilon=100.0)
    private = cv.PrivateNeighbours(5.0, ledger=ledger).fit(small_table(200), small_model)
    hers = refused().iloc[:10].assign(income=20.137)
    his = hers.assign(income=19.7)
    private.explain(hers)
    left = ledger.left(5.0)
    e = private.explain(his)
    assert ledger.left(5.0) == left, "all of it was a replay"
    assert not (e.counterfactuals["income"] == 20.137).any()


@pytest.mark.parametrize("kind", PER_ANSWER)
def test_an_answer_within_another_end_of_a_way_is_another_answer(kind):
    """What was drawn without the end was replayed, and left people beyond it without an answer."""
    ledger, table, rows = cv.Ledger("people", epsilon=1.0), small_table(), refused().iloc[[0]]
    for left, until in ((9, None), (8, 60.0), (7, 70.0), (7, None), (7, 60.0)):
        upwards = table.schema.with_column("income", actionable="up", until=until)
        ended = cv.Table(table.frame, upwards)
        found = answers(fitted(kind, ledger, ended), rows)
        assert ledger.left(0.1) == left, until
        assert until is None or (found.counterfactuals["income"].dropna() <= until).all()


@pytest.mark.parametrize("kind", ALL)
def test_clone_refit_another_fit_and_one_row_more_share_the_budget(kind):
    ledger = cv.Ledger("people", epsilon=0.1)
    rows = refused().iloc[[0]]
    first = answers(fitted(kind, ledger), rows)
    assert ledger.left(0.1) == 0
    if kind in PER_ANSWER:
        for private in (fitted(kind, ledger), fitted(kind, ledger, small_table(61)), fitted(clone_of(kind), ledger)):
            with pytest.raises(BudgetError, match="no such answer is left"):
                answers(private, refused().iloc[[1]])
    else:
        # One draw: it comes back, and another one is refused.
        again = answers(fitted(kind, ledger, small_table(61)), rows)
        assert again.guarantee == first.guarantee
        with pytest.raises(BudgetError):
            fitted(kind, ledger, missing=["city"])


def clone_of(kind):
    return lambda *a, **k: clone(kind(*a, **k))


@pytest.mark.parametrize("kind", [cv.PrivateHistograms, cv.DPTable])
def test_one_draw_is_stored_and_comes_back_exactly(kind, tmp_path):
    ledger = cv.Ledger.create(tmp_path / "people.ledger", "people", epsilon=0.1)
    one = fitted(kind, ledger)
    other = fitted(kind, cv.Ledger.open(tmp_path / "people.ledger", "people"))
    if kind is cv.DPTable:
        pd.testing.assert_frame_equal(one.noisy_, other.noisy_)
    else:
        assert all(np.array_equal(a, b) for a, b in zip(one.histograms_, other.histograms_))
    assert [(e.kind, e.stored) for e in ledger.history()] == [("draw", True)]
    with pytest.raises(BudgetError):
        fitted(kind, cv.Ledger.open(tmp_path / "people.ledger", "people", edition="later"))


@pytest.mark.parametrize("kind", ALL)
def test_a_pickled_protector_spends_the_same_budget(kind, tmp_path):
    ledger = cv.Ledger.create(tmp_path / "people.ledger", "people", epsilon=1.0)
    private, rows = fitted(kind, ledger), refused()
    first = answers(private, rows.iloc[[0]])
    again = pickle.loads(pickle.dumps(private, protocol=5)) if kind is cv.DPTable else copied(private)
    assert same(answers(again, rows.iloc[[0]]), first)
    before = ledger.left(0.1)
    answers(again, rows.iloc[[1]])
    assert ledger.left(0.1) == before - (kind in PER_ANSWER)
    memory = fitted(kind, cv.Ledger("people", epsilon=1.0))
    with pytest.raises(cv.LedgerError, match="second budget"):
        pickle.dumps(memory)


def copied(private):
    return pickle.loads(pickle.dumps(private))


@pytest.mark.parametrize("kind", ALL)
def test_labels_carry_the_budget_and_only_the_budget(kind):
    ledger = cv.Ledger("people of the clinic", epsilon=4.0, delta=1e-6)
    private = fitted(kind, ledger)
    e = answers(private, refused().iloc[:2])
    assert e.guarantee.budget == ledger.budget and e.guarantee.epsilon == 0.1
    text = str(e.guarantee)
    assert "'people of the clinic'" in text and "epsilon = 4, delta = 1e-06" in text and "No ledger" not in text
    assert type(e).from_json(e.to_json()).guarantee == e.guarantee
    bare = fitted(kind, None)
    assert "No ledger counts other answers" in str(bare.guarantee())


@pytest.mark.parametrize("kind", ALL)
def test_seeds_and_things_that_are_no_ledgers_are_refused(kind):
    with pytest.raises(ParameterError, match="'random_state' parameter"):
        fitted(kind, cv.Ledger("people", epsilon=1.0), random_state=0)
    with pytest.raises(ParameterError, match="'ledger' parameter"):
        fitted(kind, "people.ledger")


def test_a_call_is_answered_whole_or_not_at_all():
    ledger = cv.Ledger("people", epsilon=0.5)
    private, rows = fitted(cv.PrivateNeighbours, ledger), refused()
    with pytest.raises(BudgetError, match="5 such answers are left"):
        private.explain(rows.iloc[:6])
    assert ledger.left(0.1) == 5
    assert len(private.explain(rows.iloc[:5])) == 5


def test_rows_that_need_no_answer_cost_nothing():
    ledger = cv.Ledger("people", epsilon=0.1)
    rows = small_table(40, seed=1).features
    happy = rows[small_model(rows)[:, 1] >= 0.5]
    e = fitted(cv.PrivateNeighbours, ledger).explain(happy)
    assert set(e.status) == {"already_favourable"} and ledger.left(0.1) == 1


def test_other_settings_and_another_model_are_other_questions():
    ledger, rows = cv.Ledger("people", epsilon=1.0), refused().iloc[[0]]

    def other_model(frame):
        scores = small_model(frame)
        return np.column_stack([scores[:, 0] * 0.9, 1 - scores[:, 0] * 0.9])

    fitted(cv.PrivateNeighbours, ledger).explain(rows)
    fitted(cv.PrivateNeighbours, ledger, neighbours=5).explain(rows)
    assert ledger.left(0.1) == 8
    cv.PrivateNeighbours(0.1, ledger=ledger).fit(small_table(), other_model).explain(rows)
    assert ledger.left(0.1) == 7


def test_retries_are_debited_twice():
    ledger = cv.Ledger("people", epsilon=1.0)
    cv.NoisyCounterfactual(0.1, stop=0.5, ledger=ledger).fit(small_table(), small_model).explain(refused().iloc[[0]])
    assert ledger.left(0.1) == 8


def test_counts_under_add_remove_cost_twice_where_a_record_is_replaced():
    ledger = cv.Ledger("people", epsilon=1.0)
    fitted(cv.PrivateHistograms, ledger, adjacency="add-remove")
    assert ledger.left(0.1) == 8
    other = cv.Ledger("people", epsilon=1.0, adjacency="add-remove")
    with pytest.raises(BudgetError, match="replace-one"):
        fitted(cv.DPTable, other)
    fitted(cv.PrivateHistograms, other, adjacency="add-remove")
    assert other.left(0.1) == 9


def test_a_failing_draw_is_debited(monkeypatch):
    ledger = cv.Ledger("people", epsilon=1.0)
    private = fitted(cv.PrivateNeighbours, ledger)

    def broken(asked, words):
        raise MemoryError

    monkeypatch.setattr(private, "_answer", broken)
    with pytest.raises(MemoryError):
        private.explain(refused().iloc[[0]])
    assert ledger.left(0.1) == 9


def test_answers_from_a_ledger_change_the_decision_as_often_as_without_one():
    rows = refused(200)
    table = small_table(300)
    bare = cv.PrivateNeighbours(3.0).fit(table, small_model).explain(rows)
    ledger = cv.Ledger("people", epsilon=1e4)
    kept = cv.PrivateNeighbours(3.0, ledger=ledger).fit(table, small_model).explain(rows)
    assert kept.found.mean() >= bare.found.mean() - 0.1
    assert (small_model(kept.counterfactuals[kept.found])[:, 1] >= 0.5).all()


def test_a_second_mondrian_table_of_the_same_people_is_refused():
    ledger, table = cv.Ledger("people", epsilon=1.0), small_table()
    cv.Mondrian(5, ledger=ledger).fit(table).protect(table)
    cv.Mondrian(5, ledger=ledger).fit(table).protect(table)
    turned = table.take(np.arange(len(table))[::-1])
    cv.Mondrian(5, ledger=ledger).fit(turned).protect(turned)
    for other, rows in ((cv.Mondrian(7, ledger=ledger), table), (cv.Mondrian(5, ledger=ledger), small_table(61))):
        fitted_ = other.fit(rows)
        with pytest.raises(RefusedError, match="grouped before"):
            fitted_.protect(rows)
    assert ledger.verify().groupings == 1 and ledger.left(0.1) == 10


def newcomers(seed):
    frame = small_table(40, seed=seed).frame
    return frame.assign(id=[f"new {seed} {i}" for i in range(40)])


def test_frozen_groups_may_grow_and_nothing_else():
    ledger, rows = cv.Ledger("people", epsilon=1.0), refused()
    few = small_table(60)
    more, other = (cv.Table(pd.concat([few.frame, newcomers(s)], ignore_index=True), few.schema) for s in (7, 8))
    first = cv.CFK(3, ledger=ledger).fit(few, small_model)
    first.explain(rows)
    cv.CFK(3, ledger=ledger).fit(few, small_model).explain(rows)  # the same groups again
    anew = cv.CFK(3, ledger=ledger).fit(more, small_model)
    with pytest.raises(RefusedError, match=r"CFK\(previous=...\)"):
        anew.explain(rows)
    kept = Roster.from_json(first.roster_.to_json())
    cv.CFK(3, previous=kept, ledger=ledger).fit(more, small_model).explain(rows)
    stale = cv.CFK(3, previous=kept, ledger=ledger).fit(other, small_model)
    with pytest.raises(RefusedError):
        stale.explain(rows)
    assert ledger.verify().groupings == 2


def test_a_table_and_explanations_drawn_from_it_are_one_grouping():
    ledger, table = cv.Ledger("people", epsilon=1.0), small_table()
    cv.Mondrian(5, ledger=ledger).fit(table).protect(table)
    cv.CFK(5, search=cv.protect.GroupSearch(grouping="mondrian"), ledger=ledger).fit(table, small_model).explain(
        refused()
    )
    other = cv.CFK(5, ledger=ledger).fit(table, small_model)
    with pytest.raises(RefusedError):
        other.explain(refused())


def test_searches_without_groups_take_no_ledger():
    with pytest.raises(ParameterError, match="'ledger' parameter of CFK"):
        cv.CFK(3, search="exact", ledger=cv.Ledger("people", epsilon=1.0)).fit(small_table(), small_model)
    with pytest.raises(ParameterError, match="'ledger' parameter of Mondrian"):
        cv.Mondrian(3, ledger="x").fit(small_table())


def test_private_answers_say_that_k_anonymous_releases_stand_beside_them():
    ledger, table = cv.Ledger("people", epsilon=1.0), small_table()
    private = fitted(cv.PrivateNeighbours, ledger)
    assert not any("no epsilon covers" in c for c in private.explain(refused().iloc[[0]]).caveats)
    cv.Mondrian(5, ledger=ledger).fit(table).protect(table)
    assert any("no epsilon covers" in c for c in private.explain(refused().iloc[[0]]).caveats)


def test_explanations_from_a_noisy_table_that_was_paid_for_cost_nothing():
    ledger = cv.Ledger("people", epsilon=0.1)
    table = fitted(cv.DPTable, ledger)
    assert ledger.left(0.1) == 0
    explainer = fitted(cv.DPTableExplainer, ledger)
    pd.testing.assert_frame_equal(explainer.noisy_.noisy_, table.noisy_)
    assert same(answers(explainer, refused()), answers(table, refused()))


def test_every_private_protector_takes_a_ledger():
    from countervail import registry

    found = [*registry.explanation_protectors().values(), *registry.table_protectors().values()]
    private = [c for c in found if registry.fact(c, "draws_noise")]
    assert set(ALL) <= set(private)
    assert all("ledger" in c().get_params() for c in private)


def test_answers_in_another_process_come_from_the_same_budget(tmp_path):
    ledger = cv.Ledger.create(tmp_path / "people.ledger", "people", epsilon=0.2)
    first = fitted(cv.PrivateNeighbours, ledger).explain(refused().iloc[[0]])
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(ledger.path)], capture_output=True, text=True, check=True
    )
    again, new, refusal = done.stdout.strip().split("\n")
    assert json.loads(again) == json.loads(first.counterfactuals.to_json())
    assert new == "answered" and "no such answer is left" in refusal and ledger.left(0.1) == 0


_ELSEWHERE = """
import sys
import countervail as cv
from countervail.testing import small_model, small_table
rows = small_table(40, seed=1).features
rows = rows[small_model(rows)[:, 1] < 0.5].reset_index(drop=True)
ledger = cv.Ledger.open(sys.argv[1], "people")
private = cv.PrivateNeighbours(0.1, ledger=ledger).fit(small_table(61), small_model)
print(private.explain(rows.iloc[[0]]).counterfactuals.to_json())
private.explain(rows.iloc[[1]])
print("answered")
try:
    private.explain(rows.iloc[[2]])
except cv.BudgetError as error:
    print(error)
"""
