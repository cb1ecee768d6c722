"""Sensitive numbers in a differential inference test: groups of about equally many people."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.differential.secret_groups import group_numbers

OWNER = "DifferentialInferenceTest"


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(20, 60, n), "city": rng.choice(list("ab"), n)})
    frame["pay"] = (frame["age"] * 10 + rng.normal(0, 50, n)).round(1)
    return cv.Table.from_frame(frame, quasi_identifiers=["age", "city"], sensitive=["pay"])


def test_groups_are_even_ordered_and_keep_equal_numbers_together():
    frame = pd.DataFrame({"q": range(8), "pay": [1.0, 2, 3, 4, 5, 6, 7, 8]})
    table = cv.Table.from_frame(frame, quasi_identifiers=["q"], sensitive=["pay"])
    made = group_numbers(table, "pay", 4, OWNER)
    assert made.frame["pay"].tolist() == [f"{g} of 4" for g in (1, 1, 2, 2, 3, 3, 4, 4)]
    assert made.schema["pay"].type == "ordinal" and made.schema["pay"].levels == tuple(
        f"{g} of 4" for g in (1, 2, 3, 4)
    )
    holes = cv.Table.from_frame(
        frame.assign(pay=[0.0, 0, 0, 0, 0, 1, 2, None]), quasi_identifiers=["q"], sensitive=["pay"]
    )
    few = group_numbers(holes, "pay", 4, OWNER)
    assert few.frame["pay"].isna().tolist() == [False] * 7 + [True]
    assert few.frame["pay"][:5].nunique() == 1 and few.schema["pay"].levels == ("1 of 2", "2 of 2")


def test_the_test_is_that_of_the_grouped_table():
    table = people()
    settings = {"ground": "ordered", "beside": 0}
    found = cv.DifferentialInferenceTest(cv.Mondrian(k=5), groups=4, **settings).run(table)
    by_hand = cv.DifferentialInferenceTest(cv.Mondrian(k=5), **settings).run(group_numbers(table, "pay", 4, OWNER))
    np.testing.assert_allclose(found.d_pp, by_hand.d_pp)
    assert 0 < found.mean < 3 and found.distance == "emd, ordered values"


@pytest.mark.parametrize(
    ("table", "groups", "message"),
    [
        (people(), 1, "'groups' parameter of DifferentialInferenceTest must be None or a whole number of at least 2"),
        (people(), 2.5, "'groups' parameter of DifferentialInferenceTest must be None or a whole number"),
        (
            people().with_roles(quasi=["age", "pay"], sensitive=["city"]),
            3,
            "the sensitive column 'city' holds no numbers",
        ),
    ],
)
def test_what_cannot_be_grouped_is_refused(table, groups, message):
    with pytest.raises(ValueError, match=message):
        cv.DifferentialInferenceTest(cv.Mondrian(k=5), groups=groups, beside=0).run(table)
    with pytest.raises(ValueError, match="'groups' parameter of DifferentialInferenceTest must be None for files"):
        cv.DifferentialInferenceTest(cv.Mondrian(k=5), groups=3).run_files(table, "x.csv", {0: "y.csv"})
