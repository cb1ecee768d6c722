"""What many answers cost together."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from countervail.core.arrays import Floats
from countervail.core.errors import bad_parameter

MOST_ANSWERS = 1 << 22  # answers of a plan: more would not fit in memory while they are summed
_EXACT = 1 << 20  # combinations of outcomes that are listed one by one
_BINS = 1 << 16  # beyond that, losses are rounded up to as many steps
_SLACK = 1e-13  # more than rounding can take off a sum of probabilities


def composed_epsilon(epsilon: float, answers: int, delta: float = 1e-6) -> float:
    """The least epsilon that `answers` answers of `epsilon` each keep together, at this delta.

    Exact for the worst mechanism (Kairouz, Oh, Viswanath 2015): that of `answers` coins, each of which tells the
    truth e**epsilon times as often as not. Never more than the plain sum.

    Examples
    --------
    >>> round(composed_epsilon(0.1, 100), 1), round(composed_epsilon(1.0, 1000))
    (4.8, 591)
    """
    return plan_epsilon({epsilon: answers}, delta, "composed_epsilon")


def plan_epsilon(plan: Mapping[float, int], delta: float = 1e-6, owner: str = "plan_epsilon") -> float:
    """The least epsilon of a plan of answers, epsilon to number: exact, or rounded up where outcomes are too many.

    Examples
    --------
    >>> round(plan_epsilon({0.1: 100, 1.0: 1}), 2), plan_epsilon({0.1: 5, 1.0: 1}, 0.0)
    (5.72, 1.5)
    """
    for epsilon, answers in plan.items():
        if not 0 < epsilon <= sys.float_info.max:
            raise bad_parameter(owner, "epsilon", "a number above 0", epsilon)
        if answers < 1:
            raise bad_parameter(owner, "answers", "a whole number of at least 1", answers)
    if sum(plan.values()) > MOST_ANSWERS:
        raise bad_parameter(owner, "answers", f"at most {MOST_ANSWERS:,}", sum(plan.values()))
    if not 0 <= delta < 1:
        raise bad_parameter(owner, "delta", "at least 0 and below 1", delta)
    high = math.fsum(epsilon * answers for epsilon, answers in plan.items())
    if delta == 0 or not plan:
        return high
    low, (loss, p) = 0.0, _losses(plan)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _beyond(loss, p, middle) <= delta else (middle, high)
    return high


def most_answers(epsilon: float, total: float, delta: float) -> int:
    """How many answers of `epsilon` each fit into (total, delta) at most, by optimal composition; up to 4 million.

    Examples
    --------
    >>> most_answers(0.1, 4.0, 1e-6), most_answers(0.5, 2.0, 0.0)
    (74, 4)
    """

    each, room = decimal(epsilon), decimal(total)

    def fit(answers: int) -> bool:
        return answers * each <= room or (delta > 0 and _beyond(*_losses({epsilon: answers}), total) <= delta)

    low, high = 0, 1
    while high < MOST_ANSWERS and fit(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low


def zcdp_epsilon(rho: float, delta: float) -> float:
    """An epsilon that rho-zCDP keeps at this delta (Canonne, Kamath, Steinke 2020).

    Every order gives a valid epsilon, so a search that misses the best one errs upwards only.

    Examples
    --------
    >>> round(zcdp_epsilon(0.5, 1e-6), 2)
    5.22
    """
    if not 0 <= rho <= sys.float_info.max:
        raise bad_parameter("zcdp_epsilon", "rho", "a number of at least 0", rho)
    if not 0 < delta < 1:
        raise bad_parameter("zcdp_epsilon", "delta", "above 0 and below 1", delta)
    if rho == 0:
        return 0.0
    steps = np.linspace(-12.0, 16.0, 2801)
    for _ in range(3):
        at = int(np.argmin(_zcdp_at(steps, rho, delta)))
        steps = np.linspace(steps[max(at - 1, 0)], steps[min(at + 1, len(steps) - 1)], 201)
    return max(float(_zcdp_at(steps, rho, delta).min()), 0.0)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The greatest rho whose :func:`zcdp_epsilon` is at most `epsilon`."""
    low, high = 0.0, 1.0
    while zcdp_epsilon(high, delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


def decimal(number: float) -> Fraction:
    """A number as the decimal it is written as: ten times 0.1 is one."""
    return Fraction(repr(float(number)))


def _zcdp_at(steps: Floats, rho: float, delta: float) -> Floats:
    beyond = np.exp(steps)  # the order less one
    order = 1 + beyond
    found: Floats = order * rho - (math.log(delta) + np.log(order)) / beyond + np.log(beyond / order)
    return found


def _losses(plan: Mapping[float, int]) -> tuple[Floats, Floats]:
    """What the coins of a plan give away, and how likely that is when they tell the truth."""
    parts = [_coins(epsilon, answers) for epsilon, answers in sorted(plan.items())]
    if math.prod(len(loss) for loss, _ in parts) > _EXACT:
        return _rounded(parts)
    loss, p = np.zeros(1), np.ones(1)
    for more, q in parts:
        loss, p = np.add.outer(loss, more).ravel(), np.multiply.outer(p, q).ravel()
    return loss, p


def _coins(epsilon: float, answers: int) -> tuple[Floats, Floats]:
    from scipy.stats import binom

    truths = np.arange(answers + 1)
    with np.errstate(divide="ignore"):
        log_p = binom.logpmf(truths, answers, 1 / (1 + math.exp(-epsilon)))
    # Logarithms of large binomials lose digits: a little more than the whole probability, never less.
    return ((2 * truths - answers) * epsilon).astype(np.float64), np.exp(log_p) * (1 + 1e-8)


def _rounded(parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The sum of several losses, each rounded up to a common step: what it says about delta is never too little."""
    if len(parts) == 1:
        return parts[0]
    from scipy.signal import fftconvolve

    step = sum(float(loss[-1]) - float(loss[0]) for loss, _ in parts) / _BINS
    start = 0
    p: Floats = np.ones(1)
    for loss, q in parts:
        place = np.ceil(loss / step).astype(np.int64)
        start += int(place[0])
        p = np.maximum(fftconvolve(p, np.bincount(place - place[0], weights=q)), 0.0)
    # One more outcome, beyond any total: more likely than what rounding may have taken off the others.
    losses: Floats = np.append((start + np.arange(len(p))) * step, np.inf)
    return losses, np.append(p, _SLACK)


def _beyond(loss: Floats, p: Floats, total: float) -> float:
    """The probability beyond `total`: sum of P - e**total Q over the outcomes where it is positive."""
    return float((p * -np.expm1(np.minimum(total - loss, 0.0))).sum())
