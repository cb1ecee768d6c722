"""What a red team found around the private mechanisms: each finding stays a test."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.report.explained import explained_page
from countervail.report.page import render_page
from countervail.testing import small_model, small_table

EXPLAINERS = [
    cv.PrivateNeighbours(1.0, neighbours=3),
    cv.NoisyCounterfactual(1.0),
    cv.PrivateHistograms(1.0),
]


@pytest.mark.parametrize("protector", EXPLAINERS, ids=lambda p: type(p).__name__)
def test_a_page_of_private_answers_draws_no_counts_of_the_table(protector):
    table = small_table(80)
    e = protector.fit(table, small_model).explain(small_table(15, seed=2).features)
    assert "Dot: the asker" not in render_page(explained_page(e))


@pytest.mark.parametrize("protector", EXPLAINERS, ids=lambda p: type(p).__name__)
def test_provenance_holds_nothing_that_rows_decide(protector):
    e = protector.fit(small_table(80), small_model).explain(small_table(5, seed=2).features)
    assert set(e.provenance) == {"protector", "parameters", "countervail"}


@pytest.mark.parametrize("protector", EXPLAINERS, ids=lambda p: type(p).__name__)
def test_the_promise_cannot_be_relabelled_after_fit(protector):
    fitted = protector.fit(small_table(80), small_model)
    fitted.set_params(epsilon=0.01)
    with pytest.raises(cv.SchemaError, match="Fit again"):
        fitted.explain(small_table(5, seed=2).features)
    fitted.set_params(epsilon=1.0)


def test_a_noisy_table_cannot_be_relabelled_after_fit():
    table = small_table(80)
    fitted = cv.DPTable(50, random_state=0).fit(table)
    fitted.set_params(random_state=None, epsilon=0.1)
    with pytest.raises(cv.SchemaError, match="Fit again"):
        fitted.protect(table)
    assert "schema" not in cv.DPTable(1.0).fit(table).protect(table).provenance


def test_one_missing_label_does_not_show():
    """A 0/1 target with one hole becomes a float column; nothing released may tell."""
    table = small_table(80)
    ok = (table.target == "yes").astype(int)
    made = []
    for target in (ok, ok.astype(float).where(np.arange(80) != 5)):
        frame = table.frame.assign(ok=pd.Series(target.to_numpy()))
        schema = table.schema.with_column("ok", type="numeric")
        one = cv.Table.from_frame(frame, schema=cv.Schema(schema.columns, (1,)))
        made.append(cv.DPTable(1.0).fit(one).protect(one).provenance)
    assert made[0] == made[1]
