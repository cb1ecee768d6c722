"""Measure a mechanism's epsilon from outside: a lower bound that no proof can argue away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from countervail.core.arrays import Ints
from countervail.core.errors import bad_parameter
from countervail.core.guarantee.evidence import Evidence, RhoEvidence, epsilon_bound, numbered, rho_bound

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
