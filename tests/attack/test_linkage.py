"""The linkage attack on cases that can be counted by hand."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.testing import small_model, small_table


def lisa_and(table):
    return cv.NICE().fit(table, cv.data.toy_credit_model).explain(cv.data.toy_credit_query())


def test_fiona_is_found_out_by_a_plain_explanation():
    # Goethals et al., section 2: Lisa can deduce Fiona's income and relationship status.
    table = cv.load("toy_credit")
    result = cv.attack.Linkage().run(lisa_and(table), table, table)
    assert result.members.value == 0.1
    assert result.set_sizes.tolist() == [1]
    assert result.exposed.value == 1.0


def test_a_twin_in_the_register_hides_fiona():
    table = cv.load("toy_credit")
    twin = table.frame[table.frame["name"] == "Fiona"].assign(name="Flora", salary=10)
    bigger = cv.Table(pd.concat([table.frame, twin]), table.schema)
    result = cv.attack.Linkage().run(lisa_and(table), bigger, table)
    assert (result.members.value, result.set_sizes.tolist()) == (0, [2])


def test_the_journalist_needs_more_luck_than_the_prosecutor():
    table, control = small_table(200), small_table(200, seed=1)
    e = cv.NICE(target="favourable").fit(table, small_model).explain(control)
    prosecutor, journalist = (cv.attack.Linkage(a).run(e, table, control) for a in ("prosecutor", "journalist"))
    assert prosecutor.members.value > journalist.members.value > 0
    assert (journalist.set_sizes >= prosecutor.set_sizes).all()


def test_success_is_counted_as_a_slow_twin_counts_it():
    table, control = small_table(80), small_table(60, seed=1)
    e = cv.NICE(target="favourable").fit(table, small_model).explain(control)
    quasi, private = ["age", "city", "level"], ["ill", "income"]
    exposed = set()
    for i in np.flatnonzero(e.found):
        cell = e.counterfactuals.iloc[i]
        match = [r for r in range(80) if all(table.frame[q].iloc[r] == cell[q] for q in quasi)]
        if len(match) == 1 and all(table.frame[p].iloc[match[0]] == cell[p] for p in private):
            exposed.add(match[0])
    assert cv.attack.Linkage().run(e, table, control).members.value == pytest.approx(len(exposed) / 80)


def test_some_targets_can_be_drawn():
    table, control = small_table(80), small_table(60, seed=1)
    e = cv.NICE(target="favourable").fit(table, small_model).explain(control)
    result = cv.attack.Linkage(n_targets=30).run(e, table, control)
    assert (result.members.n, result.controls.n) == (30, 30)


def test_a_result_says_what_it_found():
    table = cv.load("toy_credit")
    result = cv.attack.Linkage().run(lisa_and(table), table, table)
    assert "100.0% of what was released speaks of one person" in str(result)
    assert result.to_dict()["set_sizes"] == {1: 1}


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (cv.attack.Linkage("police"), "'adversary' parameter of Linkage"),
        (cv.attack.Linkage(n_targets=0), "'n_targets' parameter of Linkage"),
    ],
)
def test_bad_parameters_are_named(attack, message):
    table = small_table()
    e = cv.NICE().fit(table, small_model).explain(table)
    with pytest.raises(ValueError, match=message):
        attack.run(e, table, table)


def test_an_attack_needs_quasi_identifiers_and_secrets():
    table = small_table()
    e = cv.NICE().fit(table, small_model).explain(table)
    with pytest.raises(cv.SchemaError, match="needs quasi-identifiers"):
        cv.attack.Linkage().run(e, table.with_roles(quasi=[]), table)


class Forgetful:
    """Widens to a random set of people each time: answers about one person intersect to few."""

    def __init__(self, protector, table):
        self.protector, self.table, self.rng = protector, table, np.random.default_rng(0)

    def explain(self, rows):
        from dataclasses import replace

        e = self.protector.explain(rows)
        shown = e.counterfactuals.copy()
        low = self.rng.integers(0, 20, len(shown))
        ages = [
            pd.Interval(a - d, a + 20 - d, closed="both") if f else None for a, d, f in zip(shown["age"], low, e.found)
        ]
        return replace(e, counterfactuals=shown.assign(age=pd.Series(ages, dtype=object)))


def test_intersection_finds_a_protector_that_forgets():
    table, control = small_table(150), small_table(40, seed=1)
    forgetful = Forgetful(cv.NICE(target="favourable").fit(table, small_model), table)
    once = cv.attack.Intersection(repeats=1).run(forgetful, table, control).set_sizes
    often = cv.attack.Intersection(repeats=20).run(forgetful, table, control).set_sizes
    assert often.mean() < once.mean()
    assert np.median(often) == 1
