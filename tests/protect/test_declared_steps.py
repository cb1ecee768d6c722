"""Steps that a schema forbids, with "*" for every other value: no explainer and no protector asks for one."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.testing import small_model, small_table

# Nobody is sent to "a", whoever has "c" keeps it, nobody falls ill, and whoever earns the round number stays there.
STEPS = {
    "city": (("*", "a"), ("c", "*")),
    "ill": (("no", "yes"),),
    "level": (("low", "mid"), ("*", "low")),
    "age": (("*", 50), (33, "*")),
}
MAKE = {
    "CFK": lambda: cv.CFK(k=5),
    "CFK whole cells": lambda: cv.CFK(k=3, reward="plausibility", n_counterfactuals=2),
    "CFK exact": lambda: cv.CFK(k=3, search="exact"),
    "NICE": lambda: cv.NICE("sparsity", target="favourable"),
    "PrivateNeighbours": lambda: cv.PrivateNeighbours(epsilon=2.0, random_state=0),
    "PrivateHistograms": lambda: cv.PrivateHistograms(epsilon=2.0, random_state=0),
}


def declared(n, seed=0):
    table = small_table(n, seed)
    schema = table.schema
    for name, steps in STEPS.items():
        schema = schema.with_column(name, forbidden=steps)
    return cv.Table(table.frame, schema)


def values_of(cell):
    if isinstance(cell, frozenset):
        return set(cell)
    if isinstance(cell, pd.Interval):
        return set(range(int(np.ceil(cell.left)), int(np.floor(cell.right)) + 1))
    return {cell}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning")
def test_no_value_of_any_answer_is_a_forbidden_step(name):
    table = declared(200)
    asked = declared(60, seed=1).features
    asked.loc[asked.index[:8], "age"] = 33
    asked.loc[asked.index[8:16], "age"] = 50
    answers = MAKE[name]().fit(table, small_model).explain(asked)
    for one in (x for x in answers if x.found):
        for column, steps in STEPS.items():
            now = one.factual[column]
            for value in values_of(one.cells[column]) - {now}:
                assert not any(a in ("*", now) and b in ("*", value) for a, b in steps), (column, now, value)
    assert answers.found.any()
