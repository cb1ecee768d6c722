"""Attacks on k-anonymous groupings that once worked: lots, roles, new rows, changed parameters, changed people."""

import copy
import json
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import countervail as cv
from countervail.core.errors import ParameterError, RefusedError
from countervail.protect._fitted import freeze, verify_unchanged
from countervail.protect._recorded import row_digests
from countervail.protect.cfk.stored_groups import Groups
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
    two.set_params(groups=one.groups_)
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        two.explain(ROWS)
    assert ledger.statement().groupings == 1


def test_other_groups_that_read_alike_are_noticed():
    first = cv.CFK(4).fit(TABLE, small_model).groups_
    refit = cv.CFK(4, groups=first).fit(TABLE, small_model)
    twin = Groups.from_json(first.to_json())
    assert repr(twin) == repr(first)
    refit.set_params(groups=twin)
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        refit.explain(ROWS)


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
    stored = cv.CFK(4, grouping="mondrian").fit(TABLE, small_model).groups_
    rng = np.random.default_rng(0)
    for protector in (
        cv.CFK(4, grouping="mondrian", groups=stored, ledger=ledger, explainer=cv.NICE(justified=False)),
        cv.Mondrian(4, ledger=ledger, random_state=rng),
        cv.KCommonPatterns(3),
    ):
        made = fitted(protector)
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
            verify_unchanged(again)
            if isinstance(again, cv.CFK):
                again.region_of(ROWS)
                again.explain(ROWS)
            else:
                again.protect(again.table_)
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


# ---------------------------------------------------------------- people who have changed


def nameless(table):
    """The same people without identifiers."""
    schema = type(table.schema)(tuple(c for c in table.schema if c.role != "identifier"), table.schema.favourable)
    return cv.Table(table.frame.drop(columns="id"), schema)


def changed(table, who, **values):
    frame = table.frame.copy()
    for name, value in values.items():
        frame.iloc[who, frame.columns.get_loc(name)] = value
    return cv.Table(frame, table.schema)


@pytest.mark.parametrize("known", [True, False], ids=["identifiers", "quasi-identifiers"])
def test_somebody_whose_income_changed_is_not_grouped_again(known):
    table = small_table(120) if known else nameless(small_table(120))
    who = np.random.default_rng(0).permutation(120)[:55]
    income = table.frame["income"].iloc[who].to_numpy() + 1.0
    ledger = people()
    one = cv.CFK(5, ledger=ledger).fit(table, small_model)
    one.explain(ROWS)
    two = cv.CFK(5, groups=one.groups_, ledger=ledger).fit(changed(table, who, income=income), small_model)
    two.explain(ROWS)
    assert (two.search_.row_group_[who] == -1).all()
    same = np.setdiff1d(np.arange(120), who)
    assert (two.search_.row_group_[same] == one.search_.row_group_[same]).all()
    assert not set(one.search_.row_group_[who]) & set(two.search_.usable_group_)
    back = cv.CFK(5, groups=two.groups_).fit(table, small_model)
    assert (back.search_.row_group_ == one.search_.row_group_).all()
    assert set(back.search_.usable_group_) == set(one.search_.usable_group_)


def test_an_identifier_finds_somebody_who_has_moved():
    table = small_table(60)
    one = cv.CFK(3).fit(table, small_model)
    moved = changed(table, range(9), age=table.frame["age"].iloc[:9].to_numpy() + 7, city="c")
    two = cv.CFK(3, groups=one.groups_).fit(moved, small_model)
    assert (two.search_.row_group_[:9] == -1).all() and two.groups_.version == 1


def test_without_an_identifier_somebody_who_has_moved_looks_new_and_the_answer_says_so():
    """The limit that is left: it must stay on the label."""
    table = nameless(small_table(60))
    one = cv.CFK(3).fit(table, small_model)
    moved = changed(table, range(9), age=np.arange(81, 90))
    two = cv.CFK(3, groups=one.groups_).fit(moved, small_model)
    assert (two.search_.row_group_[:9] >= 0).all()
    assert any("cannot be told from somebody new" in c for c in two.explain(ROWS).caveats)


def twins(ids, ages, pay):
    frame = pd.DataFrame({"id": ids, "age": ages, "pay": pay})
    frame["ok"] = np.where(np.arange(len(frame)) % 2, "yes", "no")
    return cv.Table.from_frame(frame, target="ok", favourable="yes", identifiers=["id"], quasi_identifiers=["age"])


def stored_for(table, k=2):
    empty = Groups.first(k, table)
    quasi = row_digests(table, ["age"], empty.key)
    _, group = np.unique(quasi, return_inverse=True)
    schema = type(table.schema)((table.schema["age"],))
    from countervail.core.region import Regions

    ages = table.frame["age"].to_numpy()
    cells = [{"age": int(ages[group == g][0])} for g in range(group.max() + 1)]
    return empty.extended(table, np.arange(len(table)), group.astype(np.int64), Regions.from_cells(cells, schema))


OLD = twins(list("abcdefgh"), [30] * 4 + [40] * 4, range(8))


@pytest.mark.parametrize(
    ("ids", "new"),
    [
        (["x", "y"], [True, True]),  # others: the one who left had an identifier, and they have theirs
        (["a", "y"], [False, True]),  # her, and somebody new
        ([None, "y"], [False, True]),  # without an identifier it may be her
    ],
    ids=["others", "her", "unknown"],
)
def test_who_may_be_somebody_who_is_gone(ids, new):
    """Person a (age 30) is not found as she was; two rows of age 30 are there that nobody knows."""
    table = twins([*"bcdefgh", *ids], [30] * 3 + [40] * 4 + [30] * 2, [*range(1, 8), 50, 51])
    placed = stored_for(OLD).assign(table)
    assert placed.new.tolist() == [False] * 7 + new
    assert (placed.group >= 0).tolist() == [True] * 7 + [False] * 2


def test_without_identifiers_all_rows_like_the_one_who_is_gone_wait():
    """One person is gone and three are new with her age: each of them may be her. Those of another age are new."""
    old = nameless(OLD)
    table = nameless(twins(range(12), [30] * 3 + [40] * 4 + [30] * 3 + [50, 40], [*range(1, 8), 50, 51, 52, 53, 54]))
    placed = stored_for(old).assign(table)
    assert placed.new.tolist() == [False] * 7 + [False] * 3 + [True, True]


def test_a_reissued_identifier_does_not_make_somebody_new():
    table = twins(["z", *"bcdefgh"], [30] * 4 + [40] * 4, range(8))
    placed = stored_for(OLD).assign(table)
    assert placed.group[0] == -1 and not placed.new[0]


def test_somebody_else_with_her_values_does_not_take_her_place():
    """Equal in all features, but another identifier: the group of the one who left is not whole."""
    table = twins([*"bcdefgh", "z"], [30] * 3 + [40] * 4 + [30], [*range(1, 8), 0])
    stored = stored_for(OLD)
    placed = stored.assign(table)
    lost = int(stored.group[0])
    assert not stored.whole(placed.group)[lost] and stored.whole(placed.group)[1 - lost]


def may_be(old, row, lost):
    """The rule, person by person."""
    for i in lost:
        a, b = old.frame.iloc[i], row
        both = not pd.isna(a["id"]) and not pd.isna(b["id"])
        if (both and a["id"] == b["id"]) or (a["age"] == b["age"] and (a["pay"] == b["pay"] or not both)):
            return True
    return False


@pytest.mark.parametrize("seed", range(25))
def test_the_rule_agrees_with_a_slow_one(seed):
    rng = np.random.default_rng(seed)

    def crowd(n, start):
        ids = [None if rng.random() < 0.25 else f"p{start + i}" for i in range(n)]
        return twins(ids, rng.integers(30, 36, n), rng.integers(0, 4, n))

    old = crowd(14, 0)
    stay = np.sort(rng.permutation(14)[:10])
    frame = pd.concat([old.frame.iloc[stay], old.frame.drop(index=stay).assign(pay=9), crowd(12, 8).frame])
    table = cv.Table(frame.reset_index(drop=True), old.schema)
    placed = stored_for(old, 1).assign(table)
    seen, found = [], set()
    for _, row in table.frame.iterrows():
        same = (
            old.frame[["id", "age", "pay"]].astype(object).fillna("-") == row[["id", "age", "pay"]].fillna("-")
        ).all(axis=1)
        at = next((i for i in np.flatnonzero(same) if i not in found), None)
        seen.append(at)
        found.add(at)
    lost = [i for i in range(14) if i not in found]
    for at, (_, row), new, group in zip(seen, table.frame.iterrows(), placed.new, placed.group):
        assert (group >= 0) == (at is not None)
        assert new == (at is None and not may_be(old, row, lost))


def test_groups_that_know_identifiers_ask_for_them():
    one = cv.CFK(3).fit(small_table(60), small_model)
    with pytest.raises(cv.SchemaError, match="recognise people by the identifiers"):
        cv.CFK(3, groups=one.groups_).fit(nameless(small_table(60)), small_model)


def test_stored_groups_keep_what_recognises_people_and_no_value(tmp_path):
    table = small_table(60)
    stored = cv.CFK(3).fit(table, small_model).groups_
    stored.write(tmp_path / "groups.json")
    again = Groups.read(tmp_path / "groups.json")
    assert again.to_json() == stored.to_json()
    assert (again.people == stored.people).all() and again.people.shape == (60, 1)
    assert not any(name in stored.to_json() for name in table.frame["id"])
    bare = cv.CFK(3).fit(nameless(table), small_model).groups_
    assert Groups.from_json(bare.to_json()).people.shape == (60, 0)


def test_groups_of_the_first_format_are_refused():
    data = json.loads(cv.CFK(3).fit(small_table(60), small_model).groups_.to_json())
    for name in ("format", "identifiers", "quasi", "people"):
        del data[name]
    with pytest.raises(cv.SchemaError, match="format 1"):
        Groups.from_json(json.dumps(data))


def undeclared(n, seed=0):
    """People in columns whose domains nobody has declared."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(n)], "age": rng.integers(20, 40, n)})
    frame["city"], frame["pay"] = rng.choice(["a", "b"], n), rng.integers(0, 9, n)
    frame["ill"], frame["ok"] = rng.choice(["x", "y", "z"], n), rng.choice(["no", "yes"], n)
    return frame


def as_table(frame):
    roles = {"identifiers": ["id"], "quasi_identifiers": ["age", "city"], "sensitive": ["ill"]}
    return cv.Table.from_frame(frame, target="ok", favourable="yes", **roles)


def well_paid(frame):
    return np.where(frame["pay"].to_numpy(float) > 4, "yes", "no")


@pytest.mark.parametrize("settings", [{}, {"t": 0.9, "sensitive": "ill"}, {"l": 2, "sensitive": "ill"}], ids=str)
@pytest.mark.parametrize(
    "news", [{"age": 99}, {"city": "new"}, {"ill": "rare"}, {"pay": 10**6}, {"ok": "a third label"}], ids=str
)
def test_somebody_who_waits_reaches_no_answer(settings, news):
    """One newcomer is too few for a group: whatever she is like, the others' answers are those of before."""
    frame, asked = undeclared(80), undeclared(25, seed=1).drop(columns=["id", "ok"])
    one = cv.CFK(4, **settings).fit(as_table(frame), well_paid)
    grown = pd.concat([frame, frame.iloc[[0]].assign(id="newcomer", **news)], ignore_index=True)
    two = cv.CFK(4, groups=one.groups_, **settings).fit(as_table(grown), well_paid)
    assert two.search_.row_group_[-1] == -1
    before, after = one.explain(asked), two.explain(asked)
    assert before.found.any()
    assert after.counterfactuals.astype(str).equals(before.counterfactuals.astype(str))
    assert after.status.equals(before.status) and after.after.equals(before.after)
