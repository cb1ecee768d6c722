"""Randomness: one door, two kinds of user."""

from __future__ import annotations

import os
import secrets

import numpy as np
from numpy.typing import NDArray

RandomState = int | np.random.Generator | None


def generator(random_state: RandomState) -> np.random.Generator:
    """Seeded when asked; from the system's entropy when None (the only kind fit for real noise).

    Examples
    --------
    >>> from countervail.core.rng import generator
    >>> int(generator(0).integers(100)) == int(generator(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(secrets.randbits(128) if random_state is None else random_state)


class Words:
    """Random 64-bit words: straight from the system's entropy, or from a seeded generator for tests.

    Noise that a promise rests on must come from here unseeded: numpy's generators are not made to withstand somebody
    who reconstructs their state from what they put out.
    """

    def __init__(self, random_state: RandomState = None) -> None:
        self._seeded = None if random_state is None else generator(random_state)

    def draw(self, *shape: int) -> NDArray[np.uint64]:
        """Words of this shape, uniform on all 64 bits."""
        if self._seeded is not None:
            return self._seeded.integers(0, 2**64, size=shape, dtype=np.uint64)
        n = 1
        for side in shape:
            n *= side
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64).reshape(shape)
