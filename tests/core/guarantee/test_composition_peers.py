"""Composition beside dp-accounting, on a grid."""

import math

import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st

from countervail.core.guarantee.composition import composed_epsilon, most_answers, plan_epsilon, zcdp_epsilon, zcdp_rho

STEP = 1e-3
EPSILONS = st.sampled_from([0.05, 0.1, 0.5, 1.0])
PLANS = st.dictionaries(EPSILONS, st.integers(1, 12), min_size=1, max_size=3)


def peer(plan, delta):
    """dp-accounting: the privacy loss distributions of pure answers, composed."""
    total = None
    for epsilon, answers in plan.items():
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon), value_discretization_interval=STEP
        ).self_compose(answers)
        total = one if total is None else total.compose(one)
    return total.get_epsilon_for_delta(delta)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("answers", [1, 10, 100])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_equal_answers_agree(epsilon, answers, delta):
    # Multiples of the step: the peer's rounding adds nothing but the last digits.
    assert composed_epsilon(epsilon, answers, delta) == pytest.approx(peer({epsilon: answers}, delta), abs=2e-3)


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(
    "plan", [{0.1: 20, 1.0: 2}, {0.05: 30, 0.2: 10, 0.5: 4}, {0.01: 100, 0.1: 100, 0.3: 200}], ids=str
)
def test_different_answers_agree(plan, delta):
    # The last plan has more outcomes than are listed: ours is rounded up there.
    ours, theirs = plan_epsilon(plan, delta), peer(plan, delta)
    assert theirs - 2e-3 <= ours <= theirs + 1e-2


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("rho", [0.005, 0.1, 0.5, 5.0])
def test_zcdp_agrees(rho, delta):
    orders = [1 + math.exp(x / 20) for x in range(-100, 200)]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, [rho * a for a in orders], delta)
    assert theirs * (1 - 1e-3) - 1e-6 <= zcdp_epsilon(rho, delta) <= theirs + 1e-9


@settings(max_examples=30)
@given(PLANS, EPSILONS, st.sampled_from([0.01, 1e-4, 1e-6]))
def test_one_more_answer_never_costs_less(plan, more, delta):
    larger = plan | {more: plan.get(more, 0) + 1}
    assert plan_epsilon(plan, delta) <= plan_epsilon(larger, delta) + 1e-9


@settings(max_examples=30)
@given(PLANS, st.sampled_from([0.01, 1e-4, 1e-6]))
def test_the_order_of_a_plan_does_not_matter_and_the_sum_is_an_upper_bound(plan, delta):
    turned = dict(reversed(plan.items()))
    assert plan_epsilon(plan, delta) == plan_epsilon(turned, delta) <= plan_epsilon(plan, 0.0)
    assert plan_epsilon(plan, delta / 10) >= plan_epsilon(plan, delta)


@pytest.mark.parametrize(("each", "total", "delta"), [(0.1, 4.0, 1e-6), (0.01, 1.0, 1e-6), (0.5, 2.0, 0.0)])
def test_as_many_answers_as_fit_and_no_more(each, total, delta):
    most = most_answers(each, total, delta)
    assert composed_epsilon(each, most, delta) <= total < composed_epsilon(each, most + 1, delta)


@given(st.floats(0.01, 20.0), st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_rho_is_the_greatest_that_keeps_epsilon(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon < zcdp_epsilon(rho * 1.001 + 1e-12, delta)
