"""Differential inference testing: both paths agree, leaks are caught, and the report names nobody."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import countervail as cv
from countervail import DifferentialInferenceTest
from countervail.attack.differential.naive_bayes import identity
from countervail.attack.differential.result import DifferentialResult
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.hierarchy import Hierarchy
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.stats import clopper_pearson


def people(seed=0, n=60, ages=12):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 20 + ages, n),
            "city": rng.choice(list("abc"), n),
            "ill": rng.choice(["flu", "cold", "none"], n),
        }
    )
    return cv.Table.from_frame(frame, identifiers=["id"], quasi_identifiers=["age", "city"], sensitive=["ill"])


def one_class(table, cells=None):
    """Everybody in one class, or in the classes given; the sensitive column as it is."""
    cells = cells if cells is not None else [0] * len(table)
    everything = {"age": pd.Interval(0, 200, closed="both"), "city": frozenset("abc")}
    regions = Regions.from_cells([everything] * (max(cells) + 1), table.schema)
    return shown(table, regions, np.array(cells), table.frame[["ill"]])


def shown(table, regions, groups, others):
    schema = cv.Schema(tuple(c for c in table.schema if c.role != "identifier"))
    return Release(regions, groups, others.reset_index(drop=True), schema, cv.NoGuarantee("test"))


def by_row(result):
    return result.d_pp[np.argsort(result.rows)]


# ---------------------------------------------------------------- both paths


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5]), st.sampled_from([None, 1.5]))
def test_fast_and_general_paths_agree_on_random_tables(seed, k, l):  # noqa: E741
    table = people(seed, n=30)
    extra = {} if l is None else {"l": l, "diversity": "frequency"}
    protector = cv.Mondrian(k, profile="basic", **extra)
    results = []
    for path in ("auto", "general"):
        test = DifferentialInferenceTest(protector, path=path, beside=0)
        try:
            results.append(test.run(table))
        except ParameterError:
            return
    assert abs(by_row(results[0]) - by_row(results[1])).max() < 1e-12
    assert results[0].changed == results[1].changed


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_the_open_table_is_counted_as_it_is_learnt(alpha):
    table = people(4, n=40)
    learner = BernoulliNB(alpha=alpha)
    fast, general = (
        DifferentialInferenceTest(identity, learner=learner, path=p, beside=0).run(table) for p in ("fast", "general")
    )
    assert abs(by_row(fast) - by_row(general)).max() < 1e-12


def test_a_class_of_one_row_is_dropped_from_the_model_without_it():
    table = people(1, n=30)
    frame = table.frame.copy()
    frame.loc[3, "ill"] = "hiv"
    table = cv.Table(frame, table.schema)
    fast, general = (
        DifferentialInferenceTest(cv.Mondrian(3, profile="basic"), path=p, beside=0).run(table)
        for p in ("fast", "general")
    )
    assert abs(by_row(fast) - by_row(general)).max() < 1e-12


def test_a_worked_example():
    # Four rows in one class, two a and two b. With a person of class a: p(a) ~ 2/4 * 3/4, p(b) the same. Without:
    # p(a) ~ 1/3 * 2/3, p(b) ~ 2/3 * 3/4, so p(a) = 4/13, and half the L1 distance is 1/2 - 4/13.
    frame = pd.DataFrame({"age": [1, 2, 3, 4], "ill": ["a", "a", "b", "b"]})
    table = cv.Table.from_frame(frame, quasi_identifiers=["age"], sensitive=["ill"])

    def together(t):
        cells = Regions.from_cells([{"age": pd.Interval(0, 9, closed="both")}], t.schema)
        return shown(t, cells, np.zeros(len(t), int), t.frame[["ill"]])

    result = DifferentialInferenceTest(together, beside=0).run(table)
    assert result.path == "general"
    assert result.d_pp == pytest.approx([1 / 2 - 4 / 13] * 4, abs=1e-12)
    assert result.epsilon == pytest.approx(result.mean)
    assert result.share_above(0.1).value == 1
    quarter = DifferentialInferenceTest(together, scale="quarter", beside=0).run(table)
    assert quarter.d_pp == pytest.approx(result.d_pp / 2)


# ---------------------------------------------------------------- what is caught


def test_an_anonymiser_that_leaks_one_person_on_purpose_is_caught():
    table = people(2, n=80)
    frame = table.frame.copy()
    frame.loc[17, "age"] = 90
    table = cv.Table(frame, table.schema)

    def leaky(t):
        cells = [int(a == 90) for a in t.frame["age"]]
        age = [pd.Interval(0, 50, closed="both"), 90]
        regions = Regions.from_cells([{"age": a, "city": frozenset("abc")} for a in age], t.schema)
        return shown(t, regions[: max(cells) + 1], np.array(cells), t.frame[["ill"]])

    result = DifferentialInferenceTest(leaky, beside=0).run(table)
    order = np.argsort(result.rows)
    assert result.d_pp[order].argmax() == 17
    assert result.rank[order][17] == 1
    others = np.delete(result.d_pp[order], 17)
    assert result.epsilon > 5 * others.max()


def test_an_anonymiser_that_ignores_the_person_passes():
    table = people(2, n=50)
    fixed = one_class(table)

    result = DifferentialInferenceTest(lambda _: fixed, beside=0).run(table)
    assert result.epsilon == 0
    assert result.changed.value == 0
    assert result.share_above(0).value == 0
    assert result.delta(1e-9).value == 0


def test_the_open_table_is_shown_for_what_it_is_by_the_second_learner():
    table = people(3, n=120, ages=60)
    result = DifferentialInferenceTest(cv.Mondrian(10, profile="basic"), beside=60).run(table)
    assert set(result.beside) == {"identity", "second learner", "identity, second learner"}
    tree, open_tree = result.beside["second learner"], result.beside["identity, second learner"]
    assert tree.learner == open_tree.learner == "DecisionTreeClassifier"
    assert open_tree.mean > 0.3
    assert open_tree.mean > 3 * result.beside["identity"].mean
    assert open_tree.mean > tree.mean


# ---------------------------------------------------------------- chance


def test_random_anonymisers_get_a_control_and_an_empirical_delta():
    table = people(5, n=40)
    rng = np.random.default_rng(0)

    def noisy(t):
        mixed = pd.DataFrame({"ill": rng.choice(["flu", "cold", "none"], len(t))})
        everything = {"age": pd.Interval(0, 200, closed="both"), "city": frozenset("abc")}
        return shown(t, Regions.from_cells([everything], t.schema), np.zeros(len(t), int), mixed)

    result = DifferentialInferenceTest(noisy, n_records=15, repeats=8, beside=0).run(table)
    assert result.draws.shape == result.control.shape == (15, 8)
    assert result.mean == pytest.approx(result.control.mean(), rel=0.5)
    delta = result.delta(1e-6)
    assert delta.value == 1
    never = result.delta(2.0)
    assert never.value == 0
    assert never.high == pytest.approx(clopper_pearson(0, 8, 1 - 0.05 / 15).high)
    assert {"control", "delta", "repetitions"} <= set(result.to_dict())


def test_a_random_learner_is_repeated_and_a_seeded_one_is_not():
    table = people(6, n=40)
    common = {"n_records": 3, "beside": 0}
    drawn = DifferentialInferenceTest(cv.Mondrian(5), learner=RandomForestClassifier(3), repeats=3, **common).run(table)
    assert drawn.control is not None
    assert drawn.draws.shape == (3, 3)
    again = DifferentialInferenceTest(cv.Mondrian(5), learner=RandomForestClassifier(3), repeats=3, **common).run(table)
    assert (again.draws == drawn.draws).all()
    fixed = DifferentialInferenceTest(cv.Mondrian(5), learner=RandomForestClassifier(3, random_state=1), **common).run(
        table
    )
    assert fixed.control is None
    assert fixed.draws.shape == (3, 1)


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("learner", [GaussianNB(), KNeighborsClassifier(3)], ids=["gaussian", "neighbours"])
@pytest.mark.parametrize("encoding", ["scaling-hot", "tf-tf", "quantiles-before-tf", "bounds-binary"])
def test_any_classifier_with_any_encoding(learner, encoding):
    test = DifferentialInferenceTest(cv.Mondrian(5), learner=learner, encoding=encoding, n_records=3, beside=0)
    result = test.run(people(7, n=50))
    assert np.isfinite(result.d_pp).all()
    assert (result.d_pp <= 1).all()


@pytest.mark.parametrize("kind", ["max_divergence", "kl"])
def test_other_distances_on_both_paths(kind):
    table = people(8, n=40)
    fast, general = (
        DifferentialInferenceTest(cv.Mondrian(4, profile="basic"), distance=kind, path=p, beside=0).run(table)
        for p in ("fast", "general")
    )
    assert np.allclose(by_row(fast), by_row(general), rtol=1e-9)


def test_a_hierarchy_of_the_sensitive_values_as_ground():
    table = people(8, n=40)
    tree = Hierarchy((("flu", "ill", "*"), ("cold", "ill", "*"), ("none", "well", "*")), "ill")
    flat, deep = (
        DifferentialInferenceTest(cv.Mondrian(4, profile="basic"), ground=g, beside=0).run(table)
        for g in ("equal", tree)
    )
    assert (by_row(deep) >= 2 * by_row(flat) - 1e-12).all()
    assert (by_row(deep) <= 4 * by_row(flat) + 1e-12).all()


def test_some_people_give_intervals_and_everybody_gives_figures():
    table = people(9, n=200)
    protector = cv.Mondrian(5, profile="basic")
    whole = DifferentialInferenceTest(protector, beside=0).run(table)
    some = DifferentialInferenceTest(protector, n_records=50, beside=0).run(table)
    assert some.sampled
    assert not whole.sampled
    lookup = dict(zip(whole.rows, whole.d_pp))
    assert all(lookup[i] == d for i, d in zip(some.rows, some.d_pp))
    assert some.mean_estimate.low < some.mean < some.mean_estimate.high
    assert whole.mean_estimate.low == whole.mean == whole.mean_estimate.high
    share = some.share_above(0.01)
    assert share.low <= share.value <= share.high


def test_the_distribution_function_counts_people():
    result = DifferentialInferenceTest(cv.Mondrian(5, profile="basic"), beside=0).run(people(9, n=100))
    at, share = result.cdf([0.0, 0.01, 1.0])
    assert share[-1] == 1
    assert share[1] == pytest.approx(1 - result.share_above(0.01).value)
    assert (np.diff(result.cdf()[1]) >= 0).all()
    assert at.tolist() == [0.0, 0.01, 1.0]


# ---------------------------------------------------------------- files


def test_published_files_alone_will_do(tmp_path):
    table = people(10, n=40)
    protector = cv.Mondrian(4)
    protector.fit(table).protect(table).write(tmp_path / "all.csv")
    files = {}
    for i in (0, 7, 21):
        rest = table.take(np.delete(np.arange(40), i))
        cv.Mondrian(4).fit(rest).protect(rest).write(tmp_path / f"{i}.csv")
        files[i] = tmp_path / f"{i}.csv"
    found = DifferentialInferenceTest(protector).run_files(table, tmp_path / "all.csv", files)
    whole = DifferentialInferenceTest(protector, path="general", beside=0).run(table)
    assert found.rows.tolist() == [0, 7, 21]
    assert found.d_pp == pytest.approx(by_row(whole)[[0, 7, 21]], abs=1e-12)


def test_files_that_do_not_fit_are_refused(tmp_path):
    table = people(10, n=20)
    pd.DataFrame({"age": ["old"], "city": ["a"], "ill": ["flu"]}).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame({"age": ["20-30"], "city": ["coast"], "ill": ["flu"]}).to_csv(tmp_path / "b.csv", index=False)
    pd.DataFrame({"age": ["20-30"], "ill": ["flu"]}).to_csv(tmp_path / "c.csv", index=False)
    test = DifferentialInferenceTest(cv.Mondrian(4))
    for name, says in (("a", "neither a number nor a range"), ("b", "names of groups"), ("c", "lacks quasi")):
        with pytest.raises(SchemaError, match=says):
            test.run_files(table, tmp_path / f"{name}.csv", {0: tmp_path / f"{name}.csv"})
    with pytest.raises(ParameterError, match="'without'"):
        test.run_files(table, tmp_path / "a.csv", {99: tmp_path / "a.csv"})


# ---------------------------------------------------------------- nobody is named


def keys_of(data):
    if isinstance(data, dict):
        for k, v in data.items():
            yield k
            yield from keys_of(v)
    elif isinstance(data, list):
        for v in data:
            yield from keys_of(v)


def test_the_json_has_no_row_numbers_and_nobodys_exact_distance():
    table = people(11, n=150)
    result = DifferentialInferenceTest(cv.Mondrian(5, profile="basic"), beside=5).run(table)
    data = result.to_dict()
    text = json.dumps(data)
    assert not {"rows", "d_pp", "draws", "rank"} & set(keys_of(data))
    exact = {repr(float(d)) for d in result.d_pp}
    assert not any(d in text for d in exact)
    assert not any(f'"{i}"' in text for i in table.frame["id"])
    assert "rows" not in repr(result)
    assert isinstance(result, DifferentialResult)


def test_kinds_of_people_have_at_least_ten_of_them():
    table = people(12, n=300)
    result = DifferentialInferenceTest(cv.Mondrian(5, profile="basic"), beside=0).run(table)
    assert result.kinds
    assert all(k.people >= 10 and k.mean.n >= 10 for k in result.kinds)
    few = DifferentialInferenceTest(cv.Mondrian(5, profile="basic"), n_records=9, beside=0).run(table)
    assert few.kinds == ()


class Recorded(BaseEstimator):
    """Counts in a ledger what it releases."""

    def __init__(self, ledger=None):
        self.ledger = ledger

    def fit(self, table):
        return self

    def protect(self, table):
        assert self.ledger is None
        return one_class(table)


def test_what_a_test_releases_to_itself_counts_in_no_ledger():
    test = DifferentialInferenceTest(Recorded(ledger="a ledger"), n_records=2, beside=0)
    assert len(test.run(people(0, n=30)).d_pp) == 2


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"anonymiser": "mondrian"}, "'anonymiser'"),
        ({"anonymiser": lambda t: t}, "'anonymiser'"),
        ({"learner": object()}, "'learner'"),
        ({"second": "forest"}, "'second'"),
        ({"encoding": "hot"}, "'encoding'"),
        ({"quantiles": 1}, "'quantiles'"),
        ({"distance": "l2"}, "'distance'"),
        ({"scale": "third"}, "'scale'"),
        ({"ground": "far"}, "'ground'"),
        ({"n_records": 0}, "'n_records'"),
        ({"repeats": 0}, "'repeats'"),
        ({"path": "quick"}, "'path'"),
        ({"path": "fast", "anonymiser": cv.Mondrian(4, mode="relaxed")}, "strict Mondrian"),
        ({"beside": -1}, "'beside'"),
    ],
    ids=lambda x: x if isinstance(x, str) else next(iter(x)),
)
def test_bad_settings_say_what_must_be(changes, says):
    test = DifferentialInferenceTest(**{"anonymiser": cv.Mondrian(4), "beside": 0, **changes})
    with pytest.raises(ParameterError, match=says):
        test.run(people(0, n=20))


def test_bad_tables_and_columns_say_what_must_be():
    test = DifferentialInferenceTest(cv.Mondrian(2), beside=0)
    table = people(0, n=20)
    with pytest.raises(ParameterError, match="a Table"):
        test.run(table.frame)
    with pytest.raises(SchemaError, match="quasi"):
        test.run(table.with_roles(quasi=[]))
    with pytest.raises(ParameterError, match="neither identifier"):
        test.run(table, "age")
    with pytest.raises(ParameterError, match="sensitive="):
        test.run(table.with_roles(sensitive=[]))
    with pytest.raises(ParameterError, match="three rows"):
        test.run(table.take([0, 1]))
    with pytest.raises(ParameterError, match="two values"):
        test.run(cv.Table(table.frame.assign(ill="flu"), table.schema))
    with pytest.raises(SchemaError, match="nothing"):
        test.run(table, "nothing")


def test_releases_that_lack_what_is_asked_for_are_named():
    table = people(0, n=20)

    def bare(t):
        whole = one_class(t)
        return Release(whole.regions, whole.groups, whole.others.iloc[:, :0], whole.schema, whole.guarantee)

    with pytest.raises(SchemaError, match="'ill'"):
        DifferentialInferenceTest(bare, beside=0).run(table)

    def without_city(t):
        cells = Regions.from_cells([{"age": pd.Interval(0, 200, closed="both")}], t.schema)
        return shown(t, cells, np.zeros(len(t), int), t.frame[["ill"]])

    with pytest.raises(SchemaError, match="'city'"):
        DifferentialInferenceTest(without_city, beside=0).run(table)
