"""Attacks on k-anonymous groupings that once worked: lots, roles, new rows, changed parameters, changed people."""

import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import countervail as cv
from countervail.core.errors import ParameterError, RefusedError
from countervail.protect._fitted import freeze, verify_unchanged
from countervail.testing import small_model, small_table


def people():
    return cv.Ledger("people", epsilon=1.0)


def alike():
    """Twenty people of one age and twenty of another: lots decide who hides with whom."""
    frame = pd.DataFrame({"age": [30] * 20 + [40] * 20, "city": "x", "hiv": ["neg"] * 40})
    frame.loc[[3, 25], "hiv"] = "pos"
    return cv.Table.from_frame(frame, target="hiv", quasi_identifiers=["age", "city"])


def in_a_row(n=12):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.permutation(np.arange(20, 20 + n)),
            "zip": rng.permutation(np.arange(9000, 9000 + n)),
            "score": rng.permutation(n) * 1.5,
            "ok": ["y", "n"] * (n // 2),
        }
    )


# ---------------------------------------------------------------- rows that are not the fitted table


def test_with_a_ledger_only_the_fitted_table_leaves():
    table, ledger = small_table(300, seed=1), people()
    protector = cv.Mondrian(k=5, ledger=ledger).fit(table)
    for other in (small_table(300, seed=2), table.take(range(1, 300)), table.frame):
        with pytest.raises(ParameterError, match="'rows' parameter of Mondrian must be the fitted table itself"):
            protector.protect(other)
    assert ledger.statement().groupings == 0
    protector.protect(table)
    assert ledger.statement().groupings == 1


def test_without_a_ledger_new_rows_say_that_two_releases_can_be_subtracted():
    protector = cv.Mondrian(k=5).fit(small_table(300, seed=1))
    assert any("difference of the two releases" in c for c in protector.protect(small_table(300, seed=2)).caveats)


# ---------------------------------------------------------------- what counts as the same grouping


def mixed():
    """Six people are always in the mixed class, and four of fifteen by lot (docs/decisions/mondrian-guarantee.md)."""
    frame = pd.DataFrame({"age": [30] * 15 + [40] * 6, "city": "x", "hiv": ["neg", "pos", "neg"] * 7})
    return cv.Table.from_frame(frame, target="hiv", quasi_identifiers=["age", "city"])


@pytest.mark.parametrize(
    ("table", "made"),
    [
        (alike(), partial(cv.published.EqualHalvesMondrian, k=7)),
        (mixed(), partial(cv.Mondrian, k=10, mode="relaxed")),
    ],
    ids=["halves", "relaxed"],
)
def test_a_second_lot_is_refused_and_the_first_may_leave_again(table, made):
    """Seeds, so that no two lots are the same by chance."""
    ledger = people()
    first = made(ledger=ledger, random_state=0).fit(table)
    first.protect(table)
    first.protect(table)
    for seed in (1, 2, 3):
        second = made(ledger=ledger, random_state=seed).fit(table)
        with pytest.raises(RefusedError, match="grouped before"):
            second.protect(table)
    assert ledger.statement().groupings == 1


def test_the_same_lot_by_a_seed_is_the_same_grouping():
    table, ledger = alike(), people()
    for _ in range(2):
        cv.published.EqualHalvesMondrian(k=7, random_state=3, ledger=ledger).fit(table).protect(table)
    assert ledger.statement().groupings == 1


def test_other_quasi_identifiers_are_another_grouping():
    """At k = 7 both tables of twelve are one class; each shows what the other blurs."""
    ledger = people()
    ages, zips = (cv.Table.from_frame(in_a_row(), target="ok", quasi_identifiers=[name]) for name in ("age", "zip"))
    cv.Mondrian(k=7, ledger=ledger).fit(ages).protect(ages)
    second = cv.Mondrian(k=7, ledger=ledger).fit(zips)
    with pytest.raises(RefusedError, match="grouped before"):
        second.protect(zips)


def test_another_target_column_is_another_grouping():
    ledger, frame = people(), in_a_row()
    one, other = (cv.Table.from_frame(frame, target=name, quasi_identifiers=["age"]) for name in ("ok", "score"))
    cv.Mondrian(k=7, ledger=ledger).fit(one).protect(one)
    with pytest.raises(RefusedError):
        cv.Mondrian(k=7, ledger=ledger).fit(other).protect(other)


def test_one_changed_decision_is_another_grouping():
    ledger, frame = people(), in_a_row()
    changed = frame.copy()
    changed.loc[4, "ok"] = "n" if frame["ok"][4] == "y" else "y"
    before, after = (cv.Table.from_frame(f, target="ok", quasi_identifiers=["age"]) for f in (frame, changed))
    cv.Mondrian(k=7, ledger=ledger).fit(before).protect(before)
    with pytest.raises(RefusedError, match="grouped before"):
        cv.Mondrian(k=7, ledger=ledger).fit(after).protect(after)


def test_order_of_rows_and_columns_and_identifiers_are_no_news():
    ledger, table = people(), small_table(80)
    cv.Mondrian(k=5, ledger=ledger).fit(table).protect(table)
    frame = table.frame.iloc[::-1, ::-1].assign(id=[f"p{i}" for i in range(80)])
    turned = cv.Table(frame, table.schema)
    cv.Mondrian(k=5, ledger=ledger).fit(turned).protect(turned)
    assert ledger.statement().groupings == 1


# ---------------------------------------------------------------- parameters that change after fit

TABLE, ROWS = small_table(90), small_table(8, seed=5).features


def asks(protector):
    """Everything that a fitted protector gives away."""
    if isinstance(protector, cv.CFK):
        return [
            lambda: protector.explain(ROWS),
            lambda: protector.region_of(ROWS),
            lambda: protector.accepts(ROWS),
        ]
    return [lambda: protector.protect(TABLE)]


def fitted(protector):
    return protector.fit(TABLE, small_model) if isinstance(protector, cv.CFK) else protector.fit(TABLE)


CHANGES = [
    (cv.CFK, {"k": 3}, {"k": 50}),
    (cv.CFK, {"k": 3}, {"search": "exact"}),
    (cv.CFK, {"k": 3, "weights": {"age": 0.5, "city": 0.25, "level": 0.25}}, {"weights": None}),
    (cv.CFK, {"k": 3}, {"explainer": cv.NICE(justified=False)}),
    (cv.Mondrian, {"k": 4, "l": 2, "sensitive": "ill"}, {"l": None}),
    (cv.Mondrian, {"k": 4}, {"k": 50}),
    (cv.KCommonPatterns, {"k": 3}, {"k": 50}),
]


@pytest.mark.parametrize(
    ("kind", "given", "changed"),
    CHANGES,
    ids=[f"{k.__name__}-{next(iter(c))}-{i}" for i, (k, _, c) in enumerate(CHANGES)],
)
def test_nothing_leaves_after_a_parameter_has_changed(kind, given, changed):
    protector = fitted(kind(**given))
    before = {name: getattr(protector, name) for name in changed}
    protector.set_params(**changed)
    for ask in asks(protector):
        with pytest.raises(cv.SchemaError, match="have changed since fit"):
            ask()
    protector.set_params(**before)
    for ask in asks(protector):
        ask()


@pytest.mark.parametrize("kind", [cv.CFK, cv.Mondrian])
def test_a_ledger_cannot_be_taken_away_or_swapped_after_fit(kind):
    """Two ledgers in memory of one name read alike; they are two nevertheless."""
    ledger = people()
    protector = fitted(kind(4, ledger=ledger))
    for other in (None, people()):
        protector.set_params(ledger=other)
        for ask in asks(protector):
            with pytest.raises(cv.SchemaError, match="have changed since fit"):
                ask()
    assert ledger.statement().groupings == 0


def test_groups_given_after_fit_do_not_make_a_second_grouping_pass_as_grown():
    ledger = people()
    one = cv.CFK(4, ledger=ledger).fit(TABLE, small_model)
    one.explain(ROWS)
    weights = {"age": 0.9, "city": 0.05, "level": 0.05}
    two = cv.CFK(4, weights=weights, ledger=ledger).fit(TABLE.take(range(1, 90)), small_model)
    with pytest.raises(RefusedError, match="grouped before"):
        two.explain(ROWS)
    two.set_params(previous=one.roster_)
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        two.explain(ROWS)
    assert ledger.statement().groupings == 1


def test_weights_that_are_edited_in_place_are_noticed():
    weights = {"age": 0.5, "city": 0.25, "level": 0.25}
    protector = cv.CFK(4, weights=weights).fit(TABLE, small_model)
    weights["age"] = 0.1
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        protector.explain(ROWS)


def test_a_fit_that_fails_leaves_nothing_to_ask():
    from sklearn.exceptions import NotFittedError

    cfk, mondrian = cv.CFK(4).fit(TABLE, small_model), cv.Mondrian(4).fit(TABLE)
    for protector, arguments in ((cfk, (small_table(3), small_model)), (mondrian, (small_table(3),))):
        with pytest.raises(ValueError, match="'k' parameter"):
            protector.fit(*arguments)
        for ask in asks(protector):
            with pytest.raises(NotFittedError):
                ask()


def test_a_pickle_keeps_what_was_given_and_the_copy_records_in_the_same_ledger(tmp_path):
    ledger = cv.Ledger.create(tmp_path / "people.ledger", "people", epsilon=1.0)
    stored = cv.CFK(4, search=cv.protect.GroupSearch(grouping="mondrian")).fit(TABLE, small_model).roster_
    rng = np.random.default_rng(0)
    for protector in (
        cv.CFK(
            4,
            search=cv.protect.GroupSearch(grouping="mondrian"),
            previous=stored,
            ledger=ledger,
            explainer=cv.NICE(justified=False),
        ),
        cv.Mondrian(4, ledger=ledger, random_state=rng),
        cv.KCommonPatterns(3),
    ):
        made = fitted(protector)
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
            verify_unchanged(again)
            if isinstance(again, cv.CFK):
                again.explain(ROWS)
            else:
                again.protect()
            again.set_params(k=5)
            with pytest.raises(cv.SchemaError, match="have changed since fit"):
                verify_unchanged(again)
    assert ledger.verify().groupings >= 1


def test_clones_are_unfitted_and_share_the_ledger():
    ledger = people()
    copied = clone(fitted(cv.Mondrian(4, ledger=ledger)))
    assert copied.ledger is ledger and not hasattr(copied, "fitted_as_")
    assert freeze(copied) == freeze(cv.Mondrian(4, ledger=ledger))


def test_regions_are_recorded_before_they_are_shown():
    ledger = people()
    cv.CFK(4, ledger=ledger).fit(TABLE, small_model).region_of(ROWS)
    assert ledger.statement().groupings == 1
    second = cv.CFK(6, ledger=ledger).fit(TABLE, small_model)
    with pytest.raises(RefusedError, match="grouped before"):
        second.region_of(ROWS)
