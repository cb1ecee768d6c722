"""The statistical audit: ours keep epsilon = 1 within what 100,000 draws can tell; broken ones are all caught."""

import numpy as np
import pytest
from dp_controls import CONTROLS
from dp_mechanisms import histograms, ours, pairs

from countervail.core.errors import ParameterError
from countervail.core.rng import generator
from countervail.testing import audit_epsilon

OURS = ours(1.0)


@pytest.mark.parametrize("name", list(OURS))
def test_ours_keep_their_epsilon(name):
    make, unequal = OURS[name]
    found = {label: audit_epsilon(make(pair), *pair) for label, pair in pairs(unequal=unequal).items()}
    assert not {label: str(e) for label, e in found.items() if e.refutes(1.0)}


@pytest.mark.parametrize("name", ["no candidate (replace-one)", "nearest removed (add-remove)"])
def test_histograms_keep_their_epsilon(name):
    mechanism, pair = histograms(1.0)[name]
    found = audit_epsilon(mechanism, *pair, training=5_000, draws=20_000)
    assert not found.refutes(1.0), str(found)


@pytest.mark.parametrize("name", list(CONTROLS))
def test_broken_mechanisms_are_caught(name):
    mechanism, table, neighbour, claim = CONTROLS[name]
    found = audit_epsilon(mechanism, table, neighbour)
    assert found.refutes(claim), str(found)


def test_the_audit_has_power():
    # Randomised response at epsilon 1 must be seen at almost 1, or passing would mean nothing.
    kept = np.e / (1 + np.e)
    rng = generator(0)
    found = audit_epsilon(lambda bit, n: bit ^ (rng.random(n) >= kept), 0, 1)
    assert 0.95 < found.epsilon <= 1.0 and found.hits > found.misses and "epsilon >= 0.9" in str(found)


def test_the_audit_sees_the_direction_in_which_the_loss_lies():
    # The neighbour alone can say 1: only from there does the ratio grow without bound.
    rng = generator(0)
    found = audit_epsilon(lambda t, n: (rng.random(n) < 0.1) & (t == 1), 0, 1)
    assert found.epsilon > 5 and not found.forward


def test_the_audit_allows_for_delta():
    # A mechanism that fails openly once in a hundred times is (0, 0.01)-private.
    rng = generator(0)
    found = audit_epsilon(lambda t, n: np.where(rng.random(n) < 0.01, 1 + t, 0), 0, 1, delta=0.01)
    assert found.epsilon < 0.01


def test_outcomes_may_be_anything_hashable():
    assert audit_epsilon(lambda t, n: [("row", t)] * n, "a", "b", training=50, draws=500).epsilon > 3
    rows = audit_epsilon(lambda t, n: np.full((n, 2), t), 0, 1, training=50, draws=500)
    assert rows.epsilon > 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"draws": 0}, "'draws' parameter of audit_epsilon"),
        ({"alpha": 0}, "'alpha' parameter"),
        ({"delta": 1}, "'delta' parameter"),
        ({"mechanism": lambda t, n: [0]}, "gives n outcomes"),
    ],
)
def test_bad_questions_are_refused(change, words):
    given = {"mechanism": lambda t, n: np.zeros(n), "table": 0, "neighbour": 1} | change
    with pytest.raises(ParameterError, match=words):
        audit_epsilon(**given)
