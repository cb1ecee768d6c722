"""A promise is read from parameters: once these have changed, it is no longer about what was fitted."""

import pickle

import pytest

import countervail as cv
from countervail.testing import small_model, small_table

TABLE = small_table(80)
EXPLAINERS = [
    cv.PrivateSynthetic(50.0, rows=50, random_state=0),
    cv.PrivateHistograms(50.0, records=20, random_state=0),
    cv.PrivateNeighbours(50.0, neighbours=3, random_state=0),
    cv.NoisyCounterfactual(50.0, random_state=0),
    cv.DPTableExplainer(50.0, random_state=0),
    cv.CFK(k=3),
]
TABLES = [cv.DPTable(50.0, random_state=0), cv.Mondrian(k=3), cv.Microaggregation(k=3), cv.KCommonPatterns(k=3)]
EVERY = [*EXPLAINERS, *TABLES]


def fitted(protector):
    protector = pickle.loads(pickle.dumps(protector))
    return (
        protector.fit(TABLE, small_model)
        if isinstance(protector, tuple(map(type, EXPLAINERS)))
        else protector.fit(TABLE)
    )


def better(protector):
    """What somebody would like to read instead."""
    return {"k": 70} if hasattr(protector, "k") else {"epsilon": 0.01, "random_state": None}


@pytest.mark.parametrize("protector", EVERY, ids=lambda p: type(p).__name__)
def test_the_promise_of_a_fit_is_not_restated_with_other_parameters(protector):
    made = fitted(protector)
    before = made.guarantee()
    was = {name: getattr(made, name) for name in better(made)}
    made.set_params(**better(made))
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        made.guarantee()
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        pickle.loads(pickle.dumps(made)).guarantee()
    assert made.set_params(**was).guarantee() == before


@pytest.mark.parametrize("protector", EVERY, ids=lambda p: type(p).__name__)
def test_before_a_fit_the_promise_follows_the_parameters(protector):
    made = pickle.loads(pickle.dumps(protector)).set_params(**better(protector))
    assert not isinstance(made.guarantee(), cv.NoGuarantee)


@pytest.mark.parametrize("protector", EXPLAINERS[:5], ids=lambda p: type(p).__name__)
def test_a_fit_that_fails_leaves_the_promise_of_the_parameters(protector):
    made = fitted(protector).set_params(epsilon=2.0, random_state=None)
    with pytest.raises(cv.ParameterError):
        made.fit("no table", small_model)
    assert made.guarantee().epsilon == 2.0


def test_answers_of_a_noisy_table_are_not_promised_with_other_parameters():
    made = fitted(cv.DPTable(50.0)).set_params(epsilon=0.01)
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        made.answers_guarantee()
