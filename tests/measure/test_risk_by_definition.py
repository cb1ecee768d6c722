"""Prosecutor, journalist and marketer risk from their definitions, person by person (El Emam 2013, as in ARX).

With f the people of the data who share a person's published cells, and F those of the population whom they fit:
prosecutor 1/f, journalist 1/F, each at most; marketer: the share of the data's people who are matched rightly if each
is taken for one of F, drawn at random.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.region import Range, Regions, Values
from countervail.core.release import Release

AGES = [20, 22, 24, 41, 43, 60, 61, 65]  # the worked example of docs/guide/auditing.md
CITIES = ["Ghent", "Ghent", "Ghent", "Ghent", "Ghent", "Lier", "Lier", "Lier"]
STRANGERS = {"age": [21, 23, 24, 42, 70, 61], "city": ["Ghent", "Lier", "Ghent", "Ghent", "Lier", "Lier"]}


def people(frame):
    return cv.Table.from_frame(frame, quasi_identifiers=["age", "city"], sensitive=["ill"])


def example():
    """Eight people in three classes, and a population of fourteen that holds them."""
    data = pd.DataFrame({"age": AGES, "city": CITIES, "ill": ["a", "b"] * 4})
    population = pd.concat([data, pd.DataFrame({**STRANGERS, "ill": "a"})], ignore_index=True)
    axes = (
        Range("age", np.array([20.0, 41.0, 60.0]), np.array([24.0, 43.0, 65.0]), True),
        Values.of("city", ["Ghent", "Lier"], np.array([[True, False], [True, False], [False, True]])),
    )
    table = people(data)
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    promise = cv.Mondrian(k=2).fit(table).protect(table).guarantee
    release = Release(Regions(axes, 3), groups, data[["ill"]], table.schema.without_identifiers(), promise)
    return release, table, people(population)


def by_definition(release, population):
    """The three risks, by going through everybody."""
    shown = release.to_frame()
    cells = [(row.age, row.city) for row in shown.itertuples()]
    everybody = list(zip(population.frame["age"], population.frame["city"]))
    alike = [sum(c == other for other in cells) for c in cells]
    fitting = [sum(age in span and city == place for age, city in everybody) for span, place in cells]
    n = len(cells)
    return (
        max(Fraction(1, f) for f in alike),
        max(Fraction(1, f) for f in fitting),
        sum(Fraction(1, f) for f in fitting) / n,
        Fraction(len(set(cells)), n),
    )


def test_the_three_risks_of_the_worked_example_are_those_of_their_definitions():
    release, _, population = example()
    prosecutor, journalist, marketer, alone = by_definition(release, population)
    found = cv.measure.release_risk(release, population=population)
    # Classes of 3, 2 and 3 people, whom 5, 3 and 4 of the population fit.
    assert (prosecutor, journalist, alone) == (Fraction(1, 2), Fraction(1, 3), Fraction(3, 8))
    assert marketer == (Fraction(3, 5) + Fraction(2, 3) + Fraction(3, 4)) / 8
    assert found.prosecutor == float(prosecutor)
    assert found.journalist == float(journalist)
    assert found.marketer == pytest.approx(float(marketer))


def test_without_a_population_the_data_are_all_there_is():
    release, table, _ = example()
    prosecutor, journalist, marketer, alone = by_definition(release, table)
    found = cv.measure.release_risk(release)
    assert (found.prosecutor, found.journalist, found.marketer) == (
        float(prosecutor),
        float(journalist),
        float(marketer),
    )
    assert marketer == alone  # each class is found once


def test_k_map_is_the_journalist_before_anything_is_generalised():
    _, table, population = example()
    mine, everybody = (list(zip(t.frame["age"], t.frame["city"])) for t in (table, population))
    fitting = [everybody.count(person) for person in mine]
    found = cv.measure.k_map(table, population)
    assert found.highest == max(1 / f for f in fitting)
    assert found.journalist == pytest.approx(sum(1 / f for f in fitting) / len(mine))
    assert found.least == min(fitting)


@pytest.mark.parametrize("seed", range(5))
def test_the_definitions_hold_for_tables_that_mondrian_publishes(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(18, 60, 120), "city": "Ghent", "ill": rng.choice(["a", "b"], 120)})
    table, population = people(frame.iloc[:60].reset_index(drop=True)), people(frame)
    release = cv.Mondrian(k=4).fit(table).protect(table)
    cells = list(release.to_frame()["age"])
    fitting = [sum(a in c if isinstance(c, pd.Interval) else a == c for a in frame["age"]) for c in cells]
    found = cv.measure.release_risk(release, population=population)
    assert found.prosecutor == max(1 / cells.count(c) for c in cells)
    assert found.journalist == max(1 / f for f in fitting)
    assert found.marketer == pytest.approx(sum(1 / f for f in fitting) / len(cells))
