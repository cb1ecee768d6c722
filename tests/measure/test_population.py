"""Uniqueness in a population: slow twins, populations that are known, and what the command says."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.files.schema_file import write_schema
from countervail.measure import population as models
from countervail.testing import small_table


def drawn(key, n, rng):
    """Class sizes of a sample."""
    return np.bincount(np.unique(rng.choice(key, n, replace=False), return_inverse=True)[1])


def seated(alpha, theta, n, rng):
    """A population drawn from Pitman's formula: each person joins a class, or opens one."""
    sizes, key = [], np.empty(n, dtype=np.int64)
    for i in range(n):
        if rng.random() * (i + theta) < theta + alpha * len(sizes):
            sizes.append(1)
            key[i] = len(sizes) - 1
            continue
        while True:  # a class with chance size - alpha: somebody's class, refused with chance alpha / size
            c = key[rng.integers(i)]
            if rng.random() > alpha / sizes[c]:
                break
        sizes[c] += 1
        key[i] = c
    return key


def log_likelihood(sizes, alpha, theta):
    """Term by term, as Hoshino writes it."""
    n, u = sum(sizes), len(sizes)
    total = sum(math.log(theta + i * alpha) for i in range(1, u)) - sum(math.log(theta + i) for i in range(1, n))
    return total + sum(math.log(j - alpha) for s in sizes for j in range(1, s))


@given(st.lists(st.integers(1, 6), min_size=3, max_size=30))
def test_pitmans_fit_is_no_less_likely_than_any_other(sizes):
    fitted = models.fit_pitman(np.array(sizes))
    if fitted is None:
        return
    best = log_likelihood(sizes, *fitted)
    for alpha in (0.05, 0.3, 0.6, 0.9):
        for theta in (-alpha / 2, 0.5, 5.0, 50.0):
            assert log_likelihood(sizes, alpha, theta) <= best + 1e-4 * max(1, abs(best))


def test_a_population_of_pitmans_kind_is_recognised():
    rng = np.random.default_rng(1)
    key = seated(0.6, 40.0, 20_000, rng)
    true, population = int((np.bincount(key) == 1).sum()), np.bincount(key)
    at = rng.choice(len(key), 1_500, replace=False)
    sizes = np.bincount(np.unique(key[at], return_inverse=True)[1])
    assert models.pitman_uniques(sizes, len(key)) == pytest.approx(true, rel=0.2)
    alpha, theta = models.fit_pitman(sizes)
    risk = models.individual_risk(sizes, (1_500 + theta) / (20_000 + theta), alpha)
    assert float(risk @ sizes) / 1_500 == pytest.approx(float((1 / population[key[at]]).mean()), rel=0.1)


def test_a_population_of_the_slid_negative_binomial_kind_is_recognised():
    rng = np.random.default_rng(2)
    sizes = 1 + rng.negative_binomial(0.5, 0.2, 8_000)
    key = np.repeat(np.arange(len(sizes)), sizes)
    seen = drawn(key, len(key) // 3, rng)
    assert models.snb_uniques(seen, len(key)) == pytest.approx(int((sizes == 1).sum()), rel=0.15)
    assert models.shlosser_classes(seen, 1 / 3) == pytest.approx(len(sizes), rel=0.1)


def test_zayatz_by_hand():
    # Of 8 people 4 are drawn into classes of 1, 1 and 2: one of one is drawn alone with 1/2, one of two with 4/7.
    p = (2 / 3 * 1 / 2) / (2 / 3 * 1 / 2 + 1 / 3 * 4 / 7)
    assert models.zayatz_uniques(np.array([1, 1, 2]), 8) == pytest.approx(2 * p * 2)


def test_the_mean_of_one_by_the_size_is_that_of_drawn_sizes():
    rng = np.random.default_rng(3)
    for f, pi, alpha in ((1, 0.1, 0.0), (3, 0.02, 0.0), (1, 0.1, 0.7), (2, 0.3, 0.4)):
        sizes = f + rng.negative_binomial(f - alpha, pi, 400_000)
        assert models.individual_risk(np.array([f]), pi, alpha)[0] == pytest.approx(float((1 / sizes).mean()), rel=0.02)
    # Benedetti and Franconi's closed forms for classes of one and two people.
    assert models.individual_risk(np.array([1]), 0.1)[0] == pytest.approx(0.1 / 0.9 * math.log(10))
    assert models.individual_risk(np.array([2]), 0.1)[0] == pytest.approx(0.1 / 0.81 * (0.1 * math.log(0.1) + 0.9))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(0, 10**7))
def test_estimates_are_numbers_of_people_or_none(sizes, more):
    found, n = np.array(sizes), sum(sizes)
    for model in (models.pitman_uniques, models.zayatz_uniques, models.snb_uniques):
        value = model(found, n + more)
        assert value is None or -1e-6 <= value <= (n + more) * (1 + 1e-6)
    risk = models.individual_risk(found, n / (n + more))
    assert ((risk > 0) & (risk <= 1 / found + 1e-12)).all()


def test_the_rule_of_dankar_and_others():
    assert models._decide(0.05, 5.0, 9.0, 1.0) == ("pitman", 5.0)
    assert models._decide(0.05, None, 9.0, 1.0) == ("zayatz", 9.0)
    assert models._decide(0.2, 5.0, 9.0, 1.0) == ("snb", 1.0)
    assert models._decide(0.2, 5.0, 9.0, 12.0) == ("zayatz", 9.0)
    assert models._decide(0.2, 5.0, 9.0, None) == ("zayatz", 9.0)


def test_a_whole_population_has_the_uniques_that_it_has():
    table = small_table(60)
    found = cv.measure.population_uniques(table, 60)
    assert found.fraction == 1 and found.estimate == pytest.approx(found.sample_uniques, rel=0.05)
    same = cv.measure.k_map(table, table)
    rows = table.frame.groupby(["age", "city", "level"], observed=True)["id"].transform("count")
    assert (same.least, same.absent, same.people) == (rows.min(), 0, 60)
    assert same.unique == pytest.approx(float((rows == 1).mean()))
    assert same.journalist == pytest.approx(float((1 / rows).mean()))


def test_people_count_once_and_strangers_are_counted():
    table = small_table(60)
    twice = cv.Table(pd.concat([table.frame, table.frame], ignore_index=True), table.schema)
    assert cv.measure.population_uniques(twice, 900) == cv.measure.population_uniques(table, 900)
    assert cv.measure.k_map(twice, twice) == cv.measure.k_map(table, table)
    found = cv.measure.k_map(table, small_table(60, seed=7))
    assert found.absent > 0 and found.least == 0


@pytest.mark.parametrize("seed", range(6))
def test_people_of_several_rows_are_looked_for_in_each_of_them(seed):
    # By the definition, one person after the other: nobody is absent from a register that holds all her rows.
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"id": [f"K{i:03}" for i in rng.integers(0, 40, 100)], "age": rng.integers(20, 30, 100)})
    rows["city"] = rng.choice(["Ghent", "Bruges"], 100)
    roles = {"identifiers": ["id"], "quasi_identifiers": ["age", "city"]}
    register, some = (cv.Table.from_frame(f, **roles) for f in (rows, rows.iloc[rng.permutation(100)[:50]]))
    found = cv.measure.k_map(some, register, k=4)
    by_row = rows.groupby(["age", "city"])["id"].agg(set)
    fits = [min(len(by_row[tuple(r)]) for r in g[["age", "city"]].to_numpy()) for _, g in some.frame.groupby("id")]
    assert (found.size, found.people, found.absent) == (rows["id"].nunique(), some.frame["id"].nunique(), 0)
    assert (found.least, found.unique, found.below_k) == (
        min(fits),
        np.mean([n == 1 for n in fits]),
        np.mean([n < 4 for n in fits]),
    )
    assert found.journalist == pytest.approx(np.mean([1 / n for n in fits]))


def test_bad_input_is_named():
    table = small_table(60)
    for size in (59, 2.5, True, "many"):
        with pytest.raises(cv.ParameterError, match="'size' parameter of population_uniques"):
            cv.measure.population_uniques(table, size)
    with pytest.raises(cv.SchemaError, match="lacks the quasi-identifiers"):
        cv.measure.k_map(table, cv.Table.from_frame(pd.DataFrame({"age": [1, 2]}), quasi_identifiers=["age"]))
    with pytest.raises(cv.ParameterError, match="'k' parameter of k_map"):
        cv.measure.k_map(table, table, k=0)
    with pytest.raises(cv.SchemaError, match="No quasi-identifier"):
        cv.measure.population_uniques(cv.Table.from_frame(pd.DataFrame({"a": [1]})), 9)


def test_on_the_command_line(run, tmp_path):
    everybody = small_table(300)
    some = everybody.take(np.arange(60))
    everybody.frame.to_csv(tmp_path / "all.csv", index=False)
    some.frame.to_csv(tmp_path / "some.csv", index=False)
    write_schema(some.schema, tmp_path / "people.toml")
    given_ = ("risk", tmp_path / "some.csv", "--schema", tmp_path / "people.toml")
    code, text, _ = run(*given_, "--population", "12,000", "--json")
    found = json.loads(text)["population"]
    assert code == 0 and found["size"] == 12_000 and found["chosen"] in ("pitman", "zayatz")
    assert 0 < found["journalist"] <= found["highest"] <= 1
    code, text, _ = run(*given_, "--population", "12000")
    assert code == 0 and "population of 12,000" in text and "simple random sample" in text
    assert "by the model of Pitman" in text or "by the model of Zayatz" in text
    code, text, _ = run(*given_, "--population", tmp_path / "all.csv", "--json")
    assert code == 0 and json.loads(text)["population"]["absent"] == 0
    assert "k-map" in run(*given_, "--population", tmp_path / "all.csv")[1]
    code, _, error = run(*given_, "--population", "59")
    assert code == 2 and "--population must be a whole number" in error and "60" in error
    code, _, error = run(*given_, "--population", "nowhere.csv")
    assert code == 2 and "--population must be a number of people, or a file" in error
