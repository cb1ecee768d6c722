"""Small batches are asked about in one thread; large ones, and what comes after, as before."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import ThreadpoolController

import countervail as cv
from countervail.model.decision import one_thread
from countervail.testing import small_table


@pytest.fixture(autouse=True)
def _two_threads():
    with ThreadpoolController().select(user_api="openmp").limit(limits=2):
        yield


def test_few_rows_are_asked_about_in_one_thread_and_many_in_all():
    with one_thread(object(), 10):
        assert _openmp_effective_n_threads() == 1
    assert _openmp_effective_n_threads() == 2
    with one_thread(object(), 10**6):
        assert _openmp_effective_n_threads() == 2


def test_whoever_fails_in_there_leaves_the_threads_as_they_were():
    with pytest.raises(ZeroDivisionError), one_thread(object(), 1):
        raise ZeroDivisionError
    assert _openmp_effective_n_threads() == 2


def test_a_model_is_asked_in_one_thread_and_answers_stay_what_they_were():
    table, seen = small_table(), []

    class Watched(HistGradientBoostingClassifier):
        def predict(self, X):
            seen.append(_openmp_effective_n_threads())
            return super().predict(X)

    numbers = [c.name for c in table.schema if c.name in table.schema.features and c.numeric]
    inner = Watched(max_iter=5).fit(table.frame[numbers], table.target)

    def model(rows):
        return inner.predict(rows[numbers])

    answers = cv.NICE().fit(table, model).explain(small_table(6, seed=1))
    assert set(seen) == {1}
    found = answers.counterfactuals[answers.found]
    assert (np.asarray(inner.predict(found[numbers])) == answers.after[answers.found].to_numpy()).all()
