"""l and t of groups: what is promised is recounted from answers, and what is not promised is shown to fail."""

import json

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.guarantee import guarantee_from_dict

pytestmark = pytest.mark.usefixtures("quick_groups")
QUASI = ("age", "city")


def people(seed, n=80):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(20, 40, n), "city": rng.choice(list("abc"), n)})
    frame["pay"] = rng.integers(0, 10, n)
    frame["ill"] = np.where(frame["age"] < 30, "flu", rng.choice(["flu", "cold", "none"], n))
    frame["ok"] = np.where(frame["pay"] > 4, "yes", "no")
    return _table(frame)


def old_and_ill():
    """Everybody over 60 is ill in city b and half of them in a; the young of b are well."""
    cells = [("a", 60, "ill", 5), ("a", 61, "well", 5), ("b", 60, "ill", 5), ("b", 61, "ill", 5), ("b", 20, "well", 10)]
    frame = pd.DataFrame(
        [(city, age, ill) for city, age, ill, n in cells for _ in range(n)], columns=["city", "age", "ill"]
    )
    frame["pay"] = np.arange(len(frame)) % 4
    frame["ok"] = np.where(frame["age"] > 50, "yes", "no")
    return _table(frame)


def _table(frame):
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=list(QUASI), sensitive=["ill"])


def grants_more_to_the_old(rows):
    return np.where(rows["pay"] + (rows["age"] > 33) * 6 > 5, "yes", "no")


def grants_to_the_old(rows):
    return np.where(rows["age"] > 50, "yes", "no")


def fits(cells, frame, own=()):
    """Who has these quasi-identifiers; a cell that is the asker's own is anything."""
    met = np.ones(len(frame), dtype=bool)
    for name in (n for n in QUASI if n not in own):
        cell = cells[name]
        if isinstance(cell, pd.Interval):
            met &= frame[name].between(cell.left, cell.right).to_numpy()
        else:
            met &= frame[name].isin(cell if isinstance(cell, frozenset) else [cell]).to_numpy()
    return met


def gap(some, everybody):
    share = everybody.value_counts(normalize=True)
    return (some.value_counts(normalize=True).reindex(share.index, fill_value=0) - share).abs().sum() / 2


def group_regions(made, frame):
    """The rows of each group by its ends and values, read off its people."""
    group, held = made.search_.row_group_, {}
    for g in range(group.max() + 1):
        rows = frame[group == g]
        held[(rows["age"].min(), rows["age"].max(), frozenset(rows["city"]))] = rows
    return held


def spelt(cells):
    age, city = cells["age"], cells["city"]
    low, high = (age.left, age.right) if isinstance(age, pd.Interval) else (age, age)
    return low, high, city if isinstance(city, frozenset) else frozenset([city])


@pytest.mark.parametrize("reward", ["sparsity", "none"])
@pytest.mark.parametrize("asked", [{"l": 2}, {"l": 3}, {"t": 0.2}, {"l": 2, "t": 0.1}], ids=str)
def test_the_group_behind_every_answer_keeps_what_was_asked_for(asked, reward, seeds):
    answered = 0
    for seed in seeds(4, 200):
        table, queries = people(seed), people(seed + 1000, 12)
        made = cv.CFK(k=4, reward=reward, **asked, sensitive="ill").fit(table, grants_more_to_the_old)
        e, whole = made.explain(queries), made.disclosed(queries)
        assert e.guarantee.refute(e, table) is None
        groups = group_regions(made, table.frame)
        for i in np.flatnonzero(e.found):
            members = groups[spelt(whole.counterfactuals.iloc[i])]
            assert len(members) >= 4 and members["ill"].nunique() >= asked.get("l", 0)
            assert gap(members["ill"], table.frame["ill"]) <= asked.get("t", 1) + 1e-9
            own = [] if e.own is None else [n for n in QUASI if e.own[i][list(e.factuals.columns).index(n)]]
            shown = fits(e.counterfactuals.iloc[i], table.frame, own)
            assert shown[members.index].all(), "what is shown fits the whole group"
            assert table.frame["ill"][shown].nunique() >= asked.get("l", 0), "and so as many values"
            answered += 1
    assert answered > 0


@pytest.mark.parametrize("reward", ["sparsity", "none"])
def test_people_who_fit_what_is_shown_may_be_distributed_otherwise(reward):
    """The promise is about groups, and says so: of everybody who fits an answer it would be false."""
    table = old_and_ill()
    made = cv.CFK(k=10, reward=reward, t=0.2, sensitive="ill").fit(table, grants_to_the_old)
    e = made.explain(pd.DataFrame({"age": [30], "city": ["a"], "ill": ["well"], "pay": [1]}))
    assert e.found.all() and "between 60 and 61" in e.to_text()
    promise = e.guarantee.parts[1]
    assert promise == cv.TCloseness(0.2, "equal", "ill", within=10)
    assert "0.2-closeness (equal distance) of 'ill' within the groups of at least 10 people" in str(e.guarantee)
    assert promise.refute(e, table) is None
    broken = cv.TCloseness(0.2, "equal", "ill").refute(e, table)
    if reward == "sparsity":
        assert broken == "1 of 1 regions break 0.2-closeness (equal distance) of 'ill'; the farthest is 0.25 away"
    else:
        assert broken is None, "here nobody else lies in the whole region"


def test_closeness_of_the_people_in_regions_is_counted():
    table, queries = people(3), people(4, 20)
    settings = {"k": 4, "search": "exact", "reward": "none", "sensitive": "ill"}
    kept = cv.CFK(**settings, t=0.2).fit(table, grants_more_to_the_old).explain(queries)
    assert kept.guarantee.parts[1].refute(kept, table) is None
    plain = cv.CFK(**settings).fit(table, grants_more_to_the_old).explain(queries)
    assert "regions break 0.2-closeness" in cv.TCloseness(0.2, "equal", "ill").refute(plain, table)
    other = cv.Table.from_frame(
        table.frame.drop(columns="age"), target="ok", favourable="yes", quasi_identifiers=["city"]
    )
    assert "column(s) that the table does not have" in cv.TCloseness(0.2, "equal", "ill").refute(plain, other)


@pytest.mark.parametrize(
    "promise", [cv.TCloseness(0.2, "equal", "ill", within=5), cv.TCloseness(0.2, "equal", "ill")], ids=str
)
def test_the_promise_is_stored_whole(promise):
    data = promise.to_dict()
    assert guarantee_from_dict(json.loads(json.dumps(data))) == promise
    assert ("within" in data) == (promise.within is not None)
