"""CF-K: counterfactuals whose quasi-identifiers at least k people share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import clone

from countervail.core.arrays import Bools, Matrix
from countervail.core.constraints import CONSTRAINTS, asked_for
from countervail.core.encode import Encoder, encode_queries, require_numbers
from countervail.core.errors import bad_parameter, check_count
from countervail.core.explanation import Explanations
from countervail.core.files.json_data import is_count, need, texts
from countervail.core.guarantee import AllOf, Guarantee, KAnonymity, LDiversity, TCloseness
from countervail.core.people import check_k, rows_for, say_linked
from countervail.core.protocols import Progress
from countervail.core.region import Region
from countervail.core.release import provenance, without_traces
from countervail.core.schema import Schema
from countervail.core.sealed import spell_favourable
from countervail.core.table import Rows, Table
from countervail.engine import Scan
from countervail.explain.answering import Aim, Answers, Find, Queries, constrained, explanations
from countervail.explain.base import UNHEARD, Explainer, check_table
from countervail.explain.nice import REWARDS, Reward
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._fitted import (
    WithoutRows,
    begin_fit,
    finish_fit,
    freeze,
    live_table,
    snapshot,
    verify_promised,
    verify_unchanged,
)
from countervail.protect._recorded import partition_digest
from countervail.protect.base import ExplanationProtector
from countervail.protect.cfk.base import AMOUNTS, AmountsName, FittedSearch, SearchSettings
from countervail.protect.cfk.exact import ExactSearch
from countervail.protect.cfk.grasp import GraspSearch
from countervail.protect.cfk.groups.group_search import GroupSearch
from countervail.protect.cfk.groups.roster import Roster
from countervail.protect.cfk.groups.scan_fit import fit_scan
from countervail.protect.saved import Savable

_BATCH = 256  # queries in lock-step at once: keeps the cells of one model call, and memory, bounded
SearchName = Literal["groups", "exact", "grasp"]
SEARCHES: dict[str, type[GroupSearch | ExactSearch | GraspSearch]] = {
    "groups": GroupSearch,
    "exact": ExactSearch,
    "grasp": GraspSearch,
}
_OWN = "What did not move is the asker's own: an answer holds her facts and is for her alone."


class RegionProtector(WithoutRows, ExplanationProtector):
    """Answers with the regions that a search finds. A subclass writes `_search`, which fits one."""

    target: Any
    gives_regions: ClassVar[bool] = True

    def fit(self, table: Table | Scan, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function).

        Answers from groups can be learnt from rows in an engine (:meth:`Table.scan`) as well.
        """
        given = begin_fit(self)
        if isinstance(table, Scan):
            schema = self._fit_scan(table, model)
        else:
            check_table(table, self._owner)
            table.schema.require_quasi(self._owner)
            self.search_, schema = self._search(table, model), table.schema
            self.linked_ = say_linked(table)
            self._remember(table)
        self.origin_ = spell_favourable(schema).declared().digest()
        self.identifiers_ = tuple(schema.names("identifier"))
        self.fitted_as_ = finish_fit(self, given)
        return self

    def _fit_scan(self, scan: Scan, model: Any) -> Schema:
        """Fit a search to rows that stay where they are; their schema, with what their values tell of it."""
        must = "a Table: this is learnt row by row"
        raise bad_parameter(self._owner, "table", must, "a Scan", "Read it into memory.")

    @abstractmethod
    def _search(self, table: Table, model: Any) -> FittedSearch:
        """Check the parameters, and fit the search that they ask for."""

    def explain(self, rows: Rows, *, constraints: Any = None, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping. Batches share every model call.

        `constraints` are those of these people besides the protector's own: see :meth:`NICE.explain`.
        """
        now = snapshot(self)
        found = now._explained(*now._answered(rows, progress, constraints))
        now._record()
        return found

    def unadvised(self, rows: Rows) -> Explanations:
        """The same answers, and no word to those who get none: what attacks read, in a third of the time."""
        now = snapshot(self)
        found = now._explained(*now._answered(rows, advice=False))
        now._record()
        return found

    def disclosed(self, rows: Rows) -> Explanations:
        """The whole neighbours behind the answers: more than is handed out, and covered by the promise as well."""
        now = snapshot(self)
        asked, answers = now._answered(rows, advice=False)
        found = now._explained(asked, now.search_.whole(answers))
        now._record()
        return found

    @property
    def looks_at(self) -> int:
        """Of how many nearest neighbours an answer may be taken."""
        return self.search_.looks_at

    @property
    def _several(self) -> int:
        """How many answers a query gets at most."""
        return 1

    def _answered(
        self, rows: Rows, progress: Progress | None = None, constraints: Any = None, *, advice: bool = True
    ) -> tuple[Queries, Answers]:
        verify_unchanged(self)
        search, given = self.search_, self._coded(rows)
        find: Find = search.answer if advice else lambda asked: search.answer(replace(asked, advice=False))
        if constraints is not None:
            if search.settings_.reward == "none":
                must = "None where whole neighbours are given: choose a reward"
                raise bad_parameter(self._owner, "constraints", must, constraints)
            fitted = search.settings_.constraints(search.encoder_)
            find = constrained(find, *asked_for(constraints, len(given[1]), fitted), self._several)
        aim = Aim(search.decision_, self.target, search.schema_, self._owner)
        return aim.answer(*given, find, batch=_BATCH, n=self._several, progress=progress)

    def _explained(self, asked: Queries, answers: Answers) -> Explanations:
        """Answers as they leave."""
        search, made = self.search_, provenance("protector", self) | {"schema": self.origin_}
        caveats = (*search.caveats_, *self.linked_, *((_OWN,) if answers.own is not None else ()))
        if search.settings_.reward == "none" and search.settings_.constraints(search.encoder_):
            caveats = (*caveats, UNHEARD)
        decision, schema, audit = search.decision_, search.schema_, live_table(self)
        return explanations(
            asked, answers, decision, schema, self.guarantee(), made, caveats=caveats, audit=audit, clean=_cleaned
        )

    def region_of(self, rows: Rows, salt: int = 0) -> list[frozenset[str]]:
        """For rows put in the counterfactual's place, the regions (as text) that the search could release."""
        now = snapshot(self)
        verify_unchanged(now)
        found = now.search_.region_of(now._coded(rows)[2], salt)
        now._record()
        return found

    def accepts(self, rows: Rows) -> Bools:
        """Whether the model gives rows the desired decision."""
        verify_unchanged(self)
        return self.search_.accepts(self._coded(rows)[2])

    def distance(self, queries: Rows, rows: Rows, regions: list[Region]) -> Matrix:
        """Query x row: the distance that the neighbour search would use, were a row the owner of its region."""
        verify_unchanged(self)
        return self.search_.distance(self._coded(queries)[2], self._coded(rows)[2], regions)

    def _record(self) -> None:
        """Have a ledger told before answers leave, where there is one."""

    def _coded(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        search = self.search_
        wider, frame, x = encode_queries(
            rows, search.schema_, search.encoder_, self._owner, beside=self.identifiers_, holes=True
        )
        # Numbers may be missing where the model can do without.
        gone = np.flatnonzero(np.isnan(x).any(axis=1))
        if len(gone) and not search.decision_.answers_to(frame.iloc[gone]):
            require_numbers(frame, search.schema_, self._owner, "rows")
        return wider, frame, x


class CFK(Savable, RegionProtector):
    """k-anonymous counterfactuals: private values of a training row behind quasi-identifiers that k people share.

    Parameters
    ----------
    k : int
        How many training rows every released region holds at least (the counterfactual's owner included).
    search : {"groups", "exact", "grasp"}, or a search object
        "groups" settles once who hides with whom, and answers from group regions only: it withstands an adversary who
        knows this code. "exact" finds the smallest region around a counterfactual where every combination keeps the
        decision (pureness 1); "grasp" is the published heuristic. Both withstand someone with a register only.
        `GroupSearch`, `ExactSearch` and `GraspSearch` of `countervail.protect` are the same with their own parameters.
    reward : {"sparsity", "proximity", "plausibility", "typical", "none"}
        Answers move as few features as possible towards a neighbour, and the rest stays the asker's own. Among sets of
        equally few, "sparsity" takes the one that is near to the asker and to the sealed table together;
        "proximity" and "plausibility" spend one feature more if that comes nearer to the asker, or to the table;
        "typical" up to three more for the latter. "plausibility" then takes small steps (groups only) as long as each
        brings it clearly nearer. "none" gives the whole neighbour, as the papers do.
    weights : mapping, optional
        Weight of each quasi-identifier in NCP; they sum to one.
    explainer : Explainer, optional
        A native explainer whose order of counterfactuals is gone by, such as `FACE()`, `NearestCounterfactual()` or
        `CaseBased(adapt=False)`; by default `NICE(reward="none", justified=False)`. With "groups" it is fitted to the
        sealed table, a row for each private vector of a group, so that the promise stays as it is.
    target : "favourable", a label or several
        The decisions a counterfactual may lead to.
    min_pureness : float
        With "exact", what is acceptable where no pure region exists: 1 moves on to the next nearest neighbour; less
        takes the purest region found whose NCP is at most 1.25 times, or 3 points above, the least possible.
    l, t : number, optional
        Every group holds at least `l` different values of the sensitive column, or its values are distributed within
        `t` of all people's (equal ground distance). With "groups", met by merging groups; people of other groups fit
        an answer too: `l` holds of all who fit, `t` of the group. With "exact", met by regions of more people, which
        need not be the smallest; `t` with `reward="none"` only, as part of a region fits further people.
    sensitive : str, optional
        The column of `l` and `t`, which need it: the promise names it, and is known before any table is.
    previous : Roster, optional
        With "groups": the `roster_` of an earlier fit to the same people, who are recognised by identifiers that last.
        A group answers on if all of its people are there and nothing of theirs has changed; new people wait until k of
        them can form groups of their own; all others wait for good. Pass it whenever you fit again to a table of the
        same people.
    neighbours : int
        How many neighbours are tried before the answer is "no counterfactual".
    ledger : Ledger, optional
        With "groups": records the groups before answers leave; another grouping of the same people is refused from
        then on, unless it follows from the latest `previous`.
    n_counterfactuals : int
        How many answers per query: with other features where that can be, else with other values.
    amounts : {"round", "exact"}
        With a reward, whether a private number that moves leaves as the roundest one that keeps the decision, nearer to
        the asker where that can be (so that it need not be anybody's), or as the neighbour's own.
    immutable, ranges, monotone, forbidden, max_changes, costs : optional
        What answers may not ask of people, beside what the schema declares; as in :class:`NICE`. They hold for every
        value of a released cell, which moves whole or not at all. Who gets no answer is told which of them to give up.

    Notes
    -----
    *Threat model*: an adversary with a register of everybody's quasi-identifiers who sees explanations. With "groups"
    the adversary also has the model, this code and its settings, and asks without limit: none of the k people of a
    group can be ruled out (docs/decisions/reciprocal-groups.md), whatever the reward, the constraints and the number of
    answers. Each member whose private values the adversary already knows (the asker's own, if she is one) costs one;
    what the model itself gives away is not covered. With a reward, answers hold the asker's own values: they are for
    her alone.

    References
    ----------
    Goethals, Sörensen, Martens: The privacy issue of counterfactual explanations: explanation linkage attacks (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa, model = cv.load("toy_credit"), cv.data.toy_credit_query(), cv.data.toy_credit_model
    >>> print(cv.CFK(k=3).fit(table, model).explain(lisa).to_text())
    If you earned $30K more (from $50K to $80K), the decision would be Accept.
    >>> as_published = cv.CFK(k=3, search=cv.protect.GraspSearch(alpha=1, iterations=1), reward="none")
    >>> print(as_published.fit(table, model).explain(lisa).to_text())  # doctest: +NORMALIZE_WHITESPACE
    If you were 3 to 6 years older (between 24 and 27 instead of 21), lived in Antwerp (instead of Brussels) and earned
    $10K more (from $50K to $60K), the decision would be Accept.
      It holds for 50% of the combinations of these values.
    """

    name: ClassVar[str] = "cfk"
    takes_missing: ClassVar[bool] = True
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"search": "exact"}, {"search": "grasp"})

    def __init__(
        self,
        k: int = 10,
        *,
        search: SearchName | GroupSearch | ExactSearch | GraspSearch = "groups",
        reward: Reward = "sparsity",
        weights: Mapping[str, float] | None = None,
        explainer: Explainer | None = None,
        target: Any = "favourable",
        min_pureness: float = 1.0,
        l: float | None = None,  # noqa: E741 -- the name the literature uses
        t: float | None = None,
        sensitive: str | None = None,
        previous: Roster | None = None,
        neighbours: int = 10,
        ledger: Ledger | None = None,
        n_counterfactuals: int = 1,
        amounts: AmountsName = "round",
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self.k = k
        self.search = search
        self.reward = reward
        self.weights = weights
        self.explainer = explainer
        self.target = target
        self.min_pureness = min_pureness
        self.l = l
        self.t = t
        self.sensitive = sensitive
        self.previous = previous
        self.neighbours = neighbours
        self.ledger = ledger
        self.n_counterfactuals = n_counterfactuals
        self.amounts = amounts
        self.immutable = immutable
        self.ranges = ranges
        self.monotone = monotone
        self.forbidden = forbidden
        self.max_changes = max_changes
        self.costs = costs

    def guarantee(self) -> Guarantee:
        """k-anonymity, and whom it withstands."""
        verify_promised(self)
        k = KAnonymity(self.k, against="algorithm" if self._in_groups else "register")
        parts: list[Guarantee] = [k]
        # Merging reads sensitive values, so these two parts hold against the register only.
        if self.l is not None:
            parts.append(LDiversity(self.l, "distinct", self.sensitive or ""))
        if self.t is not None:
            parts.append(TCloseness(self.t, "equal", self.sensitive or "", within=self.k if self._in_groups else None))
        return AllOf(tuple(parts)) if len(parts) > 1 else k

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [
            cls(k=3),
            cls(k=3, reward="none"),
            cls(k=3, reward="plausibility", n_counterfactuals=2, immutable=["city"], monotone={"age": "up"}),
            cls(k=3, l=2, sensitive="ill"),
            cls(k=3, search=GroupSearch(grouping="mondrian")),
            cls(k=3, search="exact"),
            cls(k=3, search="exact", l=2, sensitive="ill"),
            cls(k=3, search="grasp"),
            cls(k=3, search=GraspSearch(alpha=5, iterations=1)),
        ]

    @property
    def roster_(self) -> Roster:
        """With "groups": who hides with whom, for later fits to tables of the same people. Confidential.

        To be taken while somebody keeps the fitted table, which must have identifiers.
        """
        now = snapshot(self)
        search = getattr(now, "search_", None)
        if not isinstance(search, GroupSearch):
            raise AttributeError("There is no roster before fit, and none at all unless search='groups'.")
        verify_unchanged(now)
        return search.roster(now.previous)

    def __getstate__(self) -> dict[str, Any]:
        """All that answers need; the roster and the explainer that were given are not part of it."""
        state: dict[str, Any] = super().__getstate__()
        if "fitted_as_" not in state or not self._in_groups or (self.previous is None and self.explainer is None):
            return state
        bare = object.__new__(type(self))
        bare.__dict__ = {**state, "previous": None, "explainer": None}
        as_given = freeze(bare) if freeze(self) == self.fitted_as_ else ()  # a changed one stays a changed one
        return {**bare.__dict__, "fitted_as_": as_given}

    @property
    def _several(self) -> int:
        return self.n_counterfactuals

    @property
    def _in_groups(self) -> bool:
        return isinstance(self.search, GroupSearch) or (isinstance(self.search, str) and self.search == "groups")

    def _saved(self) -> dict[str, Any]:
        if not isinstance(self.search_, GroupSearch):
            raise bad_parameter("CFK", "search", "'groups' to be saved: the others answer from rows", self.search)
        self._record()
        return {
            "search": self.search_.saved(),
            "schema": self.origin_,
            "identifiers": list(self.identifiers_),
            "caveats": list(self.linked_),
        }

    def _restore(self, data: dict[str, Any], model: Any) -> None:
        if model is None:
            raise bad_parameter("load_protector", "model", "the model that it was fitted with", None)
        self._check_parameters()
        need(is_count(self.k, 2) and self._in_groups and isinstance(data["schema"], str))
        fresh = GroupSearch() if isinstance(self.search, str) else clone(self.search)
        self.search_ = fresh.restored(self._settings(), data["search"], model)
        self.origin_, self.identifiers_ = data["schema"], texts(data["identifiers"])
        self.linked_ = texts(data.get("caveats", []))

    def _search(self, table: Table, model: Any) -> FittedSearch:
        self._check_parameters()
        check_k(self.k, table, "CFK")
        k = rows_for(self.k, table, "CFK")
        search = SEARCHES[self.search]() if isinstance(self.search, str) else clone(self.search)
        fitted = search.fit(replace(self._settings(), k=k), table, model)
        if self.ledger is not None and isinstance(fitted, GroupSearch):
            made, before = fitted.sealed_, self.previous
            self.partition_ = partition_digest(self.ledger, table, fitted.row_group_, made.sealed.regions)
            self.before_ = b"" if before is None else self.ledger.keyed("groups", before.table.digest)
            self.after_ = self.ledger.keyed("groups", made.digest)
        return fitted

    def _fit_scan(self, scan: Scan, model: Any) -> Schema:
        self._check_parameters()
        return fit_scan(
            self, SEARCHES[self.search]() if isinstance(self.search, str) else clone(self.search), scan, model
        )

    def _settings(self) -> SearchSettings:
        return SearchSettings(
            "CFK",
            self.k,
            self.target,
            self.weights,
            self.explainer,
            self.min_pureness,
            self.neighbours,
            self.l,
            self.t,
            self.sensitive,
            self.previous,
            self.reward,
            self.n_counterfactuals,
            self.amounts,
            {name: getattr(self, name) for name in CONSTRAINTS},
        )

    def _check_parameters(self) -> None:
        """What is wrong with the parameters, if anything is."""
        kinds = tuple(SEARCHES.values())
        if not isinstance(self.search, kinds) and (not isinstance(self.search, str) or self.search not in SEARCHES):
            must = f"one of {tuple(SEARCHES)}, or one of {[kind.__name__ for kind in kinds]}"
            raise bad_parameter("CFK", "search", must, self.search)
        if self.reward not in REWARDS:
            raise bad_parameter("CFK", "reward", f"one of {REWARDS}", self.reward)
        if self.amounts not in AMOUNTS:
            raise bad_parameter("CFK", "amounts", f"one of {AMOUNTS}", self.amounts)
        check_count("CFK", "n_counterfactuals", self.n_counterfactuals)
        if self.reward == "none":
            for name in ("n_counterfactuals", *CONSTRAINTS):
                if (given := getattr(self, name)) and given != 1:
                    must = "left out with reward='none', which gives the whole nearest neighbour"
                    raise bad_parameter("CFK", name, must, given)
        if self.ledger is not None:
            check_ledger(self.ledger, "CFK")
        for name in ("previous", "ledger"):
            if getattr(self, name) is not None and not self._in_groups:
                raise bad_parameter("CFK", name, "None unless search='groups'", getattr(self, name))
        exact = isinstance(self.search, ExactSearch) or self.search == "exact"
        for name in ("l", "t"):
            if getattr(self, name) is not None and not self._in_groups and not exact:
                raise bad_parameter("CFK", name, "None unless search='groups' or 'exact'", getattr(self, name))
        if self.t is not None and exact and self.reward != "none":
            must = "None unless reward='none' with search='exact': what is shown of a region fits further people"
            raise bad_parameter("CFK", "t", must, self.t, "Or search='groups'.")
        if (self.l is not None or self.t is not None) and self.sensitive is None:
            raise bad_parameter("CFK", "sensitive", "the column that l and t speak of", None)
        if self.l is not None and self.l < 1:
            raise bad_parameter("CFK", "l", "at least 1", self.l)
        if self.t is not None and not 0 <= self.t <= 1:
            raise bad_parameter("CFK", "t", "between 0 and 1", self.t)
        if self.previous is not None and not isinstance(self.previous, Roster):
            must = "the `roster_` of an earlier fit, or what Roster.read gives"
            raise bad_parameter("CFK", "previous", must, type(self.previous).__name__)
        if self.previous is not None and self.previous.k < self.k:
            raise bad_parameter("CFK", "previous", f"formed with a k of at least {self.k}", self.previous.k)
        asked = (self.l, self.t, self.sensitive)
        if self.previous is not None and (self.l, self.t) != (None, None) and self.previous.merged != asked:
            must = "formed with the same l, t and sensitive: groups are merged for them when they are formed"
            raise bad_parameter("CFK", "previous", must, self.previous.merged)
        if not 0 <= self.min_pureness <= 1:
            raise bad_parameter("CFK", "min_pureness", "between 0 and 1", self.min_pureness)
        check_count("CFK", "neighbours", self.neighbours)

    def _record(self) -> None:
        """Have the groups recorded; answers from a second grouping of the same people do not leave."""
        if self.ledger is not None and isinstance(self.search_, GroupSearch):
            self.ledger.record_grouping(self.partition_, self.name, before=self.before_, after=self.after_)


def _cleaned(found: Explanations) -> Explanations:
    """Frames and schema that tell of nothing but the cells that they hold."""
    cells, queries = without_traces(found.counterfactuals), without_traces(found.factuals)
    # Of columns whose values were read off rows, those stay that these cells have.
    read = [c.name for c in found.schema if c.read and c.role != "quasi" and c.name in cells.columns]
    shown = found.schema.beside(pd.concat([found.factuals[read], cells[read]]).astype(object))
    return replace(found, factuals=queries, counterfactuals=cells, schema=shown)
