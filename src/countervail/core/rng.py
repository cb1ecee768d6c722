"""Randomness: one door, two kinds of user."""

from __future__ import annotations

import secrets

import numpy as np

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
