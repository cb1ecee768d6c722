"""A privacy budget: the most that all releases about the same people may cost, settled before the first of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from countervail.core.errors import bad_parameter
from countervail.core.files.json_data import is_count, is_number, need
from countervail.core.guarantee.composition import MOST_ANSWERS, most_answers, plan_epsilon, zcdp_epsilon, zcdp_rho
from countervail.core.stats import plain_json

Composition = Literal["basic", "optimal", "zcdp"]
COMPOSITIONS: tuple[Composition, ...] = ("basic", "optimal", "zcdp")
_MOST = 1e6  # an epsilon beyond it promises nothing, and would not fit the counters
_TOLD_AT = 1e-6  # the delta at which a budget in rho is told in words


@dataclass(frozen=True, slots=True)
class Budget:
    """The budgeted maximum for a data set; it is what a label promises, however much of it is spent.

    "basic" adds up epsilon and delta. "zcdp" adds up rho; `epsilon` and `delta` follow from it. "optimal" lets out a
    plan of answers, pairs of epsilon and number, that was settled beforehand.
    """

    dataset: str
    epsilon: float | None
    delta: float = 0.0
    rho: float | None = None
    composition: Composition = "basic"
    plan: tuple[tuple[float, int], ...] = ()
    adjacency: Literal["replace-one", "add-remove"] = "replace-one"

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", tuple((float(e), int(n)) for e, n in self.plan))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; to be called inside :func:`whole_json`."""
        budget = cls(**data)
        known = budget.composition in COMPOSITIONS and budget.adjacency in ("replace-one", "add-remove")
        amounts = [v for v in (budget.epsilon, budget.rho) if v is not None]
        need(isinstance(budget.dataset, str) and known and bool(amounts) and all(map(_is_amount, amounts)))
        need(is_number(budget.delta) and 0 <= budget.delta < 1)
        need(all(_is_amount(e) and is_count(n, 1) for e, n in budget.plan))
        return budget

    @classmethod
    def of(
        cls,
        dataset: str,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        composition: Composition | None = None,
        plan: float | Mapping[float, int] | None = None,
        adjacency: Literal["replace-one", "add-remove"] = "replace-one",
    ) -> Self:
        """A budget from what a user states; the rest follows from it."""
        if not isinstance(dataset, str) or not dataset.strip():
            hint = "Give the people a name, and keep it whatever becomes of the table."
            raise bad_parameter("Ledger", "dataset", "a name", dataset, hint)
        if (epsilon is None) == (rho is None):
            raise bad_parameter("Ledger", "epsilon", "given, or rho instead of it", (epsilon, rho))
        for name, value in (("epsilon", epsilon), ("rho", rho)):
            if value is not None and not _is_amount(value):
                raise bad_parameter("Ledger", name, f"a number above 0 and at most {_MOST:g}", value)
        if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
            raise bad_parameter("Ledger", "delta", "at least 0 and below 1", delta)
        if adjacency not in ("replace-one", "add-remove"):
            raise bad_parameter("Ledger", "adjacency", "'replace-one' or 'add-remove'", adjacency)
        how = _composition(composition, delta, rho, plan)
        if how == "basic":
            return cls(dataset, float(epsilon or 0), float(delta), adjacency=adjacency)
        if how == "zcdp":
            if rho is None:
                rho = zcdp_rho(float(epsilon or 0), delta)
            return cls(dataset, epsilon and float(epsilon), float(delta), float(rho), how, adjacency=adjacency)
        assert epsilon is not None and plan is not None
        steps = _plan(plan, float(epsilon), delta)
        return cls(dataset, float(epsilon), float(delta), None, how, steps, adjacency)

    @property
    def claim(self) -> str:
        """The maximum in a few words."""
        if self.epsilon is not None:
            return f"epsilon = {self.epsilon:.12g}" + (f", delta = {self.delta:.12g}" if self.delta else "")
        assert self.rho is not None
        told = math.ceil(zcdp_epsilon(self.rho, _TOLD_AT) * 100) / 100
        return f"rho = {self.rho:.12g} of zCDP (epsilon = {told:.12g} at delta = {_TOLD_AT:g})"

    def to_dict(self) -> dict[str, Any]:
        """The budget as plain JSON data."""
        return plain_json(self)


def _composition(
    given: Composition | None, delta: float, rho: float | None, plan: float | Mapping[float, int] | None
) -> Composition:
    how: Composition = given or ("optimal" if plan is not None else "zcdp" if rho is not None or delta else "basic")
    if how not in COMPOSITIONS:
        raise bad_parameter("Ledger", "composition", f"one of {COMPOSITIONS}", given)
    if rho is not None and (how != "zcdp" or delta):
        raise bad_parameter("Ledger", "rho", "given alone, or with composition='zcdp'", rho)
    if how != "basic" and rho is None and not delta:
        raise bad_parameter("Ledger", "delta", f"above 0 for composition='{how}'", delta, "Try delta=1e-6.")
    if (plan is not None) != (how == "optimal"):
        must = "given with composition='optimal' and only then, since it holds for epsilons settled beforehand"
        raise bad_parameter("Ledger", "plan", must, plan, "Try plan=0.1: as many answers of 0.1 as fit.")
    return how


def _plan(plan: float | Mapping[float, int], epsilon: float, delta: float) -> tuple[tuple[float, int], ...]:
    if not isinstance(plan, Mapping):
        if not _is_amount(plan) or plan > epsilon:
            raise bad_parameter("Ledger", "plan", "a mapping, or an epsilon per answer within the budget", plan)
        return ((float(plan), most_answers(float(plan), epsilon, delta)),)
    counts = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in plan.values())
    if not plan or not counts or not all(_is_amount(e) for e in plan):
        raise bad_parameter("Ledger", "plan", "a mapping of epsilon per answer to a number of answers", plan)
    if sum(plan.values()) > MOST_ANSWERS:
        hint = "Count so many answers with composition='zcdp', which needs no plan."
        raise bad_parameter("Ledger", "plan", f"of at most {MOST_ANSWERS:,} answers in all", dict(plan), hint)
    needs = plan_epsilon({float(e): n for e, n in plan.items()}, delta)
    if needs > epsilon:
        must = f"within epsilon = {epsilon:g} at delta = {delta:g}; it needs {needs:.6g}"
        raise bad_parameter("Ledger", "plan", must, dict(plan))
    return tuple(sorted((float(e), n) for e, n in plan.items()))


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _MOST
