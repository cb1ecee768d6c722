"""PrivateSynthetic, audited at the level of rho: ours keeps it, and one control per precondition is caught."""

import numpy as np
import pandas as pd
import pytest
from synthetic_mechanisms import BROKEN, OURS, QUICK, SLOW

import countervail as cv
from countervail.core.errors import ParameterError
from countervail.core.guarantee.evidence import rho_bound
from countervail.core.rng import generator
from countervail.protect.dp.grid import Grid
from countervail.testing import audit_rho


def audited(name, mechanism, table, neighbour):
    training, draws = (400, 1_500) if name in SLOW else (20_000, 120_000) if name in QUICK else (5_000, 30_000)
    return audit_rho(mechanism, table, neighbour, training=training, draws=draws)


@pytest.mark.parametrize("name", list(OURS))
def test_ours_keep_their_rho(name):
    *what, claim = OURS[name]
    found = audited(name, *what)
    assert not found.refutes(claim)
    if name != "what the noisy total decides":  # hardly anything: the others must be heard, or passing means nothing
        assert found.rho > claim / 10


@pytest.mark.parametrize("name", list(BROKEN))
def test_broken_steps_are_caught(name):
    *what, claim = BROKEN[name]
    assert audited(name, *what).refutes(claim)


def test_a_grid_must_be_declared():
    frame = pd.DataFrame({"hours": [0, 4], "ok": ["no", "yes"]})
    with pytest.raises(cv.SchemaError, match="declare none"):
        Grid.of(cv.Table.from_frame(frame, target="ok"), "PrivateSynthetic")


def test_the_bound_on_rho_is_the_one_of_its_event():
    # By hand: an event of probabilities 0.8 and 0.2 has the divergence below at order one, and less rho beyond it.
    rng = generator(5)
    sides = tuple((rng.random(50_000) < p).astype(np.int64) for p in (0.8, 0.2))
    kl = 0.8 * np.log(4) + 0.2 * np.log(0.25)
    found = rho_bound(sides, sides, alpha=1e-6)
    assert 0.9 * kl < found.rho <= kl * 1.01 and found.forward and found.hits > found.misses
    assert rho_bound((sides[0], sides[0]), (sides[0], sides[0])).rho == 0.0


def test_bad_questions_about_rho_are_refused():
    for bad, words in (({"draws": 0}, "'draws' parameter of audit_rho"), ({"alpha": 1}, "'alpha' parameter")):
        with pytest.raises(ParameterError, match=words):
            audit_rho(lambda t, n: np.zeros(n), 0, 1, **bad)
