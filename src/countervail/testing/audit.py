"""Measure a mechanism's epsilon from outside: a lower bound that no proof can argue away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from countervail.core.arrays import Bools, Ints
from countervail.core.errors import bad_parameter
from countervail.core.guarantee.evidence import Evidence, RhoEvidence, epsilon_bound, numbered, rho_bound
from countervail.core.guarantee.one_run import OneRunEvidence, one_run_bound
from countervail.core.rng import RandomState, generator

T = TypeVar("T")


def audit_epsilon(
    mechanism: Callable[[T, int], Any],
    table: T,
    neighbour: T,
    *,
    training: int = 20_000,
    draws: int = 80_000,
    alpha: float = 1e-6,
    delta: float = 0.0,
) -> Evidence:
    """A lower bound on the epsilon of a mechanism, from its answers to two neighbouring tables.

    Parameters
    ----------
    mechanism : callable
        `mechanism(table, n)` gives n independent outcomes: numbers, rows of a matrix, or a list of anything hashable.
        The fewer different outcomes there are, the sharper the bound: use a tiny domain.
    table, neighbour
        Two inputs that differ in one record, as the adjacency says.
    training, draws : int
        Outcomes that choose the event on which the two differ most, and fresh ones that measure it.
    alpha : float
        The probability with which the bound may be wrong.
    delta : float
        For a mechanism that promises (epsilon, delta).

    Examples
    --------
    >>> from countervail.core.rng import generator
    >>> rng = generator(0)
    >>> def coin(bit, n):  # tells the truth three times out of four: epsilon = ln 3 = 1.0986
    ...     return bit ^ (rng.random(n) < 0.25)
    >>> found = audit_epsilon(coin, 0, 1)
    >>> 1.0 < found.epsilon < 1.0986, found.refutes(1.0)
    (True, True)
    """
    if not 0 <= delta < 1:
        raise bad_parameter("audit_epsilon", "delta", "at least 0 and below 1", delta)
    chosen, fresh = _outcomes("audit_epsilon", mechanism, (table, neighbour), training, draws, alpha)
    return epsilon_bound(chosen, fresh, alpha=alpha, delta=delta)


def audit_rho(
    mechanism: Callable[[T, int], Any],
    table: T,
    neighbour: T,
    *,
    training: int = 20_000,
    draws: int = 80_000,
    alpha: float = 1e-6,
) -> RhoEvidence:
    """A lower bound on the rho of zero-concentrated privacy; parameters as for :func:`audit_epsilon`.

    A small delta hides much: half the noise of a Gaussian mechanism is four times its rho, and this sees it.

    Examples
    --------
    >>> from countervail.core.rng import generator
    >>> rng = generator(0)
    >>> def noisy(bit, n):  # noise of deviation 1: rho = 1 / 2; one event shows 2 / pi of it at most
    ...     return (rng.normal(size=n) + bit > 0.5).astype(int)
    >>> found = audit_rho(noisy, 0, 1)
    >>> 0.27 < found.rho < 0.5, found.refutes(0.1)
    (True, True)
    """
    chosen, fresh = _outcomes("audit_rho", mechanism, (table, neighbour), training, draws, alpha)
    return rho_bound(chosen, fresh, alpha=alpha)


def audit_one_run(
    mechanism: Callable[[Bools], Any],
    canaries: int,
    *,
    guesses: int | None = None,
    delta: float = 0.0,
    alpha: float = 0.01,
    random_state: RandomState = None,
) -> OneRunEvidence:
    """A lower bound on epsilon from one run, with many records that are in or out by a coin each.

    A second opinion, and weaker than :func:`audit_epsilon`: it takes one run where that takes thousands, and sees what
    is badly wrong. It holds for mechanisms that are private when a record is added or removed.

    Parameters
    ----------
    mechanism : callable
        `mechanism(included)` runs once with those of the canaries that are included, and gives a number for each
        canary, included or not: the larger, the more it looks as if it had been there.
    canaries : int
        How many there are.
    guesses : int, optional
        How many are guessed: half of them, those with the largest numbers, to be in, and the other half to be out; by
        default a fifth of the canaries. Settle it before the run.
    delta, alpha : float
        Of the promise that is tested; the probability with which the bound may be wrong.
    random_state : int, optional
        Of the coins.

    References
    ----------
    Steinke, Nasr, Jagielski: Privacy auditing with one (1) training run (2023), theorem 5.2.

    Examples
    --------
    >>> from countervail.core.rng import generator
    >>> rng = generator(0)
    >>> found = audit_one_run(lambda included: included + rng.laplace(0, 1.0, len(included)), 10_000)  # epsilon 1
    >>> 0.5 < found.epsilon < 1.0, found.refutes(0.3)
    (True, True)
    """
    many = canaries // 5 if guesses is None else guesses
    for name, value, most in (("canaries", canaries, None), ("guesses", many, canaries)):
        if value < 2 or (most is not None and value > most):
            must = "a whole number of at least 2" + (" and at most the canaries" if most is not None else "")
            raise bad_parameter("audit_one_run", name, must, value)
    if not 0 < alpha < 1:
        raise bad_parameter("audit_one_run", "alpha", "strictly between 0 and 1", alpha)
    if not 0 <= delta < 1:
        raise bad_parameter("audit_one_run", "delta", "at least 0 and below 1", delta)
    rng = generator(random_state)
    included: Bools = rng.random(canaries) < 0.5
    seen = np.asarray(mechanism(included.copy()), dtype=float)
    if seen.shape != (canaries,) or np.isnan(seen).any():
        raise bad_parameter("audit_one_run", "mechanism", "a function that gives a number for each canary", "others")
    order = np.lexsort((rng.random(canaries), seen))  # equal numbers in an order that tells nothing
    out, into = order[: many // 2], order[canaries - (many - many // 2) :]
    right = int(included[into].sum() + (~included[out]).sum())
    return one_run_bound(canaries, many, right, delta=delta, alpha=alpha)


def _outcomes(
    owner: str, mechanism: Callable[[T, int], Any], pair: tuple[T, T], training: int, draws: int, alpha: float
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    for name, value in (("training", training), ("draws", draws)):
        if value < 1:
            raise bad_parameter(owner, name, "a whole number of at least 1", value)
    if not 0 < alpha < 1:
        raise bad_parameter(owner, "alpha", "strictly between 0 and 1", alpha)
    groups = [mechanism(t, n) for n in (training, draws) for t in pair]
    wanted = (training, training, draws, draws)
    if any(len(g) != n for g, n in zip(groups, wanted)):
        raise bad_parameter(owner, "mechanism", "a function that gives n outcomes when asked for n", "others")
    a, b, c, d = numbered(*groups)
    return (a, b), (c, d)
