"""Intervals for shares and means, Holm's correction, and figures as JSON: no interval, no headline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from countervail.core.errors import bad_parameter


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its confidence interval and the number of cases behind it."""

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}] (n={self.n})"

    def to_dict(self) -> dict[str, float | None]:
        """The estimate as plain JSON data; what is not finite is left open."""
        return plain_json(self)


def plain_json(record: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON data, through and through; what is not finite is left open (None).

    Examples
    --------
    >>> plain_json(Estimate(0.5, float("-inf"), float("inf"), 1))
    {'value': 0.5, 'low': None, 'high': None, 'n': 1, 'level': 0.95}
    """
    return {f.name: plain_value(getattr(record, f.name)) for f in fields(record)}


def plain_value(value: Any) -> Any:
    """A value as JSON data: numbers of numpy as Python's, missing and infinite ones as None, the rest as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return plain_json(value)
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else str(plain_value(k)): plain_value(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist())
    if isinstance(value, Set):
        return [plain_value(v) for v in sorted(value, key=str)]
    if isinstance(value, Sequence):
        return [plain_value(v) for v in value]
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else str(value)


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> Estimate:
    """Share of `hits` among `n` with its exact binomial interval.

    Examples
    --------
    >>> print(clopper_pearson(0, 10))
    0 [0, 0.308] (n=10)
    """
    if not 0 <= hits <= n:
        raise bad_parameter("clopper_pearson", "hits", f"between 0 and n={n}", hits)
    _check_level(level)
    if n == 0:
        return Estimate(float("nan"), 0.0, 1.0, 0, level)
    from scipy.stats import beta

    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, n - hits + 1))
    high = 1.0 if hits == n else float(beta.ppf(1 - tail, hits + 1, n - hits))
    return Estimate(hits / n, low, high, n, level)


def mean_interval(values: ArrayLike, level: float = 0.95) -> Estimate:
    """Mean of the finite `values` with Student's interval."""
    _check_level(level)
    x = np.asarray(values, dtype=float)
    x = x[np.isfinite(x)]
    if len(x) == 0:
        return Estimate(float("nan"), float("nan"), float("nan"), 0, level)
    mean = float(x.mean())
    if len(x) == 1:
        return Estimate(mean, float("-inf"), float("inf"), 1, level)
    from scipy.stats import t

    half = float(t.ppf((1 + level) / 2, len(x) - 1)) * float(x.std(ddof=1)) / float(np.sqrt(len(x)))
    return Estimate(mean, mean - half, mean + half, len(x), level)


def difference_interval(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Estimate:
    """Mean of `a` minus mean of `b` with Welch's interval; infinite where either has fewer than two values."""
    _check_level(level)
    x, y = (v[np.isfinite(v)] for v in (np.asarray(a, dtype=float), np.asarray(b, dtype=float)))
    n = len(x) + len(y)
    if not len(x) or not len(y):
        return Estimate(float("nan"), float("nan"), float("nan"), n, level)
    gap = float(x.mean() - y.mean())
    if min(len(x), len(y)) < 2:
        return Estimate(gap, float("-inf"), float("inf"), n, level)
    from scipy.stats import t

    u, v = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    if u + v == 0:
        return Estimate(gap, gap, gap, n, level)
    freedom = (u + v) ** 2 / (u**2 / (len(x) - 1) + v**2 / (len(y) - 1))
    half = float(t.ppf((1 + level) / 2, freedom)) * float(np.sqrt(u + v))
    return Estimate(gap, gap - half, gap + half, n, level)


def excess_interval(hits: int, n: int, hits_control: int, n_control: int, level: float = 0.95) -> Estimate:
    """Success beyond that on controls, (r - r_control) / (1 - r_control), with its score interval.

    It is one minus the ratio of the two rates of failure; the interval inverts the score test of that ratio
    (Koopman 1984). Without controls it is the rate itself, and its exact interval.

    Examples
    --------
    >>> print(excess_interval(50, 100, 0, 100))
    0.5 [0.404, 0.596] (n=200)
    """
    _check_counts(hits, n, hits_control, n_control)
    _check_level(level)
    if n_control == 0 or n == 0:
        return clopper_pearson(hits, n, level)
    failed, spared = n - hits, n_control - hits_control
    if spared == 0:  # everybody is found among the controls too: nothing is left that could be beyond
        return Estimate(0.0, -math.inf, 1.0 if failed == 0 else 0.0, n + n_control, level)
    ratio = (failed / n) / (spared / n_control)
    low, high = _between(ratio, failed, lambda r: _score(r, failed, n, spared, n_control), level)
    return Estimate(1 - ratio, 1 - high, 1 - low, n + n_control, level)


def paired_excess_interval(hits: int, hits_control: int, both_failed: int, n: int, level: float = 0.95) -> Estimate:
    """The same where both tried the same n cases, and failed together on some: the score interval of that ratio.

    Nam and Blackwelder 2002; Tang, Tang and Chan 2003.

    Examples
    --------
    >>> print(paired_excess_interval(90, 80, 10, 100))  # apart: 0.5 [0.007, 0.751]
    0.5 [0.299, 0.701] (n=200)
    """
    _check_counts(hits, n, hits_control, n)
    _check_level(level)
    failed, spared = n - hits, n - hits_control
    if not max(0, failed + spared - n) <= both_failed <= min(failed, spared):
        must = f"what {failed} and {spared} of {n} can have in common"
        raise bad_parameter("an excess", "both_failed", must, both_failed)
    if spared == 0:
        return Estimate(0.0, -math.inf, 1.0 if failed == 0 else 0.0, 2 * n, level)
    ratio = failed / spared
    low, high = _between(ratio, failed, lambda r: _paired_score(r, both_failed, failed, spared), level)
    return Estimate(1 - ratio, 1 - high, 1 - low, 2 * n, level)


def _between(ratio: float, failed: int, score: Callable[[float], float], level: float) -> tuple[float, float]:
    """The ratios that a score test does not refuse."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    limit = float(norm.ppf((1 + level) / 2))

    def beyond(log_ratio: float, side: float) -> float:
        return score(math.exp(log_ratio)) - side * limit

    far, centre = 40.0, math.log(max(ratio, 1e-12))
    low = 0.0 if failed == 0 else math.exp(brentq(beyond, centre - far, centre, args=(1.0,)))
    return low, math.exp(brentq(beyond, centre, centre + far, args=(-1.0,)))


def excess_p_value(
    hits: int, n: int, hits_control: int, n_control: int, threshold: float, side: Literal["above", "below"]
) -> float:
    """One-sided p-value of the score test: small where the excess is shown to lie above, or below, the threshold.

    It is corrected for continuity: a battery of many such tests keeps its level.

    Examples
    --------
    >>> excess_p_value(50, 100, 0, 100, 0.1, "above") < 0.001 < 0.99 < excess_p_value(50, 100, 0, 100, 0.1, "below")
    True
    """
    _check_counts(hits, n, hits_control, n_control)
    if not 0 <= threshold <= 1:
        raise bad_parameter("excess_p_value", "threshold", "between 0 and 1", threshold)
    if n == 0 or (n_control and hits_control == n_control):
        return 1.0
    if n_control == 0:
        from scipy.stats import binom

        upper = float(binom.sf(hits - 1, n, threshold))
        return upper if side == "above" else float(binom.cdf(hits, n, threshold))
    if threshold == 1:
        return 1.0 if side == "above" else 0.0
    half = 0.5 * (1 / n + (1 - threshold) / n_control)
    z = _score(1 - threshold, n - hits, n, n_control - hits_control, n_control, half if side == "above" else -half)
    return 0.5 * math.erfc((-z if side == "above" else z) / math.sqrt(2))


def _score(ratio: float, x: int, n: int, y: int, m: int, shift: float = 0.0) -> float:
    """The score statistic of "x of n is `ratio` times as frequent as y of m" (Miettinen & Nurminen 1985)."""
    a, b, c = (n + m) * ratio, -(n * ratio + x + m + y * ratio), x + y
    q = min((-b - math.sqrt(max(b * b - 4 * a * c, 0.0))) / (2 * a), 1.0)  # the likeliest rate behind y of m
    p = min(ratio * q, 1.0)
    variance = p * (1 - p) / n + ratio * ratio * q * (1 - q) / m
    gap = x / n - ratio * y / m + shift
    if variance <= 0:
        return 0.0 if gap == 0 else math.copysign(math.inf, gap)
    return gap / math.sqrt(variance)


def _paired_score(ratio: float, both: int, x: int, y: int) -> float:
    """The score statistic of "x is `ratio` times as frequent as y" where `both` happened in so many of the cases."""
    other, either = y - both, x + y - both  # only the second; the first or the second or both
    a, b, c = either * (1 + ratio), ratio * ratio * y - (x + 2 * other), other * (1 - ratio)
    q = (-b + math.sqrt(max(b * b - 4 * a * c, 0.0))) / (2 * a)  # the likeliest share of `other` among `either`
    variance = either * ((ratio - 1) + (1 + ratio) * q)
    gap = x - ratio * y
    if variance <= 1e-9 * either:
        return 0.0 if abs(gap) <= 1e-9 * either else math.copysign(math.inf, gap)
    return gap / math.sqrt(variance)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of a battery of tests (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    if p.size and not np.all((p >= 0) & (p <= 1)):
        raise bad_parameter("holm", "p_values", "probabilities between 0 and 1", "others")
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    out = np.empty(len(p))
    out[order] = np.minimum(adjusted, 1.0)
    return [float(v) for v in out]


def _check_counts(hits: int, n: int, hits_control: int, n_control: int) -> None:
    if not (0 <= hits <= n and 0 <= hits_control <= n_control):
        raise bad_parameter("an excess", "hits", f"between 0 and n={n} ({n_control} controls)", (hits, hits_control))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise bad_parameter("an interval", "level", "strictly between 0 and 1", level)
