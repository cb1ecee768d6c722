"""A fitted explainer answers from several threads as it does from one."""

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import countervail as cv
from countervail.testing import small_model, small_table

EXPLAINERS = [
    cv.NICE(target="favourable"),
    cv.NICE(target="favourable", reward="sparsity"),
    cv.CFK(k=5),
    cv.CFK(k=5, search="exact"),
    cv.PrivateHistograms(random_state=0),
    cv.DPTableExplainer(random_state=0),
]


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=str)
def test_answers_from_several_threads_are_those_of_one(explainer):
    table = small_table(120)
    fitted = explainer.fit(table, small_model)
    rows = [table.features.iloc[[i]] for i in range(24)]
    one_by_one = [fitted.explain(row) for row in rows]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(fitted.explain, rows))
    for alone, together in zip(one_by_one, at_once, strict=True):
        pd.testing.assert_frame_equal(alone.to_frame(), together.to_frame())
        assert alone.to_text() == together.to_text()
