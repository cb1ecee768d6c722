"""What a study will do: every combination, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from countervail.core.errors import bad_parameter
from countervail.core.stats import plain_json, plain_value
from countervail.core.table import Table
from countervail.model.paper import KINDS, PAPER_MODELS
from countervail.study.mechanisms import OPEN, GivenMechanism, Mechanism, mechanisms, sound, title_of

GIVEN = "given"  # the name of a model that came with the plan


@dataclass(frozen=True, slots=True)
class Cell:
    """One mechanism with one setting on one table, model and seed."""

    table: str
    model: str
    seed: int
    mechanism: str
    epsilon: float | None
    neighbours: int | None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data."""
        return plain_json(self)


@dataclass(frozen=True, eq=False, slots=True)
class StudyPlan:
    """Mechanisms x epsilons x neighbours x models x tables x seeds.

    Parameters
    ----------
    tables : mapping of str to Table
        The data; private mechanisms need declared domains.
    mechanisms : sequence of str and objects, or mapping
        Names out of `mechanisms()`, and explainers or protectors of anybody's with `fit(table, model)` and
        `explain(rows)`; a mapping gives objects names of your own. By default plain NICE and all that keep a promise.
        What needs quasi-identifiers is left out on a table without any.
    epsilons, neighbours : sequences
        Settings of the mechanisms that have them.
    models : sequence of str
        "forest", "network", "lightgbm": trained anew for each seed, with the paper's settings for the table of that
        name, else those for Adult.
    seeds : sequence of int
        Each gives another split (70% the mechanism's table, 20% to see how good the model is, 10% people who ask) and
        another model. The noise itself is never seeded.
    people, runs : int
        How many people ask at most, and how often each, where noise is drawn for every answer.
    missing : mapping
        Per table, the columns in which "missing" is a public level of its own.
    target : "favourable" or "other"
        "favourable": those who are refused ask. "other": anybody asks for another decision.
    model : estimator, optional
        A fitted model, used instead of training any.
    audit_draws : int
        Draws on each side of a tiny pair of tables to measure each epsilon from outside; 0: none.

    Examples
    --------
    >>> from countervail.study import StudyPlan
    >>> from countervail.testing import small_table
    >>> plan = StudyPlan({"small": small_table()}, ("nice", "private-neighbours"), epsilons=(0.1, 1.0), seeds=(0, 1))
    >>> len(plan.cells())
    6
    """

    tables: Mapping[str, Table]
    mechanisms: Sequence[Any] | Mapping[str, Any] = field(default_factory=lambda: (OPEN, *sound()))
    epsilons: Sequence[float] = (0.1, 1.0, 5.0, 10.0)
    neighbours: Sequence[int] = (20,)
    models: Sequence[str] = ("forest",)
    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    people: int = 200
    runs: int = 5
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    target: Any = "favourable"
    model: Any = None
    audit_draws: int = 0
    named: Mapping[str, Mechanism] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tables or not all(isinstance(t, Table) for t in self.tables.values()):
            raise bad_parameter("StudyPlan", "tables", "a mapping of names to Tables", type(self.tables).__name__)
        self._name_mechanisms()
        for name, values, known in (
            ("models", self.models, list(KINDS)),
            ("missing", self.missing, list(self.tables)),
        ):
            if isinstance(values, str) or (unknown := [v for v in values if v not in known]):
                raise bad_parameter(
                    "StudyPlan", name, f"a list out of {known}", values if isinstance(values, str) else unknown
                )
        for name in ("models", "seeds", "epsilons", "neighbours"):
            if not len(getattr(self, name)) or len(set(getattr(self, name))) < len(getattr(self, name)):
                raise bad_parameter(
                    "StudyPlan", name, "a list of one or more different values", list(getattr(self, name))
                )
        if not all(e > 0 for e in self.epsilons):
            raise bad_parameter("StudyPlan", "epsilons", "numbers above 0", list(self.epsilons))
        for name, least in (("people", 1), ("runs", 1), ("audit_draws", 0)):
            if int(getattr(self, name)) < least:
                raise bad_parameter("StudyPlan", name, f"a whole number of at least {least}", getattr(self, name))

    def _name_mechanisms(self) -> None:
        """Every mechanism under a name of its own; `mechanisms` are the names from then on."""
        known, given = mechanisms(), self.mechanisms
        must = f"names out of {list(known)}, or objects with fit and explain, each once"
        if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, Mapping)) or not len(given):
            raise bad_parameter("StudyPlan", "mechanisms", must, given)
        pairs = given.items() if isinstance(given, Mapping) else [(_title(m), m) for m in given]
        named: dict[str, Mechanism] = {}
        for name, made in pairs:
            if isinstance(made, str) and made in known:
                named[name] = known[made]
            elif not isinstance(made, (str, type)) and all(
                callable(getattr(made, n, None)) for n in ("fit", "explain")
            ):
                named[name] = GivenMechanism.of(name, made)
            else:
                raise bad_parameter(
                    "StudyPlan", "mechanisms", must, [made] if isinstance(made, str) else type(made).__name__
                )
        if len(named) < len(given):
            raise bad_parameter("StudyPlan", "mechanisms", must, list(named))
        object.__setattr__(self, "named", named)
        object.__setattr__(self, "mechanisms", tuple(named))

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that are compared."""
        return tuple(self.models) if self.model is None else (GIVEN,)

    def cells(self) -> tuple[Cell, ...]:
        """Every combination that makes sense."""
        known, found = self.named, []
        for table, model, seed, name in product(self.tables, self.model_names, self.seeds, self.mechanisms):
            if not known[name].fits(self.tables[table]):
                continue
            epsilons: Sequence[float | None] = self.epsilons if known[name].takes("epsilon") else (None,)
            neighbours: Sequence[int | None] = self.neighbours if known[name].takes("neighbours") else (None,)
            found += [Cell(table, model, seed, name, e, k) for e, k in product(epsilons, neighbours)]
        return tuple(found)

    def made(self, cell: Cell) -> Any:
        """The mechanism of a cell, ready to be fitted."""
        missing = tuple(sorted(self.missing.get(cell.table, ())))
        return self.named[cell.mechanism].make(cell.epsilon, cell.neighbours, missing, self.target)

    def settings_for(self, table: str) -> str:
        """The data set of the paper whose model settings fit."""
        return table if table in PAPER_MODELS else "adult"

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain JSON data, without the rows and the model."""
        told: dict[str, Any] = {
            "tables": {n: len(t) for n, t in self.tables.items()},
            "mechanisms": list(self.mechanisms),
            "epsilons": list(self.epsilons),
            "neighbours": list(self.neighbours),
            "models": list(self.model_names),
            "seeds": list(self.seeds),
            "people": self.people,
            "runs": self.runs,
            "target": self.target,
            "audit_draws": self.audit_draws,
        }
        return {name: plain_value(value) for name, value in told.items()}


def _title(mechanism: Any) -> str:
    return mechanism if isinstance(mechanism, str) else title_of(mechanism)
