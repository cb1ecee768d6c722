"""What exists: the classes that packages export, by name, and what each class says of itself.

The line `from ... import Mine as Mine` in the `__init__` of explain, protect, protect.published or attack is the
registration. The command line, studies, contract tests and the tables of the docs read it here, whenever they need it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from countervail.core.errors import bad_parameter
from countervail.core.guarantee import Guarantee

if TYPE_CHECKING:
    from countervail.attack import OracleAttack, ReleaseAttack, SetAttack
    from countervail.explain import Explainer
    from countervail.protect import ExplanationProtector, TableProtector

Kinds = Mapping[str, type[Any]]  # classes by their names
# What a class may say of itself beyond its parameters, and what is taken for granted where it is silent.
FACTS: dict[str, Any] = {
    "draws_noise": False,  # chance is part of what leaves
    "keeps_draw": False,  # the noise is drawn once, at fit: asking again gives the same answer
    "gives_regions": False,  # answers hold ranges and sets, not plain values
    "keeps_rows": True,  # tables: each released row stands for one row of the original
    "cells_hold": True,  # tables: a released cell holds the value of everybody whose row has it
    "takes_missing": False,  # explains numbers that are missing, where the model takes them
    "rows_are": "rows",  # tables: what a released row is called
    "extra": None,  # the optional dependency without which it does not run
    "pays_above": 0.0,  # the epsilon of an answer up to which it carries nothing of the records: recommended to nobody
    "by_person": False,  # attacks: the outcome of one person does not depend on who else is attacked
    "for_small_tables": False,  # attacks: too patient for tables of many rows or columns
    "variants": ({},),  # settings that promise something else, for the tables of the docs
}


def explainers() -> dict[str, type[Explainer]]:
    """Plain explainers."""
    from countervail import explain

    return exported(explain, explain.Explainer)


def explanation_protectors() -> dict[str, type[ExplanationProtector]]:
    """Protectors that answer queries."""
    from countervail import protect

    return exported(protect, protect.ExplanationProtector)


def table_protectors() -> dict[str, type[TableProtector]]:
    """Protectors that release tables."""
    from countervail import protect

    return exported(protect, protect.TableProtector)


def published() -> dict[str, type[ExplanationProtector | TableProtector]]:
    """The papers' own variants, which are here to be measured."""
    from countervail import protect

    return exported(protect.published, protect.ExplanationProtector, protect.TableProtector)


def attacks() -> dict[str, type[ReleaseAttack | SetAttack | OracleAttack]]:
    """Attacks on releases, and on whatever answers queries."""
    from countervail import attack

    return exported(attack, attack.ReleaseAttack, attack.SetAttack, attack.OracleAttack)


def exported(module: ModuleType, *bases: type[Any]) -> dict[str, Any]:
    """The concrete classes of these kinds that a package exports, by their `name`."""
    found: dict[str, type[Any]] = {}
    for kind in vars(module).values():
        if not inspect.isclass(kind) or not issubclass(kind, bases) or inspect.isabstract(kind):
            continue
        name = getattr(kind, "name", None)
        if not isinstance(name, str) or not name:
            raise bad_parameter(kind.__name__, "name", "a short text, such as 'linkage'", name)
        if found.setdefault(name, kind) is not kind:
            must = f"a name that no other class of {module.__name__} has ({found[name].__name__} has this one)"
            raise bad_parameter(kind.__name__, "name", must, name)
    return found


def parameters(kind: type[Any]) -> dict[str, Any]:
    """The parameters that a class is made from, with their defaults."""
    return {n: p.default for n, p in inspect.signature(kind).parameters.items()}


def takers(kinds: Kinds, parameter: str) -> list[str]:
    """The names of the classes that take a parameter."""
    return [name for name, kind in kinds.items() if parameter in parameters(kind)]


def made(kind: type[Any], wanted: Mapping[str, Any]) -> Any:
    """An instance with those of the wanted parameters that it takes; what is None stays as the class has it."""
    known = parameters(kind)
    return kind(**{n: v for n, v in wanted.items() if n in known and v is not None})


def fact(kind: type[Any], name: str) -> Any:
    """What a class says of itself; one of `FACTS`."""
    return getattr(kind, name, FACTS[name])


def summary(kind: type[Any]) -> str:
    """What a class does: the first line of its docstring."""
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def promise(kind: type[Any]) -> Guarantee:
    """What a class promises unless told otherwise."""
    given: Guarantee = kind().guarantee()
    return given
