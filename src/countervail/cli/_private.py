"""Private explanations on the command line: the methods, what they need, and what their epsilon means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from countervail.core.composition import composed_epsilon
from countervail.core.errors import SchemaError
from countervail.core.explanation import Explanations
from countervail.core.guarantee import DifferentialPrivacy, Guarantee
from countervail.core.protocols import Progress
from countervail.core.table import Rows, Table

PRIVATE = ("private-neighbours", "noisy-counterfactual", "private-histograms", "dp-table")
_DELTA = 1e-6


@dataclass
class _FromNoisyTable:
    """A noisy table, and NICE on it: fitted and asked as the other methods are."""

    noisy: Any
    target: Any

    def fit(self, table: Table, model: Any) -> Self:
        """Draw the noisy table."""
        self.noisy.fit(table)
        self._model = model
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain from the noisy table alone."""
        from countervail.explain import NICE

        has_scores = hasattr(self._model, "predict_proba")
        inner = NICE("sparsity" if has_scores else "none", target=self.target)
        answers: Explanations = self.noisy.explain(rows, self._model, inner)
        return answers


def private_explainer(method: str, epsilon: float, neighbours: int, missing: list[str], target: Any) -> Any:
    """The protector of this name."""
    from countervail.protect import DPTable, NoisyCounterfactual, PrivateHistograms, PrivateNeighbours

    if method == "private-neighbours":
        return PrivateNeighbours(epsilon, neighbours=neighbours, missing=missing, target=target)
    if method == "private-histograms":
        return PrivateHistograms(epsilon, neighbours=neighbours, missing=missing, target=target)
    if method == "noisy-counterfactual":
        return NoisyCounterfactual(epsilon, missing=missing, target=target)
    return _FromNoisyTable(DPTable(epsilon, missing=missing), target)


def check_private(rows: Any, model: Any) -> list[str]:
    """Refuse to explain rows of the protected table; what else must be said beforehand."""
    if rows is None:
        raise SchemaError(
            "Private explanations need --rows: the people who ask must not be rows of the protected data, whose "
            "presence the answers are to hide."
        )
    if model is None:
        return [
            "The forest itself has seen the data: what it memorised is not covered. Give a public one with --model."
        ]
    return []


def meaning(promise: Guarantee) -> list[str]:
    """What an epsilon of this size means, in words."""
    if not isinstance(promise, DifferentialPrivacy):
        return []
    factor = 2.718281828459045 ** min(promise.epsilon, 700)
    once = promise.answers is None
    what = "All answers together" if once else "One answer"
    lines = [
        f"{what} can make a guess about one person at most {factor:,.3g} times as likely or unlikely as without that "
        f"person's record."
    ]
    if once:
        return [
            *lines,
            "The budget was spent once: 100 or 1,000 queries cost nothing more, another run costs it again.",
        ]
    for n in (100, 1000):
        total, likely = promise.epsilon * n, composed_epsilon(promise.epsilon, n, _DELTA)
        lines.append(
            f"Over {n:,} queries epsilon adds up to {total:g} (to {likely:.3g}, but for one chance in a million): "
            f"{_verdict(likely)}."
        )
    return lines


def _verdict(epsilon: float) -> str:
    if epsilon <= 1:
        return "strong protection"
    if epsilon <= 10:
        return "some protection"
    return "no protection to speak of against somebody who sees them all"
