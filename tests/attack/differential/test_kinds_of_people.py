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


def test_kinds_count_people_and_not_their_rows():
    # Nine people of Ostend have four rows each, and stick out.
    who = [f"K{i:03}" for i in range(60)] + [f"K{900 + i:03}" for i in range(9) for _ in range(4)]
    frame = pd.DataFrame({"id": who, "town": ["Ghent", "Bruges"] * 30 + ["Ostend"] * 36, "ill": ["flu", "hiv"] * 48})
    far = np.array([0.1, 0.2] * 30 + [0.9] * 36)
    rows = np.arange(len(frame))
    alone = cv.Table.from_frame(frame.drop(columns="id"), quasi_identifiers=["town"], sensitive=["ill"])
    assert [k.who for k in kinds_of_people(alone, rows, far)] == ["town Ostend"]
    named = cv.Table.from_frame(frame, identifiers=["id"], quasi_identifiers=["town"], sensitive=["ill"])
    assert kinds_of_people(named, rows, far) == []
    frame.loc[len(frame)] = ["K999", "Ostend", "flu"]
    ten = cv.Table.from_frame(frame, identifiers=["id"], quasi_identifiers=["town"], sensitive=["ill"])
    assert [k.people for k in kinds_of_people(ten, np.arange(97), np.append(far, 0.9))] == [10]


def test_kinds_by_dates_are_told_in_dates():
    days = pd.date_range("1950-03-07", periods=80, freq="97D")
    frame = pd.DataFrame({"born": days, "ill": ["flu", "hiv"] * 40})
    table = cv.Table.from_frame(frame, quasi_identifiers=["born"], sensitive=["ill"])
    told = kinds_of_people(table, np.arange(80), np.linspace(0, 1, 80))
    assert [k.who for k in told] == ["born 1965-01-01 or later", "born from 1960-01-01 to before 1965-01-01"]
    assert [k.people for k in told] == [int((days >= "1965").sum()), int(((days >= "1960") & (days < "1965")).sum())]
    close = frame.assign(born=pd.date_range("1999-02-01", periods=80))
    table = cv.Table.from_frame(close, quasi_identifiers=["born"], sensitive=["ill"])
    assert kinds_of_people(table, np.arange(80), np.linspace(0, 1, 80))[0].who == "born 1999-04-01 or later"
