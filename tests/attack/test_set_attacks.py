"""Attacks that look at a release as one set: known answers, slow twins, and what must not be found."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.attack.linkability import _joined
from countervail.attack.result import effective_counts
from countervail.attack.shared.crowds import coincidence
from countervail.attack.shared.nearness import Nearness
from countervail.attack.shared.planted import explained, jittered_explanations, open_explanations, open_release
from countervail.attack.shared.released import plain_sets, value_sets
from countervail.attack.singling_out import count_people
from countervail.core.errors import RefusedError
from countervail.core.stats import Estimate, clopper_pearson
from countervail.testing import small_model, small_table

TABLE, CONTROL = small_table(120), small_table(120, seed=1)
QUASI = ["age", "city", "level"]
SETS = [
    cv.attack.SinglingOut(),
    cv.attack.SinglingOut("univariate"),
    cv.attack.AttributeInference(),
    cv.attack.SinglingOut("whole"),
    cv.attack.Linkability(),
    cv.attack.Membership(),
    cv.attack.Reidentification(),
]


def constant(n=50):
    """Everybody gets the same answer, which is nobody's record."""
    cells = CONTROL.features.iloc[[0] * n].reset_index(drop=True)
    return explained(CONTROL.features.iloc[:n], cells, TABLE)


@pytest.mark.parametrize("attack", SETS, ids=lambda a: a.label)
def test_open_data_is_found(attack):
    for release in (open_explanations(TABLE), open_release(TABLE)):
        assert attack.run(release, TABLE, CONTROL).members.value > 0.75


@pytest.mark.parametrize("attack", SETS, ids=lambda a: a.label)
def test_a_constant_release_gives_nothing(attack):
    result = attack.run(constant(), TABLE, CONTROL)
    assert result.excess.low <= 0.02
    assert not result.members.low > max(result.baseline.high, result.controls.high)


@pytest.mark.parametrize("attack", SETS, ids=lambda a: a.label)
def test_strangers_records_say_nothing_about_members(attack):
    result = attack.run(open_explanations(small_table(120, seed=2)), TABLE, CONTROL)
    assert result.excess.low < 0.1


def test_a_class_speaks_of_all_its_people_to_whomever_its_middle_lies_nearest():
    release = cv.Mondrian(k=5).fit(TABLE).protect(TABLE)
    found = cv.attack.Reidentification(share=0.9).run(release, TABLE, CONTROL)
    assert (found.set_sizes > 0).any() and found.set_sizes[found.set_sizes > 0].min() >= 5
    jitter = cv.attack.Reidentification().run(jittered_explanations(TABLE), TABLE, CONTROL)
    assert jitter.set_sizes.min() == 1


def test_a_jitter_is_found_by_distance_and_not_by_equality():
    release = jittered_explanations(TABLE, share=1e-3)
    assert cv.attack.SinglingOut().run(release, TABLE, CONTROL).members.value < 0.1
    found = cv.attack.Reidentification("features").run(release, TABLE, CONTROL)
    assert found.members.value > 0.8
    assert found.detail["equals nobody"].value > 0.9


def test_an_askers_own_values_single_nobody_out():
    answers = open_explanations(TABLE)
    own = np.ones(answers.counterfactuals.shape, dtype=bool)
    own[:, list(answers.counterfactuals.columns).index("level")] = False
    object.__setattr__(answers, "own", own)
    result = cv.attack.SinglingOut().run(answers, TABLE, CONTROL)
    assert (result.members.value, result.members.n) == (0, 3)  # each of three levels fits many people
    assert cv.attack.AttributeInference(["income"]).run(answers, TABLE, CONTROL).members.value == 0


def test_k_anonymous_answers_and_rows_single_nobody_out():
    answers = cv.CFK(k=5).fit(TABLE, small_model).explain(CONTROL)
    rows = cv.Mondrian(k=5).fit(TABLE).protect(TABLE)
    for release in (answers, rows):
        for attack in (cv.attack.SinglingOut(), cv.attack.Reidentification()):
            assert attack.run(release, TABLE, CONTROL).excess.low < 0.05
    assert cv.attack.SinglingOut().run(rows, TABLE, CONTROL).members.value == 0


def test_singling_out_counts_as_a_slow_twin_counts():
    e = cv.NICE(target="favourable").fit(TABLE, small_model).explain(CONTROL)
    said = {tuple(row) for row in e.counterfactuals.loc[e.found, QUASI].astype(object).itertuples(index=False)}

    def alone(people, row):
        return sum(tuple(p) == row for p in people.frame[QUASI].astype(object).itertuples(index=False)) == 1

    result = cv.attack.SinglingOut().run(e, TABLE, CONTROL)
    assert result.members.n == len(said)
    assert result.members.value == pytest.approx(np.mean([alone(TABLE, row) for row in said]))
    assert result.controls.value == pytest.approx(np.mean([alone(CONTROL, row) for row in said]))


def slow_distance(cell, value, kind, width, levels):
    if kind == "categorical":
        held = cell if isinstance(cell, frozenset) else {cell}
        return 1 - (value in held) / len(held)
    if kind == "ordinal":
        held = [levels.index(v) for v in (cell if isinstance(cell, frozenset) else [cell])]
        low, high, value, width = min(held), max(held), levels.index(value), len(levels) - 1
    else:
        low, high = (cell.left, cell.right) if isinstance(cell, pd.Interval) else (cell, cell)
    if low <= value <= high and low < high:
        return min(np.mean(np.abs(value - np.linspace(low, high, 20001))) / width, 1)
    return min(abs(value - (low + high) / 2) / width, 1)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_distances_are_those_of_a_slow_twin(seed):
    table, people = small_table(25, seed=seed), small_table(6, seed=seed + 1)
    release = cv.Mondrian(k=3).fit(table).protect(table)
    space = Nearness(value_sets(release), table.schema.features, table.schema, people.frame)
    shown, schema = release.to_frame(), table.schema
    width = {n: np.ptp(people.frame[n].to_numpy(float)) or 1.0 for n in ("age", "income")}
    slow = np.zeros((6, 25))
    for i in range(6):
        for j in range(25):
            for n in schema.features:
                c = schema[n]
                slow[i, j] += slow_distance(
                    shown[n].iloc[j], people.frame[n].iloc[i], c.type, width.get(n, 1.0), list(c.levels or ())
                )
    np.testing.assert_allclose(space.nearest_person(people.frame), slow.min(axis=0), atol=1e-3)
    np.testing.assert_allclose(space.nearest_thing(people.frame)[1], slow.min(axis=1), atol=1e-3)


def test_missing_values_lie_one_from_all_others_and_nothing_from_each_other():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["x", None, "y"]})
    table = cv.Table.from_frame(frame, quasi_identifiers=["a", "b"])
    space = Nearness(plain_sets(frame, ["a", "b"], table.schema), ["a", "b"], table.schema, frame)
    assert space.nearest_thing(frame.iloc[[1]])[1].tolist() == [0]
    assert space.people_within(frame, 1.9).tolist() == [1, 1, 1]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_people_are_counted_alike_by_lookup_and_one_by_one(data):
    people = small_table(30, seed=data.draw(st.integers(0, 1000))).frame
    asked = plain_sets(small_table(10, seed=data.draw(st.integers(0, 1000))).frame, QUASI, TABLE.schema)
    assert count_people(asked, people).tolist() == asked.count(people[QUASI]).tolist()


def test_inference_guesses_what_the_nearest_things_say_most_often():
    cells = pd.DataFrame({"a": [1, 1, 1, 9], "b": ["x", "x", "y", "z"]})
    table = cv.Table.from_frame(cells, quasi_identifiers=["a"])
    control = cv.Table.from_frame(pd.DataFrame({"a": [1, 9, 5], "b": ["y", "z", "x"]}), quasi_identifiers=["a"])
    result = cv.attack.AttributeInference(["b"]).run(explained(cells, cells, table), table, control)
    assert result.members.value == 0.75  # "x" for a=1: wrong for one of three
    assert result.controls.value == pytest.approx(2 / 3)  # a=5 is as far from all four, most of which say "x"


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.5])
def test_fewer_strangers_than_members_are_brought_to_their_number(spread):
    rng = np.random.default_rng(0)
    n, m = 400, 150
    w = np.minimum(0.003 * rng.lognormal(0, spread, 40_000), 1)
    chance = float((n * w * (1 - w) ** (n - 1)).mean())
    assert coincidence(rng.binomial(m, w), n, m).value == pytest.approx(chance, abs=0.03)
    assert coincidence(np.zeros(100, dtype=int), n, m).value == 0
    assert coincidence(np.full(100, 7), n, m).value == 0


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_intervals_of_coincidence_cover(spread):
    rng = np.random.default_rng(1)
    n, m, cases, runs = 300, 200, 150, 300
    held = 0
    for _ in range(runs):
        w = np.minimum(0.003 * rng.lognormal(0, spread, (2, 5000)), 1)
        truth = float((n * w[0] * (1 - w[0]) ** (n - 1)).mean())
        found = coincidence(rng.binomial(m, w[1][:cases]), n, m)
        held += found.low <= truth <= found.high
    assert 0.92 <= held / runs <= 0.98


def test_averages_weigh_as_many_cases_as_their_interval_says():
    assert effective_counts(clopper_pearson(3, 10)) == (3, 10)
    assert effective_counts(clopper_pearson(0, 0)) == (0, 0)
    hits, n = effective_counts(Estimate(0.505, 0.485, 0.525, 100))
    assert hits / n == pytest.approx(0.505, abs=0.01) and n > 1000
    assert effective_counts(Estimate(0.001, 0.0, 0.03, 269))[1] > 50


def test_intervals_of_the_excess_cover_where_columns_are_averaged():
    rng = np.random.default_rng(2)
    runs, people, held = 400, 150, 0
    for _ in range(runs):
        skill = rng.beta(2, 2, (2, people, 1)) * np.array([0.9, 0.5])[:, None, None]
        inside, outside = (rng.random((2, people, 4)) < skill).astype(bool)
        result = cv.attack.AttackResult(
            "x", *(cv.attack.result.rate(v) for v in (inside, outside)), clopper_pearson(0, 0)
        )
        held += result.excess.low <= (0.45 - 0.25) / 0.75 <= result.excess.high
    assert 0.92 <= held / runs <= 0.98


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (cv.attack.SinglingOut("bivariate"), "'conditions' parameter of SinglingOut"),
        (cv.attack.SinglingOut(columns="all"), "'columns' parameter of SinglingOut"),
        (cv.attack.SinglingOut(n_targets=0), "'n_targets' parameter of SinglingOut"),
        (cv.attack.AttributeInference("ill"), "'secret' parameter of AttributeInference"),
        (cv.attack.AttributeInference(["wealth"]), "'secret' parameter of AttributeInference"),
        (cv.attack.AttributeInference(tolerance=2), "'tolerance' parameter of AttributeInference"),
        (cv.attack.Linkability(["age"], ["age"]), "'known, sought' parameter of Linkability"),
        (cv.attack.Linkability(["wealth"]), "'known' parameter of Linkability"),
        (cv.attack.Membership(fpr=0), "'fpr' parameter"),
        (cv.attack.Membership(n_targets=0), "'n_targets' parameter of Membership"),
        (cv.attack.Reidentification(share=1), "'share' parameter of Reidentification"),
    ],
)
def test_bad_parameters_are_named(attack, message):
    with pytest.raises(ValueError, match=message):
        attack.run(open_explanations(TABLE), TABLE, CONTROL)


@pytest.mark.parametrize("attack", SETS, ids=lambda a: a.label)
def test_what_is_no_release_is_refused(attack):
    with pytest.raises(ValueError, match="'release' parameter"):
        attack.run(TABLE, TABLE, CONTROL)
    with pytest.raises(ValueError, match="'control' parameter"):
        attack.run(open_release(TABLE), TABLE, CONTROL.frame)


def with_two_kinds(n, seed):
    """People with an age and a place each, and one other column that has two values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.normal(40, 9, n), "place": rng.normal(0, 1, n), "ill": rng.choice(["no", "yes"], n)}
    )
    frame["ok"] = rng.choice(["no", "yes"], n)
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age", "place"])


def test_halves_that_tell_few_people_apart_cannot_be_joined_and_that_is_said():
    table, control = with_two_kinds(200, 0), with_two_kinds(200, 1)
    with pytest.raises(RefusedError, match=r"\['ill'\] tell too few people apart.*1%"):
        cv.attack.Linkability().planted(table, control)
    release = cv.Mondrian(k=5).fit(table).protect(table)
    found = cv.audit(release, table, control=control, jobs=1, attacks=["linkability", "membership"])
    said = next(f for f in found.findings if f.attack == "linkability")
    assert found.verdict != "void" and said.status == "does not apply" and "tell too few" in said.why


@given(seed=st.integers(0, 2**16), n=st.integers(5, 60))
@settings(max_examples=20)
def test_the_share_that_open_data_would_join_is_what_two_draws_meet_in(seed, n):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({c: rng.integers(0, m, n) for c, m in (("a", 4), ("b", 3), ("c", 5))})
    table = cv.Table.from_frame(frame.assign(ok="yes"), target="ok", favourable="yes")
    plain = []
    for i in range(n):
        one = {j for j in range(n) if frame.a[j] == frame.a[i]}
        other = {j for j in range(n) if (frame.b[j], frame.c[j]) == (frame.b[i], frame.c[i])}
        plain.append(len(one & other) / (len(one) * len(other)))
    assert _joined(table, (["a"], ["b", "c"])) == pytest.approx(np.mean(plain), rel=1e-12)
