"""Decisions that follow from scores by the model's own code take one call; all others are asked for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import countervail as cv
from countervail.core.encode import Encoder
from countervail.model.by_scores import decides_by_scores
from countervail.model.decision import Decision
from countervail.protect.cfk.moves.sets import AskedModel


class Lenient(RandomForestClassifier):
    """Says yes sooner than its scores do."""

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, -1] > 0.2).astype(int)]


class Doubtful(ExtraTreesClassifier):
    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 0.5)


def forest(**given):
    return RandomForestClassifier(**{"n_estimators": 4, "max_depth": 2, "random_state": 0, **given})


def encoded(last):
    return make_pipeline(make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough"), last)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (forest(), True),
        (ExtraTreesClassifier(), True),
        (encoded(forest()), True),
        (encoded(LogisticRegression()), False),
        (GradientBoostingClassifier(), False),
        (Lenient(), False),
        (encoded(Lenient()), False),
        (Doubtful(), False),
        (CalibratedClassifierCV(forest()), False),
        (FixedThresholdClassifier(forest(), threshold=0.2), False),
        (lambda X: ["yes"] * len(X), False),
    ],
    ids=lambda v: v if isinstance(v, bool) else type(v).__name__,
)
def test_only_forests_as_they_come_are_known(model, known):
    assert decides_by_scores(model) is known


def test_a_model_that_was_changed_in_place_is_not_known():
    model = forest()
    model.predict = lambda X: ["yes"] * len(X)
    assert not decides_by_scores(model)
    inside = encoded(forest())
    inside.steps[-1][1].predict_proba = lambda X: np.ones((len(X), 2))
    assert not decides_by_scores(inside)


def people(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 30, n), "pay": rng.integers(0, 4, n), "city": rng.choice(list("ab"), n)}
    )
    frame["ok"] = rng.choice(["no", "perhaps", "yes"][seed % 2 :], n)
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])


@pytest.mark.parametrize("ask_rows", [True, False])
def test_known_models_decide_as_they_predict_where_scores_are_equal_too(ask_rows, seeds, monkeypatch):
    ties = 0
    for seed in seeds(8, 200):
        table = people(60, seed)
        model = encoded(forest(n_estimators=2, max_depth=None, random_state=seed)).fit(table.features, table.target)
        said = model.predict(table.features)
        scores = np.sort(model.predict_proba(table.features), axis=1)
        ties += (scores[:, -1] == scores[:, -2]).sum()
        with monkeypatch.context() as patched:
            patched.setattr(type(model), "predict", None)  # nobody asks it
            decision = Decision(model, table, "Test", ask_rows=ask_rows)
            assert not decision.needs_call
            assert decision.labels(decision.decide(table.features)).tolist() == said.tolist()
            if ask_rows:
                assert decision.labels(decision.train).tolist() == said.tolist()
    assert ties


@pytest.mark.parametrize("kind", [forest, Lenient])
def test_points_are_asked_about_once_where_one_call_tells_both(kind):
    table = people(60, 1)
    model = encoded(kind(n_estimators=4, random_state=0)).fit(table.features, table.target)
    decision, encoder = Decision(model, table, "Test", ask_rows=False), Encoder.fit(table)
    desired = np.array([c == "yes" for c in decision.classes])
    counted = Counting(decision)
    asked, rows = AskedModel(counted, desired, encoder), encoder.encode(table.features)
    assert not len(asked.accepts_points(rows[:0])) and not len(asked.scores(rows[:0]))
    yes = np.asarray(model.predict(table.features)) == "yes"
    assert (asked.accepts_points(rows) == yes).all()
    before = counted.calls
    lean = model.predict_proba(table.features)[:, decision.classes.index("yes")]
    assert (asked.scores(rows[:40]) == lean[:40]).all()
    assert (counted.calls == before) is not decision.needs_call
    asked.again = True
    assert (asked.accepts_points(rows) == yes).all() and (asked.scores(rows) == lean).all()


class Counting:
    """A decision whose calls are counted."""

    def __init__(self, decision):
        self.decision, self.calls = decision, 0
        self.has_scores, self.needs_call = decision.has_scores, decision.needs_call

    def decide(self, frame):
        self.calls += 1
        return self.decision.decide(frame)

    def scores(self, frame):
        self.calls += 1
        return self.decision.scores(frame)
