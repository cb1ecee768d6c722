"""Decisions: any estimator or plain function under one roof; errors never quote a row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.svm import LinearSVC

from countervail import CountervailError, SchemaError, Table
from countervail.core.errors import ParameterError
from countervail.model.decision import Decision

LABELS = {"text": ("no", "yes"), "int": (0, 1), "bool": (False, True), "float": (0.0, 1.0)}


def people(kind="text", secret="Xanthippe"):
    low, high = LABELS[kind]
    frame = pd.DataFrame({"age": np.arange(20.0), "name": [secret, *"abcdefghijklmnopqrs"]})
    frame["ok"] = [low] * 10 + [high] * 10
    return Table.from_frame(frame, target="ok", identifiers=["name"])


def by_age(frame, kind="text"):
    low, high = LABELS[kind]
    return [high if a >= 10 else low for a in frame["age"]]


def scores_by_age(frame):
    yes = (frame["age"] >= 10).to_numpy(float)
    return np.column_stack([1 - yes, yes])


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("scored", [True, False], ids=["with scores", "labels only"])
def test_estimators_of_any_label_decide_as_they_predict(kind, scored):
    table = people(kind)
    y = table.target.astype(object) if kind == "text" else table.target
    model = (LogisticRegression() if scored else LinearSVC()).fit(table.features, y)
    decision = Decision(model, table, "Test")
    assert decision.has_scores is scored
    assert decision.labels(decision.decide(table.features)).tolist() == model.predict(table.features).tolist()
    assert decision.labels(decision.train).tolist() == model.predict(table.features).tolist()


@pytest.mark.parametrize("kind", LABELS)
def test_a_function_may_return_labels(kind):
    table = people(kind)
    decision = Decision(lambda f: by_age(f, kind), table, "Test")
    assert not decision.has_scores
    assert decision.train.tolist() == [0] * 10 + [1] * 10
    assert decision.labels(decision.train).tolist() == table.target.tolist()


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series, lambda v: np.array(v, dtype=object), pd.Categorical])
def test_labels_may_come_in_any_container(wrap):
    assert Decision(lambda f: wrap(by_age(f)), people(), "Test").train.tolist() == [0] * 10 + [1] * 10


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, lambda v: v.tolist()])
def test_a_function_may_return_scores_in_sorted_label_order(wrap):
    decision = Decision(lambda f: wrap(scores_by_age(f)), people(), "Test")
    assert decision.has_scores and not decision.needs_call
    assert decision.classes == ["no", "yes"]
    assert decision.train.tolist() == [0] * 10 + [1] * 10


def test_a_tuned_threshold_decides_and_not_the_scores():
    table = people()
    plain = LogisticRegression().fit(table.features, table.target.astype(object))
    tuned = FixedThresholdClassifier(plain, threshold=0.999, pos_label="yes").fit(
        table.features, table.target.astype(object)
    )
    decision = Decision(tuned, table, "Test")
    assert decision.needs_call
    said = tuned.predict(table.features)
    assert said.tolist() != plain.predict(table.features).tolist()
    assert decision.labels(decision.decide(table.features)).tolist() == said.tolist()
    scores = decision.scores(table.features)
    assert decision.labels(decision.decide(table.features, scores)).tolist() == said.tolist()


class Counting(ClassifierMixin, BaseEstimator):
    def __init__(self):
        self.calls = 0

    def predict(self, frame):
        self.calls += 1
        return np.array(by_age(frame))

    def predict_proba(self, frame):
        self.calls += 1
        return scores_by_age(frame)


def test_known_scores_save_the_call():
    table, model = people(), Counting()
    decision = Decision(model, table, "Test")
    scores, before = decision.scores(table.features), model.calls
    decision.decide(table.features, scores)
    assert model.calls == before


def test_user_labels_become_codes_and_unknown_ones_are_refused():
    decision = Decision(by_age, people(), "Test")
    assert decision.codes(["yes", "no"], "target").tolist() == [1, 0]
    with pytest.raises(ParameterError, match="'target' parameter of Test must be among the labels"):
        decision.codes(["maybe"], "target")


def test_a_negative_code_has_no_label():
    assert Decision(by_age, people(), "Test").labels(np.array([-1, 1])).tolist() == [None, "yes"]


def quoting(error):
    def model(frame):
        raise error("could not convert string to float: 'Xanthippe'")

    return model


def wrong_columns():
    other = Table.from_frame(people().frame.rename(columns={"age": "years"}), target="ok", identifiers=["name"])
    return LogisticRegression().fit(other.features, other.target.astype(object))


def other_labels():
    table = people("int")
    return LogisticRegression().fit(table.features, table.target)


BAD = {
    "no model": (lambda: 3, "'model' parameter of Test must be an estimator"),
    "raises ValueError": (lambda: quoting(ValueError), "'model' of Test failed with ValueError"),
    "raises TypeError": (lambda: quoting(TypeError), "'model' of Test failed with TypeError"),
    "raises KeyError": (lambda: quoting(KeyError), "'model' of Test failed with KeyError"),
    "one label for all": (lambda: lambda f: "yes", "one label per row. Got 1 for 20 rows"),
    "a label too few": (lambda: lambda f: by_age(f)[:-1], "one label per row. Got 19 for 20 rows"),
    "nothing": (lambda: lambda f: None, "one label per row"),
    "labels in two columns": (lambda: lambda f: [[v, v] for v in by_age(f)], "failed with ValueError"),
    "unknown labels": (lambda: lambda f: ["Xanthippe"] * len(f), "labels that are not in the table's target"),
    "missing labels": (lambda: lambda f: [None] * len(f), "labels that are not in the table's target"),
    "one column of scores": (lambda: lambda f: scores_by_age(f)[:, :1], r"2 scores per row.*shape \(20, 1\)"),
    "three columns of scores": (lambda: lambda f: np.ones((len(f), 3)), r"2 scores per row.*shape \(20, 3\)"),
    "NaN scores": (lambda: lambda f: scores_by_age(f) * np.nan, "NaN scores"),
    "other columns": (wrong_columns, r"trained on the columns \['years'\]"),
    "other labels": (other_labels, "trained on labels"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_model_that_does_not_fit_is_refused_without_quoting_a_row(case):
    make, words = BAD[case]
    with pytest.raises(CountervailError, match=words) as caught:
        Decision(make(), people(), "Test")
    assert "Xanthippe" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_a_fault_of_the_models_own_is_named_by_its_kind_only():
    with pytest.raises(SchemaError, match="failed with ZeroDivisionError") as caught:
        Decision(quoting(ZeroDivisionError), people(), "Test")
    assert "Xanthippe" not in str(caught.value) and caught.value.__context__ is None


def test_one_class_cannot_be_explained():
    with pytest.raises(SchemaError, match="target 'ok' has one class only"):
        Decision(by_age, people().take(range(10)), "Test")


@pytest.mark.parametrize("labels", [["no", "yes"], ["e\u0301", "\u00e9\u00e9"], [0, 1], ["1", 2]])
def test_few_labels_and_many_are_read_alike(labels, monkeypatch):
    frame = pd.DataFrame({"x": range(6), "y": pd.Series([labels[i % 2] for i in range(6)], dtype=object)})
    table = Table.from_frame(frame, target="y")

    def model(rows):
        return pd.Series([labels[v % 2] for v in rows["x"]], dtype=object)

    few = Decision(model, table, "NICE").decide(table.features)
    monkeypatch.setattr("countervail.model.decision._FEW", 0)
    assert few.tolist() == Decision(model, table, "NICE").decide(table.features).tolist()
    assert len(set(few.tolist())) == 2
