"""Homogeneity on tables, and intersection over several answers to one person."""

import numpy as np
import pandas as pd

import countervail as cv
from countervail.attack.intersection import _answers
from countervail.testing import small_model, small_table


def test_classes_that_share_a_value_give_everybody_in_them_away():
    frame = pd.DataFrame({"age": [20, 21, 22, 50, 51, 52], "ill": ["flu"] * 3 + ["flu", "cold", "hiv"]})
    table = cv.Table.from_frame(frame, quasi_identifiers=["age"], sensitive=["ill"])
    release = cv.Mondrian(k=3).fit(table).protect(table)
    found = cv.attack.Homogeneity().run(release, table, control=table)
    assert found.members.value == 0.5
    kept = cv.Mondrian(k=3, l=2, sensitive="ill").fit(table).protect(table)
    assert cv.attack.Homogeneity().run(kept, table, control=table).members.value == 0.0


def test_answers_to_one_person_are_intersected():
    table = small_table()
    answers = cv.NICE(n_counterfactuals=2).fit(table, small_model).explain(small_table(6, seed=1))
    asked = [query for query, _, _ in _answers(answers, table.select("quasi"))]
    assert asked == answers.query[answers.found].tolist() and len(asked) > len(np.unique(asked))
