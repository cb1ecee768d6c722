"""What a red team found around the private mechanisms: each finding stays a test."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.report.explained_page import explained_page
from countervail.report.page import render_page
from countervail.testing import small_model, small_table

EXPLAINERS = [
    cv.PrivateNeighbours(1.0, neighbours=3),
    cv.NoisyCounterfactual(1.0),
    cv.PrivateHistograms(1.0),
    cv.DPTableExplainer(1.0),
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


def test_levels_of_a_dtype_are_not_public():
    """pandas may have read an ordered category off the rows: a level that one person holds would show."""
    with_levels = small_table(80)
    frame = with_levels.frame.assign(level=with_levels.frame["level"].cat.remove_unused_categories())
    domains = {n: with_levels.schema[n].public for n in with_levels.schema.features if n != "level"}
    read = cv.Table.from_frame(frame.drop(columns="id"), target="ok", favourable="yes", domains=domains)
    assert read.schema["level"].levels == ("low", "mid", "high")
    for protector in EXPLAINERS:
        with pytest.raises(cv.SchemaError, match=r"\['level'\]"):
            protector.fit(read, small_model)
    with pytest.raises(cv.SchemaError, match=r"\['level'\]"):
        cv.DPTable(1.0).fit(read)
    declared = cv.Table.from_frame(read.frame, schema=read.schema.with_column("level", levels=("low", "mid", "high")))
    cv.DPTable(1.0).fit(declared)


def test_labels_of_a_dtype_are_not_public():
    table = small_table(80)
    ok = pd.Categorical(table.target.astype(str), ["no", "yes"], ordered=True)
    schema = table.schema.with_column("ok", type="ordinal")
    read = cv.Table.from_frame(table.frame.assign(ok=ok), schema=schema)
    with pytest.raises(cv.SchemaError, match="labels of the target"):
        cv.PrivateNeighbours(1.0).fit(read, small_model)


class Brittle(cv.NICE):
    """An explainer that cannot be fitted to a table in which somebody is 77."""

    def fit(self, table, model):
        if (table.frame["age"] == 77).any() and len(table) == 80:
            raise ValueError("77")
        return super().fit(table, model)


def test_an_inner_explainer_that_fails_on_somebody_does_not_show():
    table = small_table(80)
    frame = table.frame.assign(age=np.where(np.arange(80) == 3, 77, np.minimum(table.frame["age"], 70)))
    there = cv.Table.from_frame(frame, schema=table.schema)
    e = cv.NoisyCounterfactual(1.0, explainer=Brittle()).fit(there, small_model).explain(small_table(5, seed=2))
    assert len(e) == 5
    with pytest.raises(ValueError, match="reward"):
        cv.NoisyCounterfactual(1.0, explainer=cv.NICE("nonsense")).fit(there, small_model)


class Talkative(cv.NICE):
    """Warns when it meets a certain person, at fit and with every answer."""

    def fit(self, table, model):
        self.met_ = bool((table.frame["age"] == 77).any()) and len(table) == 80
        if self.met_:
            warnings.warn("77", UserWarning, stacklevel=2)
        return super().fit(table, model)

    def explain(self, rows, *, constraints=None, progress=None):
        if self.met_:
            warnings.warn("77", UserWarning, stacklevel=2)
        return super().explain(rows, constraints=constraints, progress=progress)


def test_what_an_inner_explainer_warns_of_does_not_show():
    table = small_table(80)
    there = cv.Table.from_frame(table.frame.assign(age=77), schema=table.schema)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = cv.NoisyCounterfactual(1.0, explainer=Talkative()).fit(there, small_model).explain(small_table(5, seed=2))
    assert len(e) == 5 and not said


def test_nobody_with_the_favourable_label_does_not_show():
    table = small_table(80)
    refused = cv.Table.from_frame(table.frame.assign(ok="no"), schema=table.schema)
    assert len(cv.NoisyCounterfactual(1.0).fit(refused, small_model).explain(small_table(5, seed=2))) == 5


@pytest.mark.parametrize("protector", [cv.DPTable(1.0), cv.PrivateHistograms(1.0)], ids=["table", "histograms"])
def test_pickles_of_one_draw_hold_no_table(protector):
    table = small_table(80)
    frame = table.frame.assign(id=[f"person-{i}-secret" for i in range(80)])
    secret = cv.Table.from_frame(frame, schema=table.schema)
    table_only = isinstance(protector, cv.DPTable)
    fitted = protector.fit(secret) if table_only else protector.fit(secret, small_model)
    stored = pickle.dumps(fitted)
    assert b"secret" not in stored
    again = pickle.loads(stored)
    if table_only:
        pd.testing.assert_frame_equal(again.protect(secret).to_frame(), fitted.protect(secret).to_frame())
    else:
        assert len(again.explain(small_table(5, seed=2))) == 5
