"""What is claimed of epsilon, and what draws prove of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from countervail.attack.base import ours
from countervail.core.files.json_data import is_number, is_text, need
from countervail.core.guarantee import AllOf, DifferentialPrivacy, Guarantee
from countervail.core.stats import plain_json
from countervail.study.audit import audit_mechanism
from countervail.study.mechanisms import mechanisms


@dataclass(frozen=True, slots=True)
class Claim:
    """An epsilon that is claimed, whether it is proven, and what was measured: epsilon is at least `audited`.

    `at_hand` is whether the noise is that of a protector which was at hand: of a file, noise is only what it says.
    """

    epsilon: float
    proven: bool
    noise: bool
    audited: float | None = None
    alpha: float = 1e-6
    draws: int = 0
    at_hand: bool = True

    @property
    def refuted(self) -> bool:
        """Whether draws show that the claim is false."""
        return self.audited is not None and self.audited > self.epsilon

    @property
    def said(self) -> str:
        """The claim and what became of it, in words."""
        claim = f"epsilon = {self.epsilon:g} is claimed, {'with a proof' if self.proven else 'without a proof'}"
        if self.audited is None:
            return f"{claim}; it was not measured in this run"
        if self.refuted:
            return f"{claim}; {self.draws:,} draws show that it is at least {self.audited:.3g}: the claim is false"
        return f"{claim}; {self.draws:,} draws show at least {max(self.audited, 0.0):.3g} and do not contradict it"

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain JSON data."""
        return {**plain_json(self), "said": self.said}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`."""
        need(is_number(data["epsilon"]) and is_text(data["said"]))
        audited = None if data["audited"] is None else float(data["audited"])
        return cls(
            float(data["epsilon"]),
            bool(data["proven"]),
            bool(data["noise"]),
            audited,
            data["alpha"],
            data["draws"],
            bool(data.get("at_hand", True)),
        )


def claims_of(guarantee: Guarantee, maker: Any = None) -> list[Claim]:
    """The epsilons that a promise, or a parameter of whoever made the answers, speaks of.

    What somebody else's code promises is proven nowhere, whatever it calls its promise.
    """
    parts = guarantee.parts if isinstance(guarantee, AllOf) else (guarantee,)
    known, mine = maker is None or ours(maker), maker is not None and ours(maker)
    promised = [Claim(float(p.epsilon), known, True, at_hand=mine) for p in parts if isinstance(p, DifferentialPrivacy)]
    named: Any = getattr(maker, "epsilon", None)
    return promised if promised or not is_number(named) else [Claim(float(named), False, False)]


def measured(claim: Claim, name: str, draws: int) -> Claim:
    """The claim with what draws on tiny tables prove; as it is where the mechanism cannot be asked that often."""
    if name not in mechanisms() or not mechanisms()[name].takes("epsilon"):
        return claim
    evidence = audit_mechanism(name, claim.epsilon, draws=draws)
    if evidence is None:
        return claim
    return replace(claim, audited=evidence.epsilon, alpha=evidence.alpha, draws=draws)
