"""Microaggregation: groups by slow twins, worked examples, what leaves, and what is refused."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.protect.microaggregation.mdav import Points, mdav, v_mdav
from countervail.testing import small_table


def squared(points, a, b):
    step = sum((points.numbers[a][j] - points.numbers[b][j]) ** 2 for j in range(points.numbers.shape[1]))
    return step + 2.0 * sum(points.labels[a] != points.labels[b])


def far_from_mean(points, left):
    """Squared distances from the mean, labels as indicators of length one."""
    weights = [int(points.weight[i]) for i in left]
    total = sum(weights)
    means = [
        sum(w * points.numbers[i][j] for i, w in zip(left, weights)) / total for j in range(points.numbers.shape[1])
    ]
    out = []
    for i in left:
        far = sum((points.numbers[i][j] - m) ** 2 for j, m in enumerate(means))
        for j in range(points.labels.shape[1]):
            for v in set(points.labels[:, j]):
                share = sum(w for x, w in zip(left, weights) if points.labels[x, j] == v) / total
                far += ((points.labels[i, j] == v) - share) ** 2
        out.append(far)
    return out


class Slow:
    """The papers' steps on distinct points with weights, one after the other."""

    def __init__(self, points, k):
        self.points, self.k, self.groups = points, k, []
        self.left = list(range(len(points.weight)))

    def weight(self, points=None):
        return sum(int(self.points.weight[i]) for i in (self.left if points is None else points))

    def outermost(self):
        far = far_from_mean(self.points, self.left)
        return self.left[max(range(len(far)), key=lambda i: (round(far[i], 9), -i))]

    def farthest(self, a):
        return max(self.left, key=lambda x: (squared(self.points, x, a), -x))

    def around(self, a):
        group = []
        for x in sorted(self.left, key=lambda x: (squared(self.points, x, a), x)):
            group.append(x)
            if self.weight(group) >= self.k:
                break
        self.left = [x for x in self.left if x not in group]
        self.groups.append(group)
        return group

    def finish(self):
        home = {x: g for g, group in enumerate(self.groups) for x in group}
        for x in self.left:
            self.groups[home[min(home, key=lambda y: (squared(self.points, x, y), y))]].append(x)
        return {frozenset(g) for g in self.groups}

    def mdav(self):
        while self.weight() >= 3 * self.k:
            r = self.outermost()
            s = self.farthest(r)
            self.around(r)
            if self.weight() < self.k:
                break
            self.around(s if s in self.left else self.farthest(r))
        if self.weight() >= 2 * self.k:
            self.around(self.outermost())
        if self.weight() >= self.k:
            self.groups.append(self.left)
            self.left = []
        return self.finish()

    def v_mdav(self, gamma):
        order = [
            x for _, x in sorted((-round(d, 9), x) for d, x in zip(far_from_mean(self.points, self.left), self.left))
        ]
        while self.weight() >= self.k:
            group = self.around(next(x for x in order if x in self.left))
            while self.left:
                near, x = min((min(squared(self.points, x, y) for y in group), x) for x in self.left)
                other = min((squared(self.points, x, y) for y in self.left if y != x), default=math.inf)
                if self.weight([*group, x]) >= 2 * self.k or not math.sqrt(near) < gamma * math.sqrt(other):
                    break
                group.append(x)
                self.left.remove(x)
        return self.finish()


def as_sets(group):
    return {frozenset(np.flatnonzero(group == g).tolist()) for g in np.unique(group)}


@st.composite
def clouds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, q, labels = draw(st.integers(2, 24)), draw(st.integers(0, 3)), draw(st.integers(0, 2))
    weight = rng.integers(1, draw(st.sampled_from([2, 4, 12])), n)
    numbers = rng.normal(size=(n, q)).round(draw(st.sampled_from([6, 1])))
    points = Points(numbers, rng.integers(0, 3, (n, labels)).astype(np.int32), weight)
    return points, draw(st.integers(1, max(1, int(weight.sum()) // 2)))


@given(clouds(), st.sampled_from([0.0, 0.2, 1.1, 3.0]))
def test_groups_have_k_rows_and_are_those_of_the_slow_twins(cloud, gamma):
    points, k = cloud
    sizes = 4
    for group in (mdav(points, sizes, k), v_mdav(points, sizes, k, gamma)):
        assert (np.bincount(group, points.weight) >= k).all()
        assert set(group) == set(range(group.max() + 1))
    untied = (
        points.numbers.shape[1] and not points.labels.shape[1] and (points.numbers.round(1) != points.numbers).any()
    )
    if untied:  # where distances tie, the last digit of a sum decides, and sums are made in another order here
        assert as_sets(mdav(points, sizes, k)) == Slow(points, k).mdav()
        assert as_sets(v_mdav(points, sizes, k, gamma)) == Slow(points, k).v_mdav(gamma)


def plain(numbers):
    numbers = np.asarray(numbers, dtype=float).reshape(len(numbers), -1)
    return Points(numbers, np.zeros((len(numbers), 0), np.int32), np.ones(len(numbers), np.int64))


def test_mdav_by_hand():
    # Steps of Domingo-Ferrer and Torra (2005), k=2: mean 14; 40 is farthest from it and 1 from 40: {31, 40}, {1, 2}. Of
    # 3, 9, 12 (mean 8), 3 is farthest; {3, 9} would leave 12 alone, so that all three are one group.
    assert as_sets(mdav(plain([1, 2, 3, 9, 12, 31, 40]), 1, 2)) == {
        frozenset({5, 6}),
        frozenset({0, 1}),
        frozenset({2, 3, 4}),
    }


def test_v_mdav_takes_in_who_is_near_to_the_group_only():
    # Solanas and Martinez-Balleste (2006): with gamma 0.2 the third of three close people joins, at most 2k - 1 = 3.
    numbers = [0.0, 0.1, 0.2, 5.0, 9.0, 9.5]
    assert as_sets(v_mdav(plain(numbers), 1, 2, 0.2)) == {frozenset({0, 1, 2}), frozenset({4, 5, 3})}
    assert as_sets(v_mdav(plain(numbers), 1, 2, 0.0)) == {frozenset({0, 1}), frozenset({4, 5}), frozenset({2, 3})}


@pytest.mark.parametrize("method", ["mdav", "v-mdav"])
def test_the_groups_are_a_function_of_the_quasi_identifiers(method, seeds):
    """The claim of docs/decisions/microaggregation.md: neither private columns nor the order of rows take part."""
    for seed in seeds(5, 100):
        rng, table = np.random.default_rng(seed), small_table(50, seed)
        other = table.frame.copy()
        for name in ("ill", "income", "ok"):
            other[name] = rng.permutation(other[name].to_numpy())
        order = rng.permutation(len(table))
        tables = [table, cv.Table(other, table.schema), table.take(order)]
        made = [cv.Microaggregation(4, method=method).fit(t) for t in tables]
        assert (made[0].cell_of_ == made[1].cell_of_).all()
        assert (made[0].release_.regions.text()) == made[1].release_.regions.text() == made[2].release_.regions.text()
        assert as_sets(made[0].cell_of_[order]) == as_sets(made[2].cell_of_)


def test_centres_are_means_medians_and_the_commonest_label():
    frame = pd.DataFrame(
        {
            "pay": [10.0, 20.0, 33.0, np.nan, 900.0, 910.0, np.nan, np.nan],
            "town": ["a", "b", "b", "b", "c", "c", "d", "d"],
            "grade": pd.Categorical(
                ["low", "low", "mid", "high", "high", "high", "high", "mid"], ["low", "mid", "high"], ordered=True
            ),
            "x": range(8),
        }
    )
    table = cv.Table.from_frame(frame, quasi_identifiers=["pay", "town", "grade"])
    made = cv.Microaggregation(k=4).fit(table)
    release = made.protect(table)
    cells = release.to_frame().assign(x=release.others["x"]).set_index("x").sort_index()
    for group in as_sets(made.cell_of_):
        rows = frame.loc[sorted(group)]
        shown = cells.loc[sorted(group)]
        assert shown[["town", "grade"]].drop_duplicates().shape[0] == 1
        assert shown["town"].iloc[0] in rows["town"].mode().tolist()
        codes = sorted(rows["grade"].cat.codes)
        assert shown["grade"].iloc[0] == ["low", "mid", "high"][codes[(len(codes) - 1) // 2]]
        if rows["pay"].isna().mean() > 0.5:
            assert shown["pay"].isna().all()
        else:
            assert shown["pay"].iloc[0] == pytest.approx(rows["pay"].mean(), rel=1e-4)


def test_a_release_is_counted_by_its_equal_rows_and_measured_by_its_groups():
    table = small_table(120)
    made = cv.Microaggregation(k=6).fit(table)
    release = made.protect(table)
    rows = release.to_frame()[table.schema.names("quasi")].astype(str)
    assert rows.value_counts().min() >= 6
    assert 0 < cv.measure.ncp(release).mean() < 1
    assert release.guarantee.refute(release, table) is None
    outside = cv.Release.from_json(release.to_json())
    assert outside.held is None and outside.guarantee == release.guarantee == cv.KAnonymity(
        6, "algorithm", centres=True
    )
    assert outside.guarantee.refute(outside, table) is None
    with pytest.raises(cv.SchemaError, match="centres of groups"):
        cv.measure.ncp(outside, table=table)
    few = cv.Release.from_json(
        json.dumps({**json.loads(release.to_json()), "guarantee": cv.KAnonymity(60, centres=True).to_dict()})
    )
    assert "break 60-anonymity" in few.guarantee.refute(few, table)
    found = cv.attack.Linkage().run(release, table, control=small_table(60, seed=9))
    assert found.members.value == 0


def test_loss_is_lower_than_that_of_cuts_on_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "c"])
    table = cv.Table.from_frame(frame, quasi_identifiers=["a", "b", "c"])
    ours, cuts = cv.Microaggregation(k=5).fit(table), cv.Mondrian(k=5).fit(table)
    assert cv.measure.squared_loss(table, ours.cell_of_) < cv.measure.squared_loss(table, cuts.cell_of_)
    means = ours.protect(table).to_frame()
    assert means.mean().to_numpy() == pytest.approx(frame.mean().to_numpy(), abs=1e-3)


def test_several_rows_of_a_person_count_once():
    table = small_table(40)
    twice = pd.concat([table.frame, table.frame], ignore_index=True)
    double = cv.Table(twice, table.schema)
    made = cv.Microaggregation(k=5).fit(double)
    assert np.bincount(made.cell_of_).min() >= 10
    assert any("up to 2 rows" in text for text in made.protect().caveats)


def test_new_rows_go_to_the_nearest_centre_and_keep_k_among_themselves():
    table = small_table(200)
    made = cv.Microaggregation(k=5).fit(table)
    new = small_table(90, seed=4).frame
    new.iloc[0, new.columns.get_loc("city")] = "elsewhere"
    release = made.protect(new)
    assert np.bincount(release.classes()).min() >= 5
    assert len(release) + release.suppressed == 90
    assert set(release.regions.text()) <= set(made.release_.regions.text())


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"k": 1}, "'k' parameter of Microaggregation must be a whole number of at least 2"),
        ({"k": 2.5}, "'k' parameter"),
        ({"k": 61}, "'k' parameter of Microaggregation must be at most the number of rows, 60"),
        ({"method": "kmeans"}, "'method' parameter of Microaggregation"),
        ({"gamma": -1}, "'gamma' parameter of Microaggregation must be a number of at least 0"),
        ({"gamma": float("nan")}, "'gamma' parameter"),
        ({"ledger": 3}, "'ledger' parameter"),
    ],
)
def test_bad_parameters_are_named(settings, match):
    with pytest.raises(cv.ParameterError, match=match):
        cv.Microaggregation(**settings).fit(small_table())


def test_extreme_numbers_and_constant_columns_are_taken():
    for values in ([1e300, -1e300, 0.0, 1.0], [5.0] * 4, [1e-300, 2e-300, 3e-300, 4e-300], [np.nan] * 4):
        table = cv.Table.from_frame(pd.DataFrame({"a": values, "b": [1, 1, 2, 2]}), quasi_identifiers=["a", "b"])
        release = cv.Microaggregation(k=2).fit(table).protect(table)
        assert np.bincount(release.classes()).min() >= 2


def test_the_ledger_refuses_a_second_grouping():
    table = small_table(60)
    ledger = cv.Ledger("people", epsilon=1.0)
    cv.Microaggregation(k=5, ledger=ledger).fit(table).protect(table)
    with pytest.raises(cv.CountervailError):
        cv.Microaggregation(k=6, ledger=ledger).fit(table).protect(table)
    with pytest.raises(cv.ParameterError, match="'rows' parameter of Microaggregation"):
        cv.Microaggregation(k=5, ledger=ledger).fit(table).protect(small_table(30, seed=3))


def test_on_the_command_line(run, tmp_path):
    from countervail.core.files.schema_file import write_schema

    table = small_table(80)
    table.frame.to_csv(tmp_path / "people.csv", index=False)
    write_schema(table.schema, tmp_path / "people.toml")
    out = tmp_path / "public.csv"
    given = ("anonymize", tmp_path / "people.csv", "--schema", tmp_path / "people.toml", "--k", 5, "--keep", "income")
    for words in ((), ("--algorithm", "v-mdav", "--gamma", 1.1)):
        code, text, _ = run(
            *given, "--method", "microaggregation", *words, "-o", out, "--report", tmp_path / "r.html", "--json"
        )
        found = json.loads(text)
        assert code == 0 and found["smallest"] >= 5 and found["guarantee"]["centres"] is True
        assert any("centres of groups" in note for note in found["notes"])
        assert run("check", out, "--schema", tmp_path / "people.toml", "--k", 5, "--rows-are-people")[0] == 0
    code, _, error = run(*given, "--algorithm", "mdav", "-o", out)
    assert code == 2 and "--method mondrian does not take --algorithm (that is for microaggregation)" in error.replace(
        "\n", " "
    )
