"""A linear support vector machine with noisy weights, and how sure a row's side of it is."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import betainc
from scipy.stats import gamma

from countervail.core.arrays import Floats

_BEND = 0.5  # from 1 - this to 1 + this the hinge is a parabola
_LENGTHS = 4000  # lengths of noise that a quantile is averaged over


def least_weights(points: Floats, sides: Floats, ridge: float) -> Floats:
    """The weights w with the least mean loss plus ridge |w|^2 / 2; a smooth hinge of slope at most 1."""

    def objective(w: Floats) -> tuple[float, Floats]:
        margin = sides * (points @ w)
        gap = 1 + _BEND - margin
        bent, straight = (gap > 0) & (gap <= 2 * _BEND), gap > 2 * _BEND
        loss = np.where(straight, 1 - margin, np.where(bent, gap**2 / (4 * _BEND), 0.0)).mean()
        slope = np.where(straight, -1.0, np.where(bent, -gap / (2 * _BEND), 0.0))
        return float(loss + ridge * (w @ w) / 2), points.T @ (slope * sides) / len(points) + ridge * w

    start = np.zeros(points.shape[1])
    found: Floats = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}).x
    return found


def weight_reach(rows: int, ridge: float) -> float:
    """How far another record in one's place moves the weights, for points of length 1 at most and so many rows."""
    return 2 / (rows * ridge)


def noisy(weights: Floats, scale: float, rng: np.random.Generator) -> Floats:
    """Weights with noise of a density that falls with exp(-length / scale)."""
    direction = rng.normal(size=weights.shape)
    length = rng.gamma(len(weights), scale)
    out: Floats = weights + length * direction / np.linalg.norm(direction)
    return out


def noise_quantile(coordinates: int, scale: float, confidence: float) -> float:
    """What the noise along any one direction stays below with this confidence, for a direction of length 1.

    Examples
    --------
    >>> round(noise_quantile(1, 1.0, 0.95), 2), round(float(np.log(10)), 2)  # of one coordinate, Laplace's
    (2.3, 2.3)
    """
    lengths = gamma.ppf((np.arange(_LENGTHS) + 0.5) / _LENGTHS, coordinates)

    def above(q: float) -> float:
        cosine = np.minimum(q / lengths, 1.0)
        if coordinates == 1:
            return float((cosine < 1).mean() / 2)
        return float(betainc((coordinates - 1) / 2, 0.5, 1 - cosine**2).mean() / 2)

    return scale * float(brentq(lambda q: above(q) - (1 - confidence), 0.0, lengths[-1], xtol=1e-9))
