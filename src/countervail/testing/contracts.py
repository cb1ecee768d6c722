"""Every registered class with every check that it must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from countervail import registry
from countervail.protect import TableProtector
from countervail.testing.attacks import attack_checks
from countervail.testing.explainers import explainer_checks
from countervail.testing.protectors import protector_checks


@dataclass(frozen=True, slots=True)
class Contract:
    """One check of one example of a registered class; `extra` is what must be installed for it."""

    subject: Any
    check: Callable[[Any], None]
    extra: str | None = None

    @property
    def label(self) -> str:
        """What a test of it is called."""
        return f"{self.subject.name}:{self.subject}:{self.check.__name__}"


def contracts() -> Iterator[Contract]:
    """What the registry holds now, class by class."""
    explaining = [*registry.explainers().values(), *registry.explanation_protectors().values()]
    for kind in (*explaining, *registry.published().values(), *registry.table_protectors().values()):
        checks: Callable[[Any], Iterator[Any]] = (
            protector_checks if issubclass(kind, TableProtector) else explainer_checks
        )
        yield from _contracts(kind, checks)
    for attack in registry.attacks().values():
        yield from _contracts(attack, attack_checks)


def _contracts(kind: type[Any], checks: Callable[[Any], Iterator[Any]]) -> Iterator[Contract]:
    for subject in kind.examples():
        for check in checks(subject):
            yield Contract(subject, check, registry.fact(kind, "extra"))
