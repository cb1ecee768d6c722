"""The functional mechanism: noise on the coefficients of an objective, which is then made smallest.

Two objectives of an autoencoder whose coefficients are known: a linear one with shared orthonormal weights W loses
sum |x - W W'x|^2 = trace(S) - trace(W'S W) with S the sum of x x', and the prototype p of a class loses
sum |z - p|^2 = n |p|^2 - 2 p'(sum of z) + what p does not change.
"""

from __future__ import annotations

import numpy as np

from countervail.core.arrays import Floats, Ints


def moments(points: Floats) -> Floats:
    """The sum of x x': the coefficients of the first objective."""
    out: Floats = points.T @ points
    return out


def moment_reach(axes: int) -> float:
    """How much one point adds to the coefficients on and above the diagonal: its coordinates add up to `axes` at most.

    They are between 0 and 1, so their squares add up to no more than they do.
    """
    return axes * (axes + 1) / 2


def noisy_weights(points: Floats, axes: int, latent: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """Coordinate x latent: the weights that the noisy first objective asks for, those of its largest eigenvalues."""
    m = points.shape[1]
    noise = np.triu(rng.laplace(0.0, moment_reach(axes) / epsilon, (m, m)))
    _, vectors = np.linalg.eigh(moments(points) + noise + np.triu(noise, 1).T)
    weights: Floats = vectors[:, ::-1][:, :latent]
    return weights


def prototype_reach(axes: int, latent: int) -> float:
    """How much one point adds to the coefficients of its class: 1, and twice |W'x| <= sqrt(latent) |x|."""
    return 1 + 2 * float(np.sqrt(latent * axes))


def noisy_prototypes(
    latents: Floats, classes: Ints, n_classes: int, axes: int, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Class x latent: where each noisy second objective is smallest; a point is in one class alone.

    A class of fewer than one, by its noisy coefficient, has no least place: its prototype is the nearest to nothing.
    """
    coefficients = np.zeros((n_classes, 1 + latents.shape[1]))
    np.add.at(coefficients, classes, np.column_stack([np.ones(len(latents)), 2 * latents]))
    scale = prototype_reach(axes, latents.shape[1]) / epsilon
    noisy = coefficients + rng.laplace(0.0, scale, coefficients.shape)
    found = noisy[:, 1:] / (2 * np.maximum(noisy[:, :1], 1.0))
    length = np.linalg.norm(found, axis=1, keepdims=True)
    most = float(np.sqrt(axes))  # no point lies further out
    out: Floats = found * np.minimum(1.0, most / np.maximum(length, most))
    return out
