"""PrivateSynthetic, audited at the level of rho: ours keeps it, and one control per precondition is caught."""

import numpy as np
import pandas as pd
import pytest
from noise_meter import SPENT, UnpaidTotal
from one_run_mechanisms import DELTA, EPSILON, ONE_RUN, ONE_RUN_BROKEN
from scipy.stats import binom
from synthetic_mechanisms import BROKEN, OURS, QUICK, SLOW

import countervail as cv
from countervail.core.errors import ParameterError
from countervail.core.guarantee.composition import zcdp_rho
from countervail.core.guarantee.evidence import rho_bound
from countervail.core.guarantee.one_run import one_run_bound, one_run_chance
from countervail.core.rng import generator
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.synthetic.accounting import NoiseBudget
from countervail.testing import audit_one_run, audit_rho


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


@pytest.mark.parametrize("name", list(SPENT))
def test_the_noise_that_is_really_drawn_costs_what_was_promised(name):
    spent, promised = SPENT[name](NoiseBudget)
    assert 0.9 * promised < spent <= promised


@pytest.mark.parametrize("name", list(SPENT))
def test_a_total_that_nobody_pays_for_is_caught(name):
    # One hundredth of the budget: too little for any audit of outcomes, and the sum of what was paid looks right.
    spent, promised = SPENT[name](UnpaidTotal)
    assert spent > promised * 1.005


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


def once(mechanism, canaries, guesses, delta):
    return audit_one_run(mechanism, canaries, guesses=guesses, delta=delta, alpha=1e-3)


@pytest.mark.parametrize("name", list(ONE_RUN))
def test_one_run_of_ours_keeps_its_epsilon(name):
    found = once(*ONE_RUN[name])
    assert not found.refutes(EPSILON) and not found.refutes_rho(zcdp_rho(EPSILON, DELTA))


@pytest.mark.parametrize("name", list(ONE_RUN_BROKEN))
def test_one_run_of_a_broken_one_is_enough(name):
    found = once(*ONE_RUN_BROKEN[name])
    assert found.refutes(EPSILON) and found.refutes_rho(zcdp_rho(EPSILON, DELTA))


def slow_chance(canaries, guesses, right, epsilon, delta):
    """Theorem 5.2 term by term, every sum written out."""
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    at_least = [sum(binom.pmf(k, guesses, truth) for k in range(max(v, 0), guesses + 1)) for v in range(right + 1)]
    worst = max((at_least[right - i] - at_least[right]) / i for i in range(1, right + 1))
    return min(at_least[right] + 2 * canaries * delta * worst, 1.0)


@pytest.mark.parametrize(
    ("guesses", "right", "epsilon", "delta"), [(20, 19, 1.0, 0.0), (30, 24, 0.5, 1e-3), (8, 8, 2, 1e-2)]
)
def test_the_chance_of_right_guesses_is_that_of_the_theorem(guesses, right, epsilon, delta):
    slow = slow_chance(40, guesses, right, epsilon, delta)
    assert one_run_chance(40, guesses, right, epsilon, delta) == pytest.approx(slow, rel=1e-9)


def test_guesses_prove_more_the_more_are_right_and_nothing_by_chance():
    found = [one_run_bound(100, 50, right, delta=1e-5).epsilon for right in (25, 40, 45, 50)]
    assert found[0] == 0 and found == sorted(found) and found[-1] > found[-2] > 0
    # By hand: 50 right ones of 50 prove q where q**50 = 0.01.
    q = 0.01 ** (1 / 50)
    assert one_run_bound(100, 50, 50).epsilon == pytest.approx(np.log(q / (1 - q)))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"canaries": 1}, "'canaries' parameter of audit_one_run"),
        ({"guesses": 101}, "'guesses' parameter"),
        ({"alpha": 0}, "'alpha' parameter"),
        ({"delta": 1}, "'delta' parameter"),
        ({"mechanism": lambda included: included[:5]}, "'mechanism' parameter"),
    ],
)
def test_bad_questions_about_one_run_are_refused(bad, words):
    with pytest.raises(ParameterError, match=words):
        audit_one_run(**{"mechanism": lambda included: included, "canaries": 100, **bad})
