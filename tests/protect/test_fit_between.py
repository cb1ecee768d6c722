"""A fit that comes between an answer and its promise, from another thread or from a callback, changes neither."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.protect._classes import ClassProtector

pytestmark = pytest.mark.usefixtures("quick_groups")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 60), "city": rng.choice(list("abc"), 60)})
    frame["pay"], frame["ok"] = rng.integers(0, 9, 60), rng.choice(["no", "yes"], 60)
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age", "city"])


def model(frame):
    return np.where(frame["pay"].to_numpy(float) > 4, "yes", "no")


def fit_between(protector, table):
    def progress(done, of):
        protector.set_params(k=15).fit(table, model)

    return progress


def test_answers_promise_what_they_were_fitted_with(table):
    """Regions of two people left with the promise of fifteen."""
    protector = cv.CFK(k=2, reward="none").fit(table, model)
    answers = protector.explain(table.features.assign(pay=0), progress=fit_between(protector, table))
    assert answers.guarantee.k == 2 and answers.guarantee.refute(answers, table) is None
    assert protector.explain(table.features.assign(pay=0)).guarantee.k == 15


def test_the_ledger_is_told_of_the_groups_that_answered(table):
    """Answers of one grouping left while another one was recorded, and then those of that one as well."""
    protector = cv.CFK(k=2, ledger=cv.Ledger("people", epsilon=1)).fit(table, model)
    protector.explain(table.features.assign(pay=0), progress=fit_between(protector, table))
    with pytest.raises(cv.RefusedError):
        protector.explain(table.features.assign(pay=0))


@pytest.mark.parametrize("kind", [cv.Mondrian, cv.published.EqualHalvesMondrian])
def test_the_ledger_is_told_of_the_classes_that_left(table, monkeypatch, kind):
    protector = kind(k=2, ledger=cv.Ledger("people", epsilon=1)).fit(table)
    shuffled = ClassProtector._shuffled

    def fit_first(self, release):
        if self.k == 2:
            protector.set_params(k=15).fit(table)
        return shuffled(self, release)

    monkeypatch.setattr(ClassProtector, "_shuffled", fit_first)
    assert protector.protect().guarantee.k == 2
    with pytest.raises(cv.RefusedError):
        protector.protect()
