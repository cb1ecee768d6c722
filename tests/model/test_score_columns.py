"""Scores in a frame belong to the labels that their columns are named after, in whatever order they stand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import countervail as cv
from countervail.core.errors import SchemaError
from countervail.model.decision import Decision
from countervail.study.remember import Remembered

LABELS = {
    "text": ("high", "low", "mid"),
    "whole": (0, 1, 2),
    "other whole": (3, 1, 7),
    "float": (0.0, 1.0, 2.0),
}


def people(kind="text"):
    labels = np.array(LABELS[kind], dtype=object if kind == "text" else None)
    frame = pd.DataFrame({"age": np.arange(60) % 20, "pay": np.arange(60) % 7})
    frame["ok"] = labels[scores(frame).argmax(axis=1)]
    return cv.Table.from_frame(frame, target="ok")


def scores(frame):
    """One score per label, in the order in which the labels are listed above."""
    age, pay = frame["age"].to_numpy(float), frame["pay"].to_numpy(float)
    raw = np.column_stack([age / 20, pay / 7, np.full(len(frame), 0.45)])
    return raw / raw.sum(axis=1, keepdims=True)


def shuffled(kind, spell=lambda label: label, order=(2, 0, 1)):
    """The same scores as a frame whose columns stand in another order."""
    names = [spell(label) for label in LABELS[kind]]
    return lambda frame: pd.DataFrame(scores(frame), columns=pd.Index(names))[[names[i] for i in order]]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
@pytest.mark.parametrize("spell", [lambda label: label, str], ids=["label", "text"])
@pytest.mark.parametrize("kind", LABELS)
def test_columns_in_any_order_give_one_decision(kind, spell, order):
    table = people(kind)
    decision = Decision(shuffled(kind, spell, order), table, "Test")
    assert decision.labels(decision.train).tolist() == table.target.tolist()
    of = dict(zip(decision.classes, decision.scores(table.features).T))
    for label, expected in zip(LABELS[kind], scores(table.features).T):
        assert of[label] == pytest.approx(expected)


def test_a_shuffled_model_is_explained_as_the_plain_one():
    table, rows = people(), people().features.iloc[:9]
    plain = cv.NICE("sparsity").fit(table, lambda f: scores(f))
    named = cv.NICE("sparsity").fit(table, shuffled("text"))
    assert named.explain(rows).to_json() == plain.explain(rows).to_json()


def test_an_estimator_may_return_a_frame():
    table = people()
    inner = LogisticRegression(max_iter=1000).fit(table.features, table.target.astype(object))

    class Named:
        def predict_proba(self, frame):
            found = pd.DataFrame(inner.predict_proba(frame), columns=inner.classes_, index=frame.index)
            return found[found.columns[::-1]]

        def predict(self, frame):
            return pd.DataFrame({"ok": inner.predict(frame)}, index=frame.index)

    one, other = Decision(inner, table, "Test"), Decision(Named(), table, "Test")
    assert (one.train == other.train).all() and not other.needs_call
    np.testing.assert_array_equal(one.scores(table.features), other.scores(table.features))
    kept = Remembered(Named(), table.features)
    for _ in range(2):
        np.testing.assert_array_equal(Decision(kept, table, "Test").train_scores, one.train_scores)


def test_frames_of_polars_have_names_too():
    table = people()
    decision = Decision(lambda f: pl.from_pandas(shuffled("text")(f)), table, "Test")
    assert decision.labels(decision.train).tolist() == table.target.tolist()


def test_a_frame_without_names_is_read_like_an_array():
    table = people()
    decision = Decision(lambda f: pd.DataFrame(scores(f)), table, "Test")
    assert decision.labels(decision.train).tolist() == table.target.tolist()


@pytest.mark.parametrize(
    "names",
    [["low", "mid", "Xanthippe"], ["low", "mid", "mid"], ["low", "mid"], ["low", "mid", "high", "Xanthippe"]],
    ids=str,
)
def test_other_names_are_refused_and_not_shown(names):
    def model(frame):
        return pd.DataFrame(np.full((len(frame), len(names)), 0.5), columns=names)

    with pytest.raises(SchemaError, match="must name the 3 columns of its scores after the labels") as caught:
        Decision(model, people(), "Test")
    assert "Xanthippe" not in str(caught.value)
