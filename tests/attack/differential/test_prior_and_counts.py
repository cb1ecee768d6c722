"""What the adversary knows beforehand, and aggregated data, in a differential inference test."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import countervail as cv
from countervail.attack.differential.naive_bayes import identity
from countervail.attack.differential.prior import Prior

VALUES = ["cold", "flu", "none"]


def people(seed=0, n=40):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(20, 28, n), "city": rng.choice(list("ab"), n)})
    frame["ill"] = rng.choice(VALUES, n)
    frame.loc[:2, "ill"] = VALUES
    return cv.Table.from_frame(frame, quasi_identifiers=["age", "city"], sensitive=["ill"])


def run(anonymiser, table, **more):
    return cv.DifferentialInferenceTest(anonymiser, beside=0, **more).run(table)


def counts(*by):
    return lambda table: table.frame.groupby([*by, "ill"], observed=True).size().reset_index(name="count")


def by_hand(table, prior, keep=("age", "city")):
    """The open table: naive Bayes from scikit-learn on agreement with the person, times the weights, half the L1."""
    frame, out = table.frame, []
    for i, person in enumerate(frame.to_dict("records")):
        two = []
        for rows in (frame, frame.drop(index=i)):
            agree = np.column_stack([rows[n] == person[n] for n in keep]).astype(float)
            model = BernoulliNB().fit(agree, rows["ill"])
            p = dict(zip(model.classes_, model.predict_proba(np.ones((1, len(keep))))[0]))
            joined = np.array([p.get(v, 0.0) * prior[v] for v in VALUES])
            two.append(joined / joined.sum())
        out.append(np.abs(two[0] - two[1]).sum() / 2)
    return np.array(out)


@pytest.mark.parametrize("prior", [dict.fromkeys(VALUES, 1), {"cold": 8, "flu": 1, "none": 1}], ids=["alike", "cold"])
@pytest.mark.parametrize("path", ["fast", "general"])
def test_both_paths_multiply_by_the_prior(prior, path):
    table = people()
    found = run(identity, table, prior=prior, path=path)
    np.testing.assert_allclose(found.d_pp[np.argsort(found.rows)], by_hand(table, prior), atol=1e-12)


def test_alike_weights_change_nothing_and_say_that_there_were_some():
    table = people(1)
    plain, same = run(cv.Mondrian(k=3), table), run(cv.Mondrian(k=3), table, prior=dict.fromkeys(VALUES, 7))
    np.testing.assert_allclose(plain.d_pp, same.d_pp, atol=1e-15)
    assert not any("prior" in c for c in plain.caveats) and any("know a prior" in c for c in same.caveats)


def test_who_knows_the_value_learns_nothing():
    table = people(2)
    frame = pd.get_dummies(table.frame["ill"]).astype(float)
    found = run(cv.Mondrian(k=3), table, prior=frame, path="general")
    assert (found.d_pp == 0).all() and found.changed.value == 0


def test_a_line_for_each_person_is_the_line_of_that_person():
    table = people(3)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((len(table), 3)), columns=VALUES)
    each = run(identity, table, prior=frame)
    for i in (0, 7):
        alone = run(identity, table, prior=frame.iloc[i].to_dict())
        assert each.d_pp[list(each.rows).index(i)] == pytest.approx(alone.d_pp[list(alone.rows).index(i)], abs=1e-12)


@given(
    st.lists(st.floats(0.01, 10), min_size=3, max_size=3),
    st.lists(st.floats(1e-6, 1) | st.just(0.0), min_size=3, max_size=3),
)
def test_bayes_rule(weights, said):
    prior = Prior.of(dict(zip("abc", weights)), list("abc"), 1, "test")
    found = prior.after(np.array([said]), np.array([0]))[0]
    joined = np.array(weights) * said
    expected = joined / joined.sum() if joined.sum() > 0 else np.array(weights) / sum(weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_knowledge_that_the_release_excludes_stays_as_it_was():
    prior = Prior.of({"a": 1, "b": 1}, list("abc"), 1, "test")
    assert prior.after(np.array([[0.0, 0.0, 1.0]]), np.array([0])).tolist() == [[0.5, 0.5, 0.0]]


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_counts_of_all_columns_are_the_open_table(seed):
    table = people(seed, 25)
    for learner in (None, DecisionTreeClassifier(random_state=0)):
        rows = run(identity, table, learner=learner, path="general")
        counted = run(counts("age", "city"), table, learner=learner)
        np.testing.assert_allclose(rows.d_pp, counted.d_pp, atol=1e-9)


def test_counts_by_one_column_are_naive_bayes_on_that_column():
    table = people(4)
    found = run(counts("city"), table)
    expected = by_hand(table, dict.fromkeys(VALUES, 1), keep=("city",))
    np.testing.assert_allclose(found.d_pp[np.argsort(found.rows)], expected, atol=1e-12)
    assert found.mean < run(counts("age", "city"), table).mean


def test_cells_of_counts_may_be_ranges():
    def banded(table):
        cut = pd.cut(table.frame["age"], [19, 23, 30])
        closed = {c: pd.Interval(int(c.left) + 1, int(c.right), closed="both") for c in cut.cat.categories}
        frame = pd.DataFrame({"age": cut.map(closed).astype(object), "ill": table.frame["ill"]})
        return (
            frame.groupby([frame["age"].map(str), "ill"])
            .agg(age=("age", "first"), count=("ill", "size"))
            .reset_index("ill")
        )

    found = run(banded, people(5))
    assert 0 < found.mean < found.epsilon <= 1


def test_noisy_counts_are_drawn_again_and_compared_with_a_control():
    rng = np.random.default_rng(0)

    def noisy(table):
        made = counts("city")(table)
        return made.assign(count=made["count"] + rng.laplace(0, 2, len(made)))

    found = run(noisy, people(6, 60), n_records=4, repeats=3)
    assert found.control is not None and np.isfinite(found.control).all()


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ({"cold": 1, "plague": 1}, "of values that the sensitive column has, each once. Got '1 others"),
        ({"cold": -1, "flu": 2}, "weights of at least 0"),
        ({"cold": 0}, "not all of them 0"),
        ({"cold": "much"}, "weights of at least 0"),
        (pd.DataFrame({"cold": [1.0]}), "a DataFrame with 40 rows and a column per value"),
        ([0.5, 0.5], "a mapping of values to weights"),
    ],
)
def test_a_prior_that_is_none_is_refused(prior, words):
    with pytest.raises(cv.ParameterError, match=words):
        run(identity, people(), prior=prior)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda t: t.frame, "or to a DataFrame with a column 'count'"),
        (lambda t: pd.DataFrame({"ill": ["flu"], "count": [3]}), "lacks any of the quasi-identifiers"),
        (lambda t: pd.DataFrame({"city": ["a"], "count": [3]}), "lacks 'ill'"),
        (lambda t: counts("city")(t).assign(count=0), "some of them above 0"),
        (lambda t: counts("city")(t).assign(count="many"), "must hold numbers"),
        (lambda t: counts("city")(t).assign(ill="plague"), "values of 'ill' that the table does not have"),
    ],
)
def test_counts_that_are_none_are_refused(made, words):
    with pytest.raises(cv.CountervailError, match=words):
        run(made, people())


def test_a_learner_without_weights_cannot_read_counts():
    with pytest.raises(cv.ParameterError, match="fit takes sample_weight: this release has counts"):
        run(counts("city"), people(), learner=KNeighborsClassifier(3))
