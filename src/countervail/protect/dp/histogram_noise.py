"""Noisy counts by OpenDP. This is the one place where its feature switch is turned on."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log
from typing import Any

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.rng import RandomState, generator


def noisy_counts(counts: Ints, sensitivity: int, epsilon: Fraction, random_state: RandomState = None) -> Ints:
    """Counts with discrete Laplace noise; `sensitivity` is how far one record can move them (L1)."""
    if random_state is not None:
        return counts + _seeded_noise(counts.shape, sensitivity, epsilon, random_state)
    measurement, spent = _laplace(sensitivity, epsilon)
    if Fraction(spent) > epsilon:
        raise AssertionError("OpenDP accounts for more than this feature may spend")
    out: Ints = np.array(measurement(counts.ravel().tolist()), dtype=np.int64).reshape(counts.shape)
    return out


def _laplace(sensitivity: int, epsilon: Fraction) -> tuple[Any, float]:
    """OpenDP's measurement, and the epsilon that OpenDP itself accounts for."""
    import opendp.prelude as dp

    dp.enable_features("contrib")  # measurements whose proofs are written but not yet vetted by OpenDP
    scale = float(sensitivity / epsilon) * (1 + 1e-12)  # rounded up, so that the float costs no epsilon
    domain = dp.vector_domain(dp.atom_domain(T=int))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    account: Any = measurement.map
    return measurement, float(account(d_in=sensitivity))


def _seeded_noise(shape: tuple[int, ...], sensitivity: int, epsilon: Fraction, random_state: RandomState) -> Ints:
    """The same distribution for tests: OpenDP cannot be seeded."""
    p = -np.expm1(-float(epsilon / sensitivity))
    rng = generator(random_state)
    most = ceil(60 * log(2) / p)  # beyond it lies less than 2**-60
    first, second = (np.minimum(rng.geometric(p, size=shape), most) for _ in range(2))
    noise: Ints = (first - second).astype(np.int64)
    return noise
