"""What a search is told, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from sklearn.base import clone

from countervail.core.arrays import Bools, Matrix
from countervail.core.constraints import Constraints
from countervail.core.encode import Encoder
from countervail.core.errors import bad_parameter
from countervail.core.protocols import Native
from countervail.core.region import Region
from countervail.core.schema import Schema
from countervail.explain.answering import Answers, Queries
from countervail.explain.base import Explainer
from countervail.explain.nice import NICE, Reward
from countervail.model.decision import Decision
from countervail.protect.cfk.groups.roster import Roster

AmountsName = Literal["round", "exact"]
AMOUNTS: tuple[AmountsName, ...] = get_args(AmountsName)
SAMPLED = "The share of combinations that hold was sampled."


@dataclass(frozen=True, eq=False, slots=True)
class SearchSettings:
    """What was asked for; each search reads what has a meaning for it."""

    owner: str
    k: int
    target: Any
    weights: Mapping[str, float] | None = None
    explainer: Explainer | None = None
    min_pureness: float = 1.0
    neighbours: int = 1
    l: float | None = None  # noqa: E741 -- the name the literature uses
    t: float | None = None
    sensitive: str | None = None
    previous: Roster | None = None
    reward: Reward = "none"
    n: int = 1
    amounts: AmountsName = "exact"
    limits: Mapping[str, Any] = field(default_factory=dict)

    def constraints(self, encoder: Encoder) -> Constraints:
        """What answers may not ask of people: what the schema declares, and what was given."""
        return Constraints.of(encoder, self.owner, **self.limits)

    def native(self) -> Any:
        """A fresh explainer whose counterfactuals are training rows, aimed where this search aims."""
        given = self.explainer
        if given is None:
            return NICE(reward="none", justified=False, target=self.target)
        if not (isinstance(given, Explainer) and isinstance(given, Native) and given.native):
            must = "a native explainer, whose counterfactuals are training rows, such as NICE(reward='none')"
            raise bad_parameter(self.owner, "explainer", must, given)
        fresh = clone(given)
        if fresh.get_params().get("target") == "other":
            fresh.set_params(target=self.target)
        return fresh


class FittedSearch(Protocol):
    """What a protector needs of a search that was fitted; it holds its own parameters and what it has learnt."""

    settings_: SearchSettings
    schema_: Schema
    encoder_: Encoder
    decision_: Decision
    caveats_: tuple[str, ...]  # about the model, where it may be asked about the table's rows

    def answer(self, asked: Queries) -> Answers:
        """Answers to a batch of queries."""
        ...

    def whole(self, answers: Answers) -> Answers:
        """The neighbour behind each answer, all of it."""
        ...

    @property
    def looks_at(self) -> int:
        """Of how many nearest neighbours an answer may be taken."""
        ...

    def accepts(self, rows: Matrix) -> Bools:
        """Which coded rows get the desired decision."""
        ...

    def region_of(self, rows: Matrix, salt: int = 0) -> list[frozenset[str]]:
        """For coded rows put in the counterfactual's place, the regions (as text) that the search could release."""
        ...

    def distance(self, queries: Matrix, rows: Matrix, regions: list[Region]) -> Matrix:
        """Query x row: the distance that the neighbour search would use, were a row the owner of its region."""
        ...
