"""What Mondrian would release without each person: all in one go, against a run for each of them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import countervail as cv
from countervail.core.cells import fits
from countervail.core.errors import DataNotFoundError
from countervail.core.hierarchy import Hierarchy
from countervail.core.protocols import LeavesOneOut
from countervail.protect.mondrian import without_one

CITY = Hierarchy(
    (
        ("a", "sea", "coast", "*"),
        ("b", "sea", "coast", "*"),
        ("c", "river", "coast", "*"),
        ("d", "hill", "inland", "*"),
        ("e", "hill", "inland", "*"),
    ),
    "city",
)
ADULT = ["age", "education", "marital-status", "hours-per-week", "native-country"]


@pytest.fixture(scope="module", autouse=True)
def _in_one_go():
    """Small tables too, which are spared the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(without_one, "_SMALL", -1)
        yield


def random_table(seed, n):
    """Few distinct values, so that ties, sole holders and missing values all occur."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 20 + int(rng.integers(2, 25)), n).astype(float)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.15 * (seed % 3 == 0), np.nan, age),
            "pay": rng.normal(30, 9, n).round(),
            "city": rng.choice(list("abcde"), n, p=[0.4, 0.2, 0.2, 0.15, 0.05]),
            "level": rng.choice(["low", "mid", "high"], n),
            "ill": rng.choice(["flu", "cold", "none", "hiv"], n, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    if seed % 4 == 0:
        frame.loc[rng.random(n) < 0.1, "city"] = None
    if seed % 5 == 0:
        frame.loc[rng.random(n) < 0.1, "level"] = None
    columns = (
        cv.Column("age", "numeric", "quasi"),
        cv.Column("pay", "numeric", "quasi"),
        cv.Column("city", "categorical", "quasi"),
        cv.Column("level", "ordinal", "quasi", levels=("low", "mid", "high")),
        cv.Column("ill", role="sensitive"),
    )
    return cv.Table(frame, cv.Schema(columns))


def counted(protector, table, others, row, values, sensitive="ill"):
    """Run the protector on the other rows and count, cell by cell, who agrees with a row."""
    rest = table.take(others)
    release = clone(protector).fit(rest).protect(rest)
    secrets = [values.index(None if pd.isna(v) else v) for v in release.others[sensitive]]
    holders = np.zeros((len(release.regions), len(values)), int)
    np.add.at(holders, (release.groups, secrets), 1)
    mine = {n: table.frame[n].iloc[row] for n in table.schema.names("quasi")}
    agrees = [[fits(v, region.cells[n]) for n, v in mine.items()] for region in release.regions]
    return np.array(agrees, int).T @ holders


def compare(protector, table, rows, sensitive="ill"):
    """Everybody is asked at once, since people are compared with one another; the rows are run again one by one."""
    source = protector.leave_one_out(table, sensitive)
    assert source is not None
    everyone = np.arange(len(table))
    found = source.agreement(everyone)
    alone = source.agreement(np.asarray(rows, dtype=np.int64))
    assert (alone.without_person == found.without_person[rows]).all()
    assert (alone.with_person == found.with_person[rows]).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(without_one, "_SMALL", 10**9)
        singly = source.agreement(np.asarray(rows[:2], dtype=np.int64))
    assert (singly.without_person == found.without_person[rows[:2]]).all()
    assert (singly.with_person == found.with_person[rows[:2]]).all()
    for at, row in enumerate(rows):
        without = counted(protector, table, np.delete(everyone, row), row, source.values, sensitive)
        assert (found.without_person[row] == without).all()
        if at < 3:
            whole = counted(protector, table, everyone, row, source.values, sensitive)
            assert (found.with_person[row] == whole).all()


DIVERSE = st.sampled_from(
    [None, ("distinct", 2), ("entropy", 1.5), ("recursive", (3.0, 2)), ("frequency", 1.5), ("frequency", 2)]
)


def make(k, kind=None, **settings_):
    """Mondrian as asked for; `kind="basic"` is the published one."""
    return (
        cv.published.BasicMondrian(k, **settings_)
        if kind == "basic"
        else cv.Mondrian(k, choose=kind or "gain", **settings_)
    )


def any_settings(grouped, diverse):
    extra = {} if grouped is None else {"hierarchies": {"city": CITY}, "labels": grouped}
    if diverse is not None:
        extra |= {"l": diverse[1], "diversity": diverse[0], "sensitive": "ill"}
    return extra


def compare_some(protector, table, seed):
    """Ten rows, where there is a short way; a table that cannot keep the promise has none."""
    try:
        source = protector.leave_one_out(table, "ill")
    except cv.CountervailError:
        return
    if source is not None:
        compare(protector, table, np.random.default_rng(seed).permutation(len(table))[:10].tolist())


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(6, 45),
    st.integers(1, 6),
    st.sampled_from([None, "tight", "hierarchy"]),
    DIVERSE,
)
def test_basic_mondrian_equals_a_run_without_each_row(seed, n, k, grouped, diverse):
    table = random_table(seed, n)
    compare_some(make(min(k, n - 1), "basic", **any_settings(grouped, diverse)), table, seed)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(6, 90),
    st.integers(1, 6),
    st.sampled_from([None, "tight", "hierarchy"]),
    DIVERSE,
    st.sampled_from(["gain", "span"]),
    st.booleans(),
)
def test_mondrian_equals_a_run_without_each_row(seed, n, k, grouped, diverse, choose, by_class):
    table = random_table(seed, n)
    if by_class:
        frame = table.frame.assign(ok=np.random.default_rng(seed).choice(["y", "n"], n))
        table = cv.Table(frame, cv.Schema((*table.schema.columns, cv.Column("ok", role="target"))))
    extra = any_settings(grouped, diverse)
    compare_some(cv.Mondrian(min(k, n - 1), choose=choose, by_class=by_class, **extra), table, seed)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(150, 400),
    st.integers(1, 12),
    st.integers(3, 10),
    DIVERSE,
    st.sampled_from(["gain", "span", "basic"]),
)
def test_people_who_are_asked_as_one_get_their_own_counts(seed, n, k, step, diverse, kind):
    # Many rows and few values: most people of a node share what the cut of an attribute depends on.
    table = random_table(seed, n)
    coarse = {name: table.frame[name] // step * step for name in ("age", "pay")}
    table = cv.Table(table.frame.assign(**coarse), table.schema)
    compare_some(make(k, kind, **any_settings(None, diverse)), table, seed)


@pytest.mark.parametrize("seed", range(6))
def test_the_counts_with_everybody_are_those_of_the_release(seed):
    # Groups of uneven size at every level: which code stands for a group must not matter.
    rng = np.random.default_rng(seed)
    lines = [(f"v{i:02}", f"g{i % 9 // 2}{i // 11}", f"h{i // 11}", "*") for i in range(22)]
    frame = pd.DataFrame(
        {
            "x": rng.choice([line[0] for line in lines], 400, p=rng.dirichlet(np.ones(22))),
            "y": rng.choice([line[0] for line in lines], 400, p=rng.dirichlet(np.ones(22))),
            "age": rng.integers(20, 50, 400),
            "ill": rng.choice(["flu", "cold", "none"], 400),
        }
    )
    table = cv.Table.from_frame(frame, quasi_identifiers=["x", "y", "age"], sensitive=["ill"])
    trees = {n: Hierarchy(tuple(lines), n) for n in ("x", "y")}
    protector = make(1, "basic", l=1.8, diversity="frequency", sensitive="ill", hierarchies=trees, labels="hierarchy")
    source = protector.leave_one_out(table, "ill")
    rows = rng.permutation(400)[:15]
    found = source.agreement(rows)
    for at, row in enumerate(rows):
        assert (found.with_person[at] == counted(protector, table, np.arange(400), row, source.values)).all()


@pytest.mark.parametrize("kind", ["distinct", "entropy", "recursive"])
def test_other_diversities_take_the_same_way(kind):
    table = random_table(7, 60)
    protector = make(2, "basic", l=(3.0, 2) if kind == "recursive" else 2, diversity=kind, sensitive="ill")
    compare(protector, table, range(0, 60, 3))


def test_a_worked_example():
    # 1 1 2 | 3 3: half of five, rounded down, is reached at 1; so the cut is 1 1 | 2 3 3, and again 2 | 3 3 is refused
    # for k=2 because the half of three is one. Without the 2 the cut is the same and the right cell is a point.
    frame = pd.DataFrame({"x": [1, 1, 2, 3, 3], "s": ["a", "b", "a", "a", "b"]})
    table = cv.Table.from_frame(frame, quasi_identifiers=["x"], sensitive=["s"])
    source = make(2, "basic").leave_one_out(table, "s")
    found = source.agreement(np.array([2, 0]))
    assert source.values == ("a", "b")
    assert found.with_person[:, 0].tolist() == [[2, 1], [1, 1]]
    # Row 2 (a 2): without it no cell contains 2. Row 0: 1 2 3 3 is cut at 2, so that 1 lies in the cell of 1 and 2.
    assert found.without_person[:, 0].tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("kind", ["basic", "gain", "span"])
def test_who_alone_holds_an_end_or_a_category_is_run_again(kind):
    table = random_table(1, 40)
    frame = table.frame.copy()
    frame.loc[5, "age"] = 99.0
    frame.loc[6, "pay"] = -40.0
    frame["city"] = ["d" if i == 7 else "a" for i in range(40)]
    table = cv.Table(frame, table.schema)
    protector = make(3, kind)
    source = protector.leave_one_out(table, "ill")
    assert set(np.flatnonzero(source.alone())) >= {5, 6, 7}
    compare(protector, table, [5, 6, 7, 8])


def test_equal_people_get_equal_counts_and_any_order_will_do():
    table = random_table(3, 50)
    twice = cv.Table(pd.concat([table.frame, table.frame]), table.schema)
    source = make(4, "basic").leave_one_out(twice, "ill")
    rows = np.random.default_rng(0).permutation(100)
    found = source.agreement(rows)
    straight = source.agreement(np.arange(100))
    assert (found.without_person == straight.without_person[rows]).all()
    assert (straight.without_person[:50] == straight.without_person[50:]).all()


@pytest.mark.parametrize(
    "settings_",
    [
        {"mode": "relaxed"},
        {"suppress": 0.1},
        {"t": 0.5, "sensitive": "ill"},
        {"kind": "basic", "t": 0.5, "sensitive": "ill"},
        {"kind": "basic", "by_class": True},
    ],
    ids=["relaxed", "suppress", "t", "basic t", "basic by class"],
)
def test_other_settings_have_to_be_run_again(settings_):
    table = random_table(2, 30)
    frame = table.frame.assign(ok=["y", "n"] * 15)
    table = cv.Table(frame, cv.Schema((*table.schema.columns, cv.Column("ok", role="target"))))
    protector = make(3, **settings_)
    assert isinstance(protector, LeavesOneOut)
    assert protector.leave_one_out(table, "ill") is None


def test_our_worked_example():
    # 1 1 2 3 3 with k=2: the cut nearest half is 1 1 | 2 3 3 (of two equally near, the first). Without the 2 the cells
    # are points; without a 1 the cut is 1 2 | 3 3.
    frame = pd.DataFrame({"x": [1, 1, 2, 3, 3], "s": ["a", "b", "a", "a", "b"]})
    table = cv.Table.from_frame(frame, quasi_identifiers=["x"], sensitive=["s"])
    found = cv.Mondrian(2).leave_one_out(table, "s").agreement(np.array([2, 0]))
    assert found.with_person[:, 0].tolist() == [[2, 1], [1, 1]]
    assert found.without_person[:, 0].tolist() == [[0, 0], [1, 1]]


def test_the_inference_test_takes_the_short_way_for_mondrian():
    table = random_table(7, 60)
    fast = cv.DifferentialInferenceTest(cv.Mondrian(5), beside=0).run(table)
    slow = cv.DifferentialInferenceTest(cv.Mondrian(5), beside=0, path="general").run(table)
    assert (fast.path, slow.path) == ("fast", "general")
    assert (fast.rows == slow.rows).all()
    assert np.abs(fast.d_pp - slow.d_pp).max() < 1e-12


def test_no_short_way_where_a_run_without_somebody_would_be_refused():
    table = random_table(2, 12)
    assert make(12, "basic").leave_one_out(table, "ill") is None
    assert make(11, "basic").leave_one_out(table, "ill") is not None
    assert make(2, "basic").leave_one_out(table, "age") is None
    other = make(1, "basic", l=1, diversity="frequency", sensitive="ill")
    assert other.leave_one_out(table.with_roles(quasi=["age"]), "pay") is None


def test_adult_without_two_hundred_people(seeds):
    try:
        whole = cv.load("adult")
    except DataNotFoundError:
        pytest.skip("the registered set 'adult' is not on this machine")
    rows = whole.frame.dropna().sample(1200, random_state=0)[[*ADULT, "occupation"]].reset_index(drop=True)
    table = cv.Table.from_frame(rows, quasi_identifiers=ADULT, sensitive=["occupation"])
    who = np.random.default_rng(1).permutation(1200)
    ours = [{"kind": c} for c in ("gain", "span")]
    settings_ = [{"kind": "basic", "k": k} for k in (1, 2, 5, 20, 64)]
    secret = {"sensitive": "occupation"}
    settings_ += [{"kind": "basic", "k": 1, "l": x, "diversity": "frequency", **secret} for x in (2, 3, 5)]
    settings_ += [{**c, "k": k} for c in ours for k in (2, 5, 20)]
    settings_ += [{**c, "k": 2, "l": 2, "diversity": d, **secret} for c in ours for d in ("distinct", "frequency")]
    n = len(seeds(12, 25))
    for i, changes in enumerate(settings_):
        compare(make(**changes), table, who[n * i : n * i + n].tolist(), "occupation")
