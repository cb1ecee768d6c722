"""What a search is told, what it must be able to do, and the protector around it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self

import pandas as pd
from sklearn.base import clone

from countervail.core.arrays import Bools, Matrix
from countervail.core.encode import Encoder, encode_queries
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Native, Progress
from countervail.core.region import Region, Regions
from countervail.core.table import Rows, Table
from countervail.explain.answering import Aim, Answers, Queries, explanations
from countervail.explain.base import Explainer, check_table, provenance
from countervail.explain.nice import NICE
from countervail.model.decision import Decision
from countervail.protect._fitted import begin_fit, finish_fit, verify_unchanged
from countervail.protect._outgoing import released
from countervail.protect.base import ExplanationProtector, check_quasi
from countervail.protect.cfk.stored_groups import Groups

SAMPLED = "The share of combinations that hold was sampled."
_BATCH = 256  # queries in lock-step at once: keeps the cells of one model call, and memory, bounded


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
    groups: Groups | None = None
    grouping: Literal["clusters", "mondrian"] = "clusters"

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

    table_: Table
    encoder_: Encoder
    decision_: Decision

    def answer(self, asked: Queries) -> Answers:
        """Answers to a batch of queries."""
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


class RegionProtector(ExplanationProtector):
    """Answers with the regions that a search finds. A subclass writes `_search`, which fits one."""

    target: Any
    batch: ClassVar[int] = _BATCH

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        given = begin_fit(self)
        check_table(table, self._owner)
        check_quasi(table, self._owner)
        self.search_ = self._search(table, model)
        self.table_, self.fitted_as_ = table, finish_fit(self, given)
        return self

    @abstractmethod
    def _search(self, table: Table, model: Any) -> FittedSearch:
        """Check the parameters, and fit the search that they ask for."""

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping. Batches share every model call."""
        verify_unchanged(self)
        search = self.search_
        aim = Aim(search.decision_, self.target, search.table_.schema, self._owner)
        asked, answers = aim.answer(*self._coded(rows), search.answer, batch=self.batch, progress=progress)
        made = provenance("protector", self, self.table_)
        found = explanations(
            asked, answers, search.decision_, search.table_.schema, self.guarantee(), made, audit=self.table_
        )
        return _without_traces(found)

    def region_of(self, rows: Rows, salt: int = 0) -> list[frozenset[str]]:
        """For rows put in the counterfactual's place, the regions (as text) that the search could release."""
        verify_unchanged(self)
        return self.search_.region_of(self._coded(rows)[2], salt)

    def accepts(self, rows: Rows) -> Bools:
        """Whether the model gives rows the desired decision."""
        verify_unchanged(self)
        return self.search_.accepts(self._coded(rows)[2])

    def distance(self, queries: Rows, rows: Rows, regions: list[Region]) -> Matrix:
        """Query x row: the distance that the neighbour search would use, were a row the owner of its region."""
        verify_unchanged(self)
        return self.search_.distance(self._coded(queries)[2], self._coded(rows)[2], regions)

    def _coded(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        return encode_queries(rows, self.search_.table_, self.search_.encoder_, self._owner)


def show_cells(encoder: Encoder, rows: Matrix, regions: Regions) -> pd.DataFrame:
    """Quasi-identifiers as regions, private attributes as they are."""
    cells, shown = encoder.decode(rows), regions.to_frame()
    return cells.assign(**{n: shown[n].astype(object) for n in shown.columns})


def _without_traces(found: Explanations) -> Explanations:
    """Frames and schema that tell of nothing but the cells that they hold."""

    cells = released(found.counterfactuals)
    schema = found.schema.beside(pd.concat([found.factuals, cells]).astype(object))
    return replace(found, factuals=released(found.factuals), counterfactuals=cells, schema=schema)
