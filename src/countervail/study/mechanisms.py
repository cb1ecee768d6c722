"""The mechanisms that a study can compare, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee
from countervail.core.protocols import Progress
from countervail.core.table import Rows, Table
from countervail.explain import NICE
from countervail.protect import DPTable, NoisyCounterfactual, PrivateHistograms, PrivateNeighbours, published


@dataclass(frozen=True, slots=True)
class Asked:
    """What a mechanism is made from."""

    epsilon: float = 1.0
    neighbours: int = 20
    missing: Sequence[str] = ()
    target: Any = "favourable"


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A way to explain: whether it has a budget, looks at a number of neighbours, and draws noise for every answer."""

    name: str
    make: Callable[[Asked], Any]
    budgeted: bool = True
    neighbours: bool = False
    draws_each: bool = True
    proven: bool = False

    def guarantee(self, asked: Asked) -> Guarantee:
        """What it promises with these parameters."""
        promise: Guarantee = self.make(asked).guarantee()
        return promise


class FromNoisyTable:
    """A noisy table and NICE on it, fitted and asked as the other mechanisms are."""

    def __init__(self, noisy: DPTable, target: Any) -> None:
        self.noisy, self.target = noisy, target

    def fit(self, table: Table, model: Any) -> Self:
        """Draw the noisy table."""
        self.noisy.fit(table)
        self.model_ = model
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain from the noisy table alone."""
        has_scores = hasattr(self.model_, "predict_proba")
        inner = NICE("sparsity" if has_scores else "none", target=self.target)
        return self.noisy.explain(rows, self.model_, inner)

    def guarantee(self) -> Guarantee:
        """The promise of the noisy table."""
        return self.noisy.guarantee()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as scikit-learn's estimators tell them."""
        return {**self.noisy.get_params(deep=deep), "target": self.target}


def _nice(a: Asked) -> Any:
    return NICE("sparsity", target=a.target)


def _neighbours(a: Asked) -> Any:
    return PrivateNeighbours(a.epsilon, neighbours=a.neighbours, missing=a.missing, target=a.target)


def _histograms(a: Asked) -> Any:
    return PrivateHistograms(a.epsilon, neighbours=a.neighbours, missing=a.missing, target=a.target)


def _noisy(a: Asked) -> Any:
    return NoisyCounterfactual(a.epsilon, missing=a.missing, target=a.target)


def _table(a: Asked) -> Any:
    return FromNoisyTable(DPTable(a.epsilon, missing=a.missing), a.target)


def _ldp(a: Asked) -> Any:
    return published.LDP(a.epsilon, target=a.target)


def _inline(a: Asked) -> Any:
    return published.InlineDP(a.epsilon, neighbours=a.neighbours, target=a.target)


def _laplace(a: Asked) -> Any:
    return published.LaplaceNoise(a.epsilon, target=a.target)


def _noisy_max(a: Asked) -> Any:
    return published.NoisyMax(a.epsilon, target=a.target)


def _exponential(a: Asked) -> Any:
    return published.FeatureExponential(a.epsilon, target=a.target)


def _swapped(a: Asked) -> Any:
    return published.LDP(a.epsilon, response="swapped", target=a.target)


def _nearness(a: Asked) -> Any:
    return published.FeatureExponential(a.epsilon, score="nearness", target=a.target)


def _gan(a: Asked) -> Any:
    return published.DPGAN(a.epsilon, missing=a.missing, target=a.target)


OPEN = "nice"  # the explainer without any protection, which the others are compared with
MECHANISMS: dict[str, Mechanism] = {
    m.name: m
    for m in (
        Mechanism(OPEN, _nice, budgeted=False, draws_each=False),
        Mechanism("private-neighbours", _neighbours, neighbours=True, proven=True),
        Mechanism("private-histograms", _histograms, neighbours=True, draws_each=False, proven=True),
        Mechanism("noisy-counterfactual", _noisy, proven=True),
        Mechanism("dp-table", _table, draws_each=False, proven=True),
        Mechanism("published-ldp", _ldp, draws_each=False),
        Mechanism("published-inline", _inline, neighbours=True),
        Mechanism("published-laplace", _laplace),
        Mechanism("published-noisy-max", _noisy_max),
        Mechanism("published-exponential", _exponential),
        Mechanism("published-dpgan", _gan, draws_each=False),
        Mechanism("published-ldp-swapped", _swapped, draws_each=False),
        Mechanism("published-exponential-nearness", _nearness),
    )
}
SOUND: tuple[str, ...] = tuple(n for n, m in MECHANISMS.items() if m.proven)
# As their texts describe them. The GAN needs an extra, so it is compared only when asked for.
PUBLISHED: tuple[str, ...] = tuple(
    k.name
    for k in (
        published.LDP,
        published.InlineDP,
        published.LaplaceNoise,
        published.NoisyMax,
        published.FeatureExponential,
    )
)
# As the reported figures of two of them ask for, against the text: what stands in the place of what.
READINGS: dict[str, str] = {
    "published-ldp-swapped": published.LDP.name,
    "published-exponential-nearness": published.FeatureExponential.name,
}
