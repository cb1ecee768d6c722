"""Private explanations on the command line: what they need, and what their epsilon means."""

from __future__ import annotations

from typing import Any

from countervail.core.errors import SchemaError
from countervail.core.guarantee import DifferentialPrivacy, Guarantee
from countervail.core.guarantee.composition import composed_epsilon

_DELTA = 1e-6
MEMORISED = "The forest itself has seen the data: what it memorised is not covered. Give a public one with --model."


def check_private(rows: Any, model: Any) -> list[str]:
    """Refuse to explain rows of the protected table; what else must be said beforehand."""
    if rows is None:
        raise SchemaError(
            "Private explanations need --rows: the people who ask must not be rows of the protected data, whose "
            "presence the answers are to hide."
        )
    return [MEMORISED] if model is None else []


def meaning(promise: Guarantee) -> list[str]:
    """What an epsilon of this size means, in words."""
    if not isinstance(promise, DifferentialPrivacy):
        return []
    once = promise.answers is None
    factor, chance = promise.odds_bound if once else (2.718281828459045 ** min(promise.epsilon, 700), 0.0)
    what = "All answers together" if once else "One answer"
    but = f" (but for a chance of {chance:g})" if chance else ""
    apart = promise.given == "public model" or (promise.given == "private model" and not once)
    aside = ", what the model itself tells left aside" if apart else ""
    lines = [
        f"{what} can make a guess about one person at most {factor:,.3g} times as likely or unlikely as without that "
        f"person's record{but}{aside}."
    ]
    if once:
        again = "another run costs it again" if promise.budget is None else "another run takes the same draw"
        return [*lines, promise.meaning, f"The budget was spent once: 100 or 1,000 queries cost nothing more, {again}."]
    for n in (100, 1000):
        total, likely = promise.epsilon * n, composed_epsilon(promise.epsilon, n, _DELTA)
        lines.append(
            f"Over {n:,} queries epsilon adds up to {total:g} (to {likely:.3g} with a delta of one in a million): "
            f"{_verdict(likely)}."
        )
    if promise.model_epsilon:
        lines.append(f"The model costs epsilon = {promise.model_epsilon:g} besides, once.")
    return [*lines, promise.meaning] if promise.answers else lines


def _verdict(epsilon: float) -> str:
    if epsilon <= 1:
        return "strong protection"
    if epsilon <= 10:
        return "some protection"
    return "no protection to speak of against somebody who sees them all"
