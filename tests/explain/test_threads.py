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


def test_one_answer_can_be_read_by_several_threads():
    table = small_table(120)
    fitted = cv.CFK(k=5).fit(table, small_model)
    expected = fitted.explain(table.features).to_json()
    answers = fitted.explain(table.features)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: answers.to_json(), range(4))) == {expected}


@pytest.mark.parametrize("explainer", EXPLAINERS[:4], ids=str)
def test_a_row_alone_is_answered_as_among_others(explainer):
    table = small_table(120)
    fitted = explainer.fit(table, small_model)
    together = fitted.explain(table.features)
    for i in range(12):
        row = table.features.iloc[[i]]
        for form in (row, row.iloc[0], row.astype(object).to_dict("records")[0]):
            alone = fitted.explain(form)
            assert str(alone[0]) == str(together[i])
            assert alone[0].changes == together[i].changes
            assert (alone[0].before, alone[0].after) == (together[i].before, together[i].after)
