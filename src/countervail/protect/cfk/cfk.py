"""CF-K: counterfactuals whose quasi-identifiers at least k people share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.core.distance import HEOM
from countervail.core.encode import Matrix
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import AllOf, Guarantee, KAnonymity, LDiversity, TCloseness
from countervail.core.guarantee.diversity import Tally
from countervail.core.loss import ncp
from countervail.core.protocols import Progress
from countervail.core.region import Region, Regions
from countervail.core.table import Rows, Table
from countervail.explain.base import Explainer
from countervail.explain.nice import NICE
from countervail.ledger.ledger import Ledger
from countervail.protect._recorded import groups_digest, partition_digest
from countervail.protect.base import ExplanationProtector, begun, check_unchanged, released, settled, unique_rows
from countervail.protect.cfk import exact, grasp
from countervail.protect.cfk.answers import SAMPLED, Answers
from countervail.protect.cfk.exact import Limits, Solved
from countervail.protect.cfk.group_search import Crowd
from countervail.protect.cfk.grouping import boxes_of, dense, form_groups, merge
from countervail.protect.cfk.parameters import Search, check_parameters
from countervail.protect.cfk.space import Bools, Ints, Space
from countervail.protect.cfk.stored_groups import Groups

_REFIT = (
    "These people were grouped by an earlier fit. The promise holds for the answers of one fit; what changed in the "
    "table since then may be told from answers before and after. Somebody who has changed waits without a group; one "
    "whose quasi-identifiers changed and who has no identifier, or whose identifiers all changed, cannot be told from "
    "somebody new, and her two groups can be intersected."
)
_BATCH = 256  # queries in lock-step at once: keeps the cells of one model call, and memory, bounded


class CFK(ExplanationProtector):
    """k-anonymous counterfactuals: private values of a training row behind quasi-identifiers that k people share.

    Parameters
    ----------
    k : int
        How many training rows every released region holds at least (the counterfactual's owner included).
    search : {"groups", "exact", "grasp"}
        "groups" settles once who hides with whom, and answers from group regions only: it withstands an adversary who
        knows this code. "exact" finds the smallest region around a counterfactual where every combination keeps the
        decision (pureness 1); "grasp" is the published heuristic. Both withstand someone with a register only.
    weights : mapping, optional
        Weight of each quasi-identifier in NCP; they sum to one.
    explainer : Explainer, optional
        A native explainer, by default `NICE(reward="none", justified=False)`.
    target : "favourable", a label or several
        The decisions a counterfactual may lead to.
    min_pureness : float
        With "exact", what is acceptable where no pure region exists: 1 moves on to the next nearest neighbour; less
        takes the purest region found whose NCP is at most 1.25 times, or 3 points above, the least possible.
    l, t : number, optional
        With "groups": every group holds at least `l` different values of the sensitive column, or its values are
        distributed within `t` of all people's (equal ground distance). Met by merging groups.
    sensitive : str, optional
        The column of `l` and `t`, which need it: the promise names it, and is known before any table is.
    groups : Groups, optional
        With "groups": the groups of an earlier fit, `groups_`. Its people stay where they are; whoever may be one of
        them and has changed gets no answer; new people wait until k of them can form groups of their own. People are
        recognised by the table's identifiers, without these by quasi-identifiers: declare an identifier that lasts.
        Always pass it when you fit again to a table of the same people.
    grouping : {"clusters", "mondrian"}
        With "groups": small clusters, or the classes of a Mondrian table (explanations drawn from that table).
    neighbours : int
        How many neighbours are tried before the answer is "no counterfactual".
    node_budget, cell_budget : int
        Work per explanation: nodes of the search, and combinations asked of the model. Where the first is spent, the
        explanation says how far from optimal it may be; where the second is, pureness is a sampled figure.
    alpha, iterations : int
        GRASP: size of the list a neighbour is drawn from, and number of restarts.
    profile : {None, "published"}
        GRASP with the quirks of the authors' experiments, for reproduction only.
    ledger : Ledger, optional
        With "groups": records the groups before answers leave; another grouping of the same people is refused from
        then on, unless it only adds to the latest `groups`.

    Notes
    -----
    *Threat model*: an adversary with a register of everybody's quasi-identifiers who sees explanations. With "groups"
    the adversary also has the model, this code and its settings, and asks without limit: none of the k people of a
    group can be ruled out (docs/decisions/reciprocal-groups.md). Each member whose private values the adversary
    already knows (the asker's own, if she is one) costs one; what the model itself gives away is not covered.

    References
    ----------
    Goethals, Sörensen, Martens: The privacy issue of counterfactual explanations: explanation linkage attacks (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> e = cv.CFK(k=3, search="grasp", alpha=1, iterations=1).fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> print(e.to_text())
    If you were 3-6 years older, lived in Antwerp and earned $10K more, the decision would be Accept.
      It holds for 50% of the combinations of these values.
    """

    name: ClassVar[str] = "cfk"
    gives_regions: ClassVar[bool] = True
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"search": "exact"}, {"search": "grasp"})

    def __init__(
        self,
        k: int = 10,
        *,
        search: Search = "groups",
        weights: Mapping[str, float] | None = None,
        explainer: Explainer | None = None,
        target: Any = "favourable",
        min_pureness: float = 1.0,
        l: float | None = None,  # noqa: E741 -- the name the literature uses
        t: float | None = None,
        sensitive: str | None = None,
        groups: Groups | None = None,
        grouping: Literal["clusters", "mondrian"] = "clusters",
        neighbours: int = 10,
        node_budget: int = 200_000,
        cell_budget: int = 20_000,
        alpha: int = 20,
        iterations: int = 3,
        profile: Literal["published"] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.k = k
        self.search = search
        self.weights = weights
        self.explainer = explainer
        self.target = target
        self.min_pureness = min_pureness
        self.l = l
        self.t = t
        self.sensitive = sensitive
        self.groups = groups
        self.grouping = grouping
        self.neighbours = neighbours
        self.node_budget = node_budget
        self.cell_budget = cell_budget
        self.alpha = alpha
        self.iterations = iterations
        self.profile = profile
        self.ledger = ledger

    def _native(self) -> Any:
        if self.search != "groups":
            return super()._native()
        given = self.explainer
        if given is not None and not (
            isinstance(given, NICE)
            and given.get_params(deep=False) == NICE(justified=False, target=given.target).get_params(deep=False)
        ):
            must = "None, or NICE(reward='none', justified=False) as it is, for search='groups': labels, constraints, "
            raise bad_parameter("CFK", "explainer", must + "rewards and other scales would tell about the owner", given)
        return Ground(justified=False, target=self.target)

    def guarantee(self) -> Guarantee:
        """k-anonymity, and whom it withstands."""
        k = KAnonymity(self.k, against="algorithm" if self.search == "groups" else "register")
        parts: list[Guarantee] = [k]
        # Merging reads sensitive values, so these two parts hold against the register only.
        if self.l is not None:
            parts.append(LDiversity(self.l, "distinct", self.sensitive or ""))
        if self.t is not None:
            parts.append(TCloseness(self.t, "equal", self.sensitive or ""))
        return AllOf(tuple(parts)) if len(parts) > 1 else k

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        given = begun(self)
        check_parameters(self)
        super().fit(table, model)
        if self.k > len(table):
            raise bad_parameter("CFK", "k", f"at most the number of rows, {len(table)}", self.k)
        explainer = self.explainer_
        self.space_ = Space.fit(table, explainer.encoder_, explainer.rows_, self.weights, "CFK")
        self.desired_ = explainer._targets(self.target, np.zeros(1, dtype=np.int64))[0]
        if self.search == "grasp":
            self.eligible_ = self._eligible_counts()
        if self.search == "groups":
            self._fit_groups(table, model)
        self.fitted_as_ = settled(self, given)
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping. Batches share every model call."""
        check_unchanged(self)
        _, frame, _ = self.explainer_._queries(rows)
        parts = []
        for start in range(0, len(frame), _BATCH):
            part = frame.iloc[start : start + _BATCH]
            parts.append(self._answer(part))
            if progress is not None:
                progress(start + len(part), len(frame))
        self._record()
        return self._release(frame, parts)

    def region_of(self, rows: Rows, salt: int = 0) -> list[frozenset[str]]:
        """For rows put in the counterfactual's place, the regions (as text) that the search could release."""
        check_unchanged(self)
        _, _, coded = self.explainer_._queries(rows)
        if self.search == "groups":
            self._record()
            return self._group_texts(coded)
        solved = self._solve(coded, salt)
        found = np.flatnonzero(solved.found)
        texts = dict(zip(found.tolist(), self.space_.regions(solved.boxes.take(found)).text()))
        return [frozenset([texts[i]]) if i in texts else frozenset() for i in range(len(coded))]

    def accepts(self, rows: Rows) -> Bools:
        """Whether the model gives rows the desired decision."""
        check_unchanged(self)
        return self._favourable(self.explainer_._queries(rows)[2])

    def distance(self, queries: Rows, rows: Rows, regions: list[Region]) -> Matrix:
        """Query x row: the distance that the neighbour search would use, were a row the owner of its region."""
        check_unchanged(self)
        _, _, x = self.explainer_._queries(queries)
        _, _, y = self.explainer_._queries(rows)
        if self.search == "groups":
            shown = Regions.from_cells([dict(r.cells) for r in regions], self.table_.schema)
            return self.crowd_.distance(x, y, shown, ncp(shown, self.table_) * len(self.space_.sizes))
        heom = self.explainer_.heom_
        return np.stack([heom.between(np.repeat(q[None], len(y), axis=0), y) for q in x])

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [
            cls(k=3),
            cls(k=3, l=2, sensitive="ill"),
            cls(k=3, grouping="mondrian"),
            cls(k=3, search="exact"),
            cls(k=3, search="grasp"),
            cls(k=3, search="grasp", profile="published"),
        ]

    def _fit_groups(self, table: Table, model: Any) -> None:
        """Settle who hides with whom, on quasi-identifiers alone; then which candidates may be handed out."""
        stored = self.groups if self.groups is not None else Groups.first(self.k, table)
        placed = stored.assign(table)
        group, fresh = placed.group, np.flatnonzero(placed.new)
        if len(fresh) >= self.k:
            part = self.space_ if len(fresh) == len(table) else self.space_.only(fresh)
            found = self._diverse(part, self._grouped(part, table.take(fresh)), table.frame.iloc[fresh])
            regions = part.regions(boxes_of(part, found))
            group[fresh] = found + len(stored.regions)
            stored = stored.extended(table, fresh, found, regions)
        usable = (group >= 0) & self._sound(stored, group, table)[group]
        if usable.any():
            # People who wait for a group, or whose group has changed, leave no trace, not even in a category.
            self.explainer_ = self._native().fit(_trimmed(table, usable), model)
        heom = self.explainer_.heom_
        names = [n for n, m in zip(self.explainer_.encoder_.names, heom.measured) if m]
        if not stored.scale:
            stored = replace(stored, scale=dict(zip(names, heom.scale.tolist())))
        self.explainer_.heom_ = heom = replace(heom, scale=np.array([stored.scale[n] for n in names]))
        self.groups_, self.row_group_, self.usable_group_ = stored, group, group[usable]
        rows = self.explainer_.rows_ if usable.any() else self.explainer_.rows_[:0]
        blur = ncp(stored.regions, table) * len(self.space_.sizes) if len(stored.regions) else np.zeros(0)
        self.crowd_ = Crowd(self.explainer_.encoder_, heom, rows, group[usable], stored.regions, blur)
        self.crowd_.judge(self._favourable, self.cell_budget, self.min_pureness)

    def _record(self) -> None:
        """Have the groups recorded; answers from a second grouping of the same people do not leave."""
        if self.ledger is not None:
            self.ledger.record_grouping(
                partition_digest(self.ledger, self.table_, self.row_group_, self.groups_.regions),
                self.name,
                before=groups_digest(self.ledger, self.groups),
                after=groups_digest(self.ledger, self.groups_),
            )

    def _grouped(self, space: Space, table: Table) -> Ints:
        """The group of each row, from quasi-identifiers alone."""
        if self.grouping == "clusters":
            return form_groups(space, self.k)
        from countervail.protect.mondrian.mondrian import Mondrian

        return dense(Mondrian(self.k).fit(table).cell_of_.astype(np.int64))

    def _sound(self, stored: Groups, group: Ints, table: Table) -> Bools:
        """Which groups are all there and as diverse as promised."""
        sound = stored.whole(group)
        inside = np.flatnonzero(group >= 0)
        if len(inside) and (self.l is not None or self.t is not None):
            failing = self._failing(table.frame)
            labels = np.where(group >= 0, group, len(sound))  # people without a group count among all people
            sound &= ~failing(labels)[: len(sound)]
        return np.append(sound, False)

    def _diverse(self, space: Space, group: Ints, frame: pd.DataFrame) -> Ints:
        """Merge groups whose sensitive values are too alike."""
        if self.l is None and self.t is None:
            return group
        if self.sensitive is None or self.sensitive not in frame.columns:
            raise bad_parameter("CFK", "sensitive", f"one of the columns {list(frame.columns)}", self.sensitive)
        failing = self._failing(frame)
        merged = merge(space, group, failing)
        if failing(merged).any():
            raise bad_parameter("CFK", "l", f"at most the number of values of '{self.sensitive}'", self.l)
        return merged

    def _failing(self, frame: pd.DataFrame) -> Callable[[Ints], Bools]:
        """For group numbers of the frame's rows: which groups are less diverse than asked."""
        assert self.sensitive is not None
        secret, column = frame[self.sensitive], self.table_.schema[self.sensitive]

        def failing(labels: Ints) -> Bools:
            tally = Tally.of(labels, secret)
            bad = np.zeros(len(tally.sizes), dtype=bool)
            if self.l is not None:
                bad |= tally.distinct() < self.l
            if self.t is not None:
                bad |= tally.distances("equal", column) > self.t + 1e-9
            return bad

        return failing

    def _favourable(self, rows: Matrix) -> Bools:
        explainer = self.explainer_
        wanted: Bools = self.desired_[explainer.decision_.decide(explainer.encoder_.decode(rows))]
        return wanted

    def _eligible_counts(self) -> Ints:
        """Rows of the desired class of each tuple: by prediction, or by true label as the authors did."""
        decision = self.explainer_.decision_
        codes = decision.train
        if self.profile == "published":
            codes = decision.codes(self.table_.target.tolist(), "target")
        counts: Ints = np.bincount(self.space_.row_tuple, self.desired_[codes], len(self.space_.tuples)).astype(
            np.int64
        )
        return counts

    def _answer(self, frame: pd.DataFrame) -> Answers:
        """Solve for the nearest neighbour of each query, then for the next one where no region was found."""
        explainer = self.explainer_
        now = explainer.decision_.decide(frame)
        already = self.desired_[now]
        if self.search == "groups":
            return self._answer_from_groups(frame, now, already)
        tried = self.neighbours if self.search == "exact" else 1
        ranks = explainer.nearest(frame, tried)
        answers = Answers.empty(len(frame), explainer.rows_.shape[1], self.space_, now, already)
        for rank in range(tried):
            open_ = np.flatnonzero(~answers.found & (ranks[:, rank] >= 0))
            if not len(open_):
                break
            distinct, which = unique_rows(explainer.rows_[ranks[open_, rank]])
            answers.take(open_, distinct, which, self._solve(distinct), rank)
        return answers

    def _answer_from_groups(self, frame: pd.DataFrame, now: Ints, already: Bools) -> Answers:
        explainer = self.explainer_
        answers = Answers.empty(len(frame), explainer.rows_.shape[1], self.space_, now, already)
        open_ = np.flatnonzero(~already)
        if len(open_):
            _, queries = explainer.encoder_.extended(frame.iloc[open_])
            near = self.crowd_.nearest(queries)
            at, candidate = open_[near >= 0], near[near >= 0]
            answers.found[at], answers.group[at] = True, self.crowd_.group[candidate]
            answers.rows[at] = self.crowd_.example(candidate)
            answers.pureness[at] = self.crowd_.pureness[candidate]
            for a, c in zip(at, candidate):
                answers.notes[a] = SAMPLED if self.crowd_.sampled[c] else ""
        return answers

    def _group_texts(self, coded: Matrix) -> list[frozenset[str]]:
        """The regions of the groups that hold somebody with a row's quasi-identifiers."""
        texts = self.groups_.regions.text()
        places: dict[bytes, set[str]] = {}
        quasi = self.space_.columns
        for row, group in zip(self.explainer_.rows_[:, quasi], self.usable_group_):
            if group >= 0:
                places.setdefault(row.tobytes(), set()).add(texts[group])
        return [frozenset(places.get(np.ascontiguousarray(row).tobytes(), ())) for row in coded[:, quasi]]

    def _solve(self, rows: Matrix, salt: int = 0) -> Solved:
        centres = np.column_stack(
            [np.searchsorted(v, rows[:, c]) for v, c in zip(self.space_.values, self.space_.columns)]
        ).astype(np.int32)
        if self.search == "grasp":
            settings = grasp.Settings(
                self.k, self.alpha, self.iterations, self.profile == "published", self.cell_budget, salt
            )
            return grasp.solve(self.space_, centres, rows, self._favourable, self.eligible_, settings)
        limits = Limits(self.k, self.node_budget, self.cell_budget, self.min_pureness)
        return exact.solve(self.space_, centres, rows, self._favourable, limits)

    def _release(self, frame: pd.DataFrame, parts: list[Answers]) -> Explanations:
        a = Answers.joined(parts)
        explainer, cells = self.explainer_, self._cells(a)
        schema = self.table_.schema.beside(pd.concat([frame, cells]).astype(object))
        after = np.full(len(a.now), -1, dtype=np.int64)
        if a.found.any():
            after[a.found] = explainer.decision_.decide(explainer.encoder_.decode(a.rows[a.found]))
        status = np.where(a.found, "found", np.where(a.already, "already_favourable", "no_counterfactual"))
        return Explanations(
            released(frame),
            cells,
            pd.Series(status),
            explainer.decision_.labels(a.now),
            explainer.decision_.labels(after),
            schema,
            self.guarantee(),
            self._provenance(),
            (_REFIT,) if self.groups is not None else (),
            notes=tuple(a.notes),
            pureness=a.pureness,
            audit=self.table_,
        )

    def _cells(self, a: Answers) -> pd.DataFrame:
        """Quasi-identifiers as regions, private attributes as they are, blanks where there is no answer."""
        at = np.flatnonzero(a.found)
        private = self.explainer_.encoder_.decode(a.rows[at])
        shown = self._regions(a, at).to_frame() if len(at) else pd.DataFrame()
        quasi = set(self.table_.schema.names("quasi"))
        out = {}
        for name in private.columns:
            values = shown[name].astype(object) if name in quasi and len(at) else private[name]
            if pd.api.types.is_integer_dtype(values.dtype) and len(at) < len(a.found):
                values = values.astype("Int64")
            out[name] = values.set_axis(at).reindex(range(len(a.found)))
        return released(pd.DataFrame(out))

    def _regions(self, a: Answers, at: Ints) -> Regions:
        if self.search == "groups":
            regions: Regions = self.groups_.regions[a.group[at]]
            return regions
        return self.space_.regions(a.boxes.take(at))


class Ground(NICE):
    """NICE's coding and distance, without a look at what the model says about anybody's row."""

    name: ClassVar[str] = "ground"

    def fit(self, table: Table, model: Any) -> Self:
        """Code the rows and learn the scales; the model is not asked about them."""
        self._learn(table, model, ask_rows=False)
        self.heom_ = HEOM.fit(self.encoder_, self.rows_)
        return self

    @property
    def _owner(self) -> str:
        return "CFK"


def _trimmed(table: Table, rows: Bools) -> Table:
    """Some of the rows, without the categories that none of them holds unless these are declared."""
    part = table.take(rows)
    for column in part.schema:
        values = part.frame[column.name]
        if isinstance(values.dtype, pd.CategoricalDtype) and column.values is None:
            part.frame[column.name] = values.cat.remove_unused_categories()
    return part
