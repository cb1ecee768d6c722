"""Kinds of people: nothing that can be computed from what is told is about fewer than ten."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.differential.kinds import kinds_of_people


def members(table, who):
    """The people of a kind, read from its name; labels only."""
    there = np.ones(len(table), dtype=bool)
    for part in who.split(", "):
        name, value = part.split(" ")
        there &= (table.frame[name] == value).to_numpy()
    return there


@pytest.mark.parametrize("seed", range(20))
def test_kinds_cannot_be_subtracted_down_to_a_few(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 80, p=[0.85, 0.15]),
            "foreign": rng.choice(["no", "yes"], 80, p=[0.3, 0.7]),
            "town": rng.choice(["a", "b", "c"], 80, p=[0.6, 0.3, 0.1]),
            "ill": rng.choice(["flu", "hiv"], 80),
        }
    )
    table = cv.Table.from_frame(frame, quasi_identifiers=["sex", "foreign", "town"], sensitive=["ill"])
    kinds = kinds_of_people(table, np.arange(80), rng.random(80))
    told = np.array([members(table, k.who) for k in kinds]).reshape(len(kinds), 80)
    _, sizes = np.unique(told.T, axis=0, return_counts=True)
    assert sizes.min() >= 10


def test_the_mean_of_a_few_people_is_rounded():
    table = cv.load("german_credit").with_roles(sensitive=["housing"])
    found = cv.DifferentialInferenceTest(cv.published.BasicMondrian(k=5), n_records=2, beside=0).run(table)
    assert found.to_dict()["mean"]["value"] == float(f"{found.mean:.2g}")
