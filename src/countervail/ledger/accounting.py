"""Adding up: a budget as counters of whole numbers, and what an answer takes from them.

Amounts are decimals as they are written (ten times 0.1 is one), counted in whole units; what an answer takes is rounded
up, what may be taken is rounded down. The proofs that a budget holds are in docs/decisions/ledger.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from countervail.core.errors import BudgetError, bad_parameter
from countervail.core.guarantee import Adjacency
from countervail.core.guarantee.budget import Budget
from countervail.core.guarantee.composition import decimal

UNIT = 10**12  # of epsilon and rho
DELTA_UNIT = 10**18
Used = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one answer costs by itself, and for which adjacency that holds.

    `rho`: the answer is rho-zCDP, which is more than its epsilon and delta say; a ledger in rho counts that.
    """

    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = "both"
    rho: float | None = None

    def __post_init__(self) -> None:
        if not (0 < self.epsilon <= 1e6 and 0 <= self.delta < 1):
            raise bad_parameter("Ledger", "cost", "an epsilon above 0 with a delta below 1", self)
        if self.rho is not None and not 0 < self.rho <= 1e6:
            raise bad_parameter("Ledger", "cost", "a rho above 0, or none", self)

    def rho_under(self, budget: Budget) -> Fraction | None:
        """Rho under the budget's adjacency, where it is known: two steps away it is four times as much."""
        if self.rho is None or self.adjacency in ("both", budget.adjacency):
            return None if self.rho is None else decimal(self.rho)
        return 4 * decimal(self.rho) if budget.adjacency == "replace-one" else None

    def under(self, budget: Budget) -> Fraction:
        """Epsilon under the budget's adjacency: to replace a record is to remove one and to add one."""
        if self.adjacency in ("both", budget.adjacency):
            return decimal(self.epsilon)
        if budget.adjacency == "replace-one" and not self.delta:
            return 2 * decimal(self.epsilon)
        raise BudgetError(
            f"The ledger of '{budget.dataset}' promises {budget.adjacency}, but this answer is private under "
            f"{self.adjacency} only{' with a delta' if self.delta else ''}. No answer was given. "
            f"Use a ledger with adjacency='replace-one', or a protector that covers {budget.adjacency}."
        )


@dataclass(frozen=True, slots=True)
class Lane:
    """One counter of a budget: what it counts, in which units, and how far it may go."""

    name: str
    unit: int
    allowed: int


def lanes(budget: Budget) -> tuple[Lane, ...]:
    """The counters of a budget; all start at zero."""
    if budget.composition == "optimal":
        return tuple(Lane(f"answers of epsilon = {e:g}", 1, n) for e, n in budget.plan)
    if budget.composition == "zcdp":
        assert budget.rho is not None
        return (Lane("rho", UNIT, _floor(budget.rho, UNIT)),)
    assert budget.epsilon is not None
    first = Lane("epsilon", UNIT, _floor(budget.epsilon, UNIT))
    return (first, Lane("delta", DELTA_UNIT, _floor(budget.delta, DELTA_UNIT)))


def charges(budget: Budget, used: Used, cost: Cost, answers: int) -> list[Used] | None:
    """What each of this many answers takes from the counters, or None where the budget does not cover them all."""
    allowed = [lane.allowed for lane in lanes(budget)]
    if budget.composition == "optimal":
        return _coins(budget, used, cost, answers)
    each = _each(budget, cost)
    if any(u + answers * e > a for u, e, a in zip(used, each, allowed)):
        return None
    return [each] * answers


def room(budget: Budget, used: Used, cost: Cost) -> int:
    """How many more answers of this cost the budget covers."""
    free = [lane.allowed - u for lane, u in zip(lanes(budget), used)]
    if budget.composition == "optimal":
        return sum(f for f, fits in zip(free, _fitting(budget, cost)) if fits)
    return max(min(f // e for f, e in zip(free, _each(budget, cost)) if e), 0)


def plus(used: Used, taken: list[Used]) -> Used:
    """The counters after some answers."""
    return tuple(u + sum(t[i] for t in taken) for i, u in enumerate(used))


def left_in_words(budget: Budget, used: Used) -> str:
    """What the counters have left."""
    parts = [
        f"{lane.name} {(lane.allowed - u) / lane.unit:.6g} of {lane.allowed / lane.unit:.6g}"
        if lane.unit > 1
        else f"{lane.allowed - u:,} of {lane.allowed:,} {lane.name}"
        for lane, u in zip(lanes(budget), used)
        if lane.allowed
    ]
    return ", ".join(parts)


def share_spent(budget: Budget, used: Used) -> float:
    """How far the counters have gone, from 0 to 1; of a plan, the share of its answers weighted by epsilon."""
    found = lanes(budget)
    if budget.composition == "optimal":
        weights = [e for e, _ in budget.plan]
        return sum(w * u for w, u in zip(weights, used)) / sum(w * lane.allowed for w, lane in zip(weights, found))
    return max(u / lane.allowed for u, lane in zip(used, found) if lane.allowed)


def _each(budget: Budget, cost: Cost) -> Used:
    if budget.composition == "zcdp" and (rho := cost.rho_under(budget)) is not None:
        return (math.ceil(rho * UNIT),)
    epsilon = cost.under(budget)
    if budget.composition == "basic":
        return (math.ceil(epsilon * UNIT), math.ceil(decimal(cost.delta) * DELTA_UNIT))
    _check_pure(budget, cost)
    return (math.ceil(epsilon * epsilon / 2 * UNIT),)


def _coins(budget: Budget, used: Used, cost: Cost, answers: int) -> list[Used] | None:
    """Coins of the plan, the cheapest that cover the cost first."""
    taken: list[Used] = []
    for lane, fits in enumerate(_fitting(budget, cost)):
        free = budget.plan[lane][1] - used[lane] if fits else 0
        one = tuple(int(i == lane) for i in range(len(used)))
        taken += [one] * max(min(free, answers - len(taken)), 0)
    return taken if len(taken) == answers else None


def _fitting(budget: Budget, cost: Cost) -> list[bool]:
    _check_pure(budget, cost)
    epsilon = cost.under(budget)
    return [epsilon <= decimal(coin) for coin, _ in budget.plan]


def _check_pure(budget: Budget, cost: Cost) -> None:
    if cost.delta:
        raise BudgetError(
            f"The ledger of '{budget.dataset}' composes by '{budget.composition}', which takes answers without a "
            f"delta of their own{' unless they state a rho' if budget.composition == 'zcdp' else ''}. No answer was "
            f"given. Use a ledger with composition='basic'."
        )


def _floor(amount: float, unit: int) -> int:
    return math.floor(decimal(amount) * unit)
