"""Intervals for shares and means, Holm's correction, and figures as JSON: no interval, no headline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

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


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise bad_parameter("an interval", "level", "strictly between 0 and 1", level)
