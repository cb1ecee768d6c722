"""What is not part of the k-anonymous table must not reach an answer: order of categories, of rows, spelling."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import countervail as cv

SETTINGS = [
    {},
    {"search": cv.protect.GroupSearch(grouping="mondrian")},
    {"l": 2, "sensitive": "ill"},
    {"t": 0.6, "sensitive": "ill"},
]


def people(seed, n=24):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 26, n),
            "city": rng.choice(["a", "b", "c"], n),
            "pay": rng.integers(0, 4, n),
            "ill": rng.choice(["no", "yes", "maybe"], n),
        }
    )
    frame["ok"] = rng.choice(["no", "yes"], n)
    frame.loc[:1, "ok"] = ["no", "yes"]
    return frame


def table(frame):
    return cv.Table.from_frame(
        frame, target="ok", favourable="yes", quasi_identifiers=["age", "city"], sensitive=["ill"]
    )


def model(frame):
    good = frame["pay"].to_numpy(float) + (frame["city"].astype(object) == "a").to_numpy() > 1
    return np.where(good, "yes", "no")


def by_appearance(frame):
    """Text columns as categories in the order in which the rows show them."""
    out = frame.copy()
    for name in ("city", "ill"):
        out[name] = pd.Categorical(out[name], categories=pd.unique(out[name]))
    return out


def answers(frame, settings, asked):
    made = cv.CFK(k=3, **settings).fit(table(frame), model)
    return made.explain(asked).to_json()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_order_of_rows_and_index_reach_no_answer(settings, seeds):
    for seed in seeds(12, 300):
        frame, asked = people(seed), people(seed + 999, 8).drop(columns="ok")
        rng = np.random.default_rng(seed)
        shuffled = frame.iloc[rng.permutation(len(frame))].set_axis(rng.permutation(1000)[: len(frame)])
        assert answers(frame, settings, asked) == answers(shuffled, settings, asked)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_order_of_categories_reaches_no_answer(settings, seeds):
    for seed in seeds(12, 300):
        frame, asked = people(seed), people(seed + 999, 8).drop(columns="ok")
        mixed = frame.iloc[np.random.default_rng(seed).permutation(len(frame))]
        assert answers(by_appearance(frame), settings, asked) == answers(by_appearance(mixed), settings, asked)


def test_two_people_who_swap_their_illnesses_change_nothing():
    """Four people, categories in the order of appearance: the example of the red team."""
    frame = pd.DataFrame(
        {"age": [30, 31, 50, 51], "ill": ["flu", "none", "cold", "none"], "ok": ["yes", "yes", "no", "no"]}
    )
    swapped = frame.assign(ill=["none", "flu", "cold", "none"])
    asked = pd.DataFrame({"age": [50], "ill": ["cold"]})

    def told(data):
        data = data.assign(ill=pd.Categorical(data["ill"], categories=pd.unique(data["ill"])))
        people = cv.Table.from_frame(data, target="ok", favourable="yes", quasi_identifiers=["age"])
        return cv.CFK(k=2).fit(people, young).explain(asked).to_json()

    assert told(frame) == told(swapped)


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (Decimal("1.0"), Decimal("1"), Decimal("2")),
        ("e\u0301", "\u00e9", "x"),
        (pd.Timestamp("2020-01-01 01:00+01:00"), pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2021", tz="UTC")),
        (-0.0, 0.0, 1.0),
    ],
    ids=["decimal", "unicode", "zone", "zero"],
)
def test_which_of_two_spellings_comes_first_reaches_no_answer(one, same, other):
    asked = pd.DataFrame({"age": [50], "v": pd.Series([other], dtype=object)})

    def told(first, second):
        frame = pd.DataFrame({"age": [30, 31, 50, 51], "v": pd.Series([first, second, other, other], dtype=object)})
        frame["ok"] = ["yes", "yes", "no", "no"]
        people = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])
        return cv.CFK(k=2).fit(people, young).explain(asked).to_json()

    assert told(one, same) == told(same, one)


def young(frame):
    return np.where(frame["age"].to_numpy() < 40, "yes", "no")
