"""The mechanisms that a study can compare, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from countervail import registry
from countervail.core.guarantee import NoGuarantee
from countervail.core.table import Table
from countervail.protect import ExplanationProtector

OPEN = "nice"  # the explainer without any protection, which the others are compared with
_AS_COMPARED = {OPEN: {"reward": "sparsity"}}  # few changes, as all published ones look for
# Published ones as their reported figures ask for, against the text: which one it is, with which settings.
READINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "published-ldp-swapped": ("published-ldp", {"response": "swapped"}),
    "published-exponential-nearness": ("published-exponential", {"score": "nearness"}),
}


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A way to explain: a registered class, and those of its settings that a study does not vary."""

    name: str
    kind: type[Any]
    settled: Mapping[str, Any] = field(default_factory=dict)

    def make(
        self,
        epsilon: float | None = None,
        neighbours: int | None = None,
        missing: Sequence[str] = (),
        target: Any = "favourable",
    ) -> Any:
        """An instance; what it does not take is left out, and what is None is as the class has it."""
        varied = {"epsilon": epsilon, "neighbours": neighbours, "missing": missing, "target": target}
        return registry.made(self.kind, {**varied, **self.settled})

    def takes(self, parameter: str) -> bool:
        """Whether there is such a setting to vary."""
        return parameter in registry.parameters(self.kind)

    @property
    def draws_each(self) -> bool:
        """Whether noise is drawn for every answer."""
        return bool(registry.fact(self.kind, "draws_noise")) and not registry.fact(self.kind, "keeps_draw")

    def pays(self, epsilon: float | None) -> bool:
        """Whether answers at this epsilon carry anything of the records, as far as has been measured."""
        return epsilon is None or epsilon > float(registry.fact(self.kind, "pays_above"))

    @property
    def proven(self) -> bool:
        """Whether it promises anything."""
        return not isinstance(self.make().guarantee(), NoGuarantee)

    def fits(self, table: Table) -> bool:
        """Whether it can answer from a table at all: regions are made of quasi-identifiers."""
        return not registry.fact(self.kind, "gives_regions") or bool(table.schema.names("quasi"))


@dataclass(frozen=True, slots=True)
class GivenMechanism(Mechanism):
    """An explainer or protector as somebody made it: it is copied for every cell, and no setting of it is varied."""

    made: Any = None

    @classmethod
    def of(cls, name: str, made: Any) -> GivenMechanism:
        """From an object with `fit` and `explain`."""
        return cls(name, type(made), {}, made)

    def make(
        self,
        epsilon: float | None = None,
        neighbours: int | None = None,
        missing: Sequence[str] = (),
        target: Any = "favourable",
    ) -> Any:
        """A fresh copy: fitted to nothing, whatever the original was fitted to."""
        from sklearn.base import clone

        return clone(self.made) if hasattr(self.made, "get_params") else deepcopy(self.made)

    def takes(self, parameter: str) -> bool:
        """Nothing: the object has its settings."""
        return False

    @property
    def proven(self) -> bool:
        """Whether it promises anything; an explainer of somebody's own that says nothing promises nothing."""
        promised = getattr(self.made, "guarantee", None)
        return callable(promised) and not isinstance(promised(), NoGuarantee)


def title_of(made: Any) -> str:
    """A short name for an object: its class, and the settings that are not as by default."""
    kind = type(made)
    if isinstance(made, type) or not hasattr(made, "get_params"):
        return kind.__name__
    usual = registry.parameters(kind)
    given = {n: v for n, v in made.get_params(deep=False).items() if n in usual and not _same(v, usual[n])}
    words = ", ".join(f"{n}={v!r}" if isinstance(v, (str, int, float, bool)) else n for n, v in given.items())
    return f"{kind.__name__}({words})"


def _same(value: Any, usual: Any) -> bool:
    return value is usual or (isinstance(value, (str, int, float, bool)) and value == usual)


def mechanisms() -> dict[str, Mechanism]:
    """Everything registered that explains, and the other readings; of the published, those that give plain rows."""
    kinds: dict[str, type[Any]] = {**registry.explainers(), **registry.explanation_protectors(), **_published()}
    found = [(n, k, _AS_COMPARED.get(n, {})) for n, k in kinds.items()]
    found += [(name, kinds[of], settled) for name, (of, settled) in READINGS.items()]
    return {name: Mechanism(name, kind, settled) for name, kind, settled in found}


def sound() -> tuple[str, ...]:
    """Those that keep a promise."""
    return tuple(name for name, m in mechanisms().items() if m.proven)


def as_published() -> tuple[str, ...]:
    """The published ones as their texts describe them; one that needs an extra is compared only when asked for."""
    return tuple(name for name, kind in _published().items() if registry.fact(kind, "extra") is None)


def described(name: str) -> str:
    """The mechanism whose text a reading goes by."""
    return READINGS[name][0] if name in READINGS else name


def _published() -> dict[str, type[Any]]:
    kinds = {n: k for n, k in registry.published().items() if issubclass(k, ExplanationProtector)}
    return {n: k for n, k in kinds.items() if not registry.fact(k, "gives_regions")}
