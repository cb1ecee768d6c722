"""What many answers cost together."""

from __future__ import annotations

import math

import numpy as np

from countervail.core.errors import bad_parameter


def composed_epsilon(epsilon: float, answers: int, delta: float = 1e-6) -> float:
    """The least epsilon that `answers` answers of `epsilon` each keep together with probability 1 - delta.

    Exact for the worst mechanism (Kairouz, Oh, Viswanath 2015): that of `answers` coins, each of which tells the
    truth e**epsilon times as often as not. Never more than the plain sum.

    Examples
    --------
    >>> round(composed_epsilon(0.1, 100), 1), round(composed_epsilon(1.0, 1000))
    (4.8, 591)
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise bad_parameter("composed_epsilon", "epsilon", "a number above 0", epsilon)
    if answers < 1:
        raise bad_parameter("composed_epsilon", "answers", "a whole number of at least 1", answers)
    if not 0 <= delta < 1:
        raise bad_parameter("composed_epsilon", "delta", "at least 0 and below 1", delta)
    low, high = 0.0, epsilon * answers
    if delta == 0:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(epsilon, answers, middle) <= delta else (middle, high)
    return high


def _delta(epsilon: float, answers: int, total: float) -> float:
    """The probability beyond `total`: sum of P(l) - e**total Q(l) over the outcomes where it is positive."""
    from scipy.stats import binom

    truths = np.arange(answers + 1)
    with np.errstate(divide="ignore"):
        log_p = binom.logpmf(truths, answers, 1 / (1 + math.exp(-epsilon)))
    gap = total - (2 * truths - answers) * epsilon  # log of e**total Q(l) / P(l)
    return float((np.exp(log_p) * -np.expm1(np.minimum(gap, 0.0))).sum())
