"""What many answers cost: the specification's figures, and an independent computation."""

import math
from itertools import product

import pytest

from countervail import DifferentialPrivacy, NoGuarantee
from countervail.core.errors import ParameterError
from countervail.core.guarantee import guarantee_from_dict
from countervail.core.guarantee.composition import composed_epsilon


@pytest.mark.parametrize(
    ("epsilon", "hundred", "thousand"),
    # Specification: total epsilon at delta = 1e-6 for 100 and 1,000 queries.
    [(0.01, 0.40, 1.37), (0.1, 4.8, 19.3), (1.0, 83.5, 591)],
)
def test_the_specified_totals_come_out(epsilon, hundred, thousand):
    assert composed_epsilon(epsilon, 100) == pytest.approx(hundred, rel=0.02)
    assert composed_epsilon(epsilon, 1000) == pytest.approx(thousand, rel=0.005)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_five_coins_by_hand(epsilon):
    # Every sequence of truths and lies, without binomials.
    total = composed_epsilon(epsilon, 5, 0.01)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    beyond = 0.0
    for told in product((True, False), repeat=5):
        p = math.prod(truth if t else 1 - truth for t in told)
        q = math.prod(1 - truth if t else truth for t in told)
        beyond += max(p - math.exp(total) * q, 0.0)
    assert beyond == pytest.approx(0.01, rel=1e-6)


def test_without_delta_budgets_add_up():
    assert composed_epsilon(0.5, 7, 0.0) == 3.5
    assert composed_epsilon(0.5, 1, 1e-6) <= 0.5


@pytest.mark.parametrize(("epsilon", "answers", "delta"), [(0, 1, 0.1), (math.nan, 1, 0.1), (1, 0, 0.1), (1, 1, 1.0)])
def test_bad_questions_are_refused(epsilon, answers, delta):
    with pytest.raises(ParameterError, match="composed_epsilon"):
        composed_epsilon(epsilon, answers, delta)


def test_a_promise_says_all_that_belongs_to_it():
    promise = DifferentialPrivacy(0.5, page="docs/decisions/dp-neighbours.md").over(10)
    assert promise.total == 5.0
    text = str(promise)
    for words in (
        "epsilon = 0.5 for each answer",
        "10 answers, 5 in total",
        "given a public model",
        "dp-neighbours.md",
    ):
        assert words in text
    once = DifferentialPrivacy(2.0, None, "replace-one")
    assert once.over(10) == once and "any number of answers" in str(once) and "number of records is public" in str(once)
    assert NoGuarantee("x").over(3) == NoGuarantee("x")


def test_a_promise_round_trips():
    promise = DifferentialPrivacy(0.5, 3, "add-remove", "page.md")
    assert guarantee_from_dict(promise.to_dict()) == promise


@pytest.mark.parametrize("change", [{"epsilon": 0.0}, {"epsilon": math.nan}, {"adjacency": "none"}])
def test_a_promise_must_make_sense(change):
    with pytest.raises(ParameterError, match="DifferentialPrivacy"):
        DifferentialPrivacy(**({"epsilon": 1.0} | change))
