"""Answers from groups: who hides with whom is settled once, and only what a group shares is looked at from then on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from countervail.core.arrays import Bools, Ints, Matrix, distinct_rows
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder, require_numbers
from countervail.core.errors import bad_parameter, check_count
from countervail.core.guarantee.diversity import Tally
from countervail.core.loss import cell_widths, ncp
from countervail.core.region import Region, Regions
from countervail.core.table import Table
from countervail.explain.answering import Aim, Answers, Queries
from countervail.explain.constraints import Constraints
from countervail.explain.nice import NICE
from countervail.model.decision import Decision
from countervail.protect.cfk.base import SAMPLED, SearchSettings
from countervail.protect.cfk.candidates import Candidates
from countervail.protect.cfk.grouping import boxes_of, dense, form_groups, merge
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.askers import CANDIDATES, WAVES, Askers, Reachable
from countervail.protect.cfk.moves.offers import Offers
from countervail.protect.cfk.moves.relax import advised
from countervail.protect.cfk.moves.search import MoveSearch, MovesFound, PoolNearness, moved_answers
from countervail.protect.cfk.moves.sets import REWARDS, AskedModel
from countervail.protect.cfk.space import Space
from countervail.protect.cfk.stored_groups import Groups

_ROOM = 1 << 22  # entries of asker x candidate x feature worked on at once


class GroupSearch(BaseEstimator):
    """The nearest private vector of a group whose region every member's decision and every combination agree on.

    Parameters
    ----------
    cell_budget : int
        Combinations of a region that the model is asked about; above it, pureness is a sampled figure.
    """

    def __init__(self, *, cell_budget: int = 20_000) -> None:
        self.cell_budget = cell_budget

    def fit(self, settings: SearchSettings, table: Table, model: Any) -> Self:
        """Settle who hides with whom, on quasi-identifiers alone; then which candidates may be handed out."""
        self.settings_, owner = settings, settings.owner
        check_count("GroupSearch", "cell_budget", self.cell_budget)
        self._check_explainer()
        require_numbers(table.features, table.schema, owner, "table")
        Decision(model, table, owner, ask_rows=False)  # a model of other columns is refused before the work begins
        encoder = Encoder.fit(table)
        space = Space.fit(table, encoder, encoder.encode(table.features), settings.weights, owner)
        stored, group = self._assign(space, table)
        usable = (group >= 0) & self._sound(stored, group, table)[group]
        # People who wait for a group, or whose group has changed, leave no trace, not even in a category.
        self.table_ = _trimmed(table, usable) if usable.any() else table
        self.decision_ = Decision(model, self.table_, owner, ask_rows=False)
        self.encoder_ = Encoder.fit(self.table_)
        self.desired_ = Aim(self.decision_, settings.target, self.table_.schema, owner).aimed()
        rows = self.encoder_.encode(self.table_.features)
        stored, heom = _scaled(stored, self.encoder_, HEOM.fit(self.encoder_, rows))
        self.groups_, self.row_group_, self.usable_group_ = stored, group, group[usable]
        self._quasi, self._rows = space.columns, rows if usable.any() else rows[:0]
        # How far a region reaches is measured among those who answer: nobody who waits widens a range.
        blur = ncp(stored.regions, self.table_) * len(space.sizes) if len(stored.regions) else np.zeros(0)
        self.candidates_ = Candidates(self.encoder_, heom, self._rows, group[usable], stored.regions, blur)
        sparse = settings.reward != "none"
        self.candidates_.judge(self.accepts, self.cell_budget, settings.min_pureness, whole=not sparse)
        self.constraints_ = settings.constraints(self.table_)
        allowed = Allowed(self.constraints_, len(self.encoder_.names))
        self.reach_: Reachable | None = None
        if sparse and len(self.candidates_.group):
            self.reach_ = Reachable(self._offers(), allowed, settings.min_pureness)
            self.nearness_ = PoolNearness(self.reach_.offers)
        return self

    def answer(self, asked: Queries) -> Answers:
        """The fewest moves towards a near candidate; without a reward, the nearest one behind its group's region."""
        if self.settings_.reward != "none":
            return self._moved(asked)
        return self._whole(Answers.nothing(asked.x), self.candidates_.nearest(asked.x))

    def whole(self, answers: Answers) -> Answers:
        """The candidate behind each answer, all of it."""
        return answers if answers.behind is None else self._whole(Answers.nothing(answers.cells), answers.behind)

    @property
    def looks_at(self) -> int:
        """Of how many nearest candidates an answer may be taken."""
        return 1 if self.settings_.reward == "none" else CANDIDATES * WAVES

    def _whole(self, nothing: Answers, near: Ints) -> Answers:
        """Candidates (-1: none) behind their groups' regions."""
        at, chosen = np.flatnonzero(near >= 0), near[near >= 0]
        if not len(at):
            return nothing
        rows = self.candidates_.example(chosen)
        shown = self.groups_.regions[self.candidates_.group[chosen]].shown_in(self.encoder_.decode(rows))
        notes = [SAMPLED if drawn else "" for drawn in self.candidates_.sampled[chosen]]
        after, pureness = self.decision_.decide(self.encoder_.decode(rows)), self.candidates_.pureness[chosen]
        part = Answers(rows, after, np.ones(len(at), dtype=bool), None, pureness, notes, shown)
        return nothing.filled(at, part)

    def _offers(self) -> Offers:
        """The candidates, and the anonymised table as a whole: distinct pairs of a group and a private vector."""
        candidates, regions = self.candidates_, self.groups_.regions
        pool = np.column_stack([self.usable_group_, np.delete(self._rows, self._quasi, axis=1)])
        pool = pool[distinct_rows(pool)[0]]
        private = np.zeros((len(pool), self._rows.shape[1]))
        private[:, np.delete(np.arange(private.shape[1]), self._quasi)] = pool[:, 1:]
        columns = [self.encoder_.names.index(axis.name) for axis in regions.axes]
        return Offers.of(
            self.encoder_,
            candidates.heom,
            regions,
            cell_widths(regions, self.table_),
            [np.unique(self._rows[:, j]) for j in columns],
            (candidates.group, candidates.private),
            (pool[:, 0].astype(np.int64), private),
        )

    def _moved(self, asked: Queries) -> Answers:
        """The fewest moves towards a near candidate, several answers to each query if several are wanted."""
        n, nothing = self.settings_.n, Answers.nothing(np.repeat(asked.x, self.settings_.n, axis=0))
        if (reach_ := self.reach_) is None:
            return nothing
        found = self._found(asked, reach_, n)
        groups = self.candidates_.group[found.behind[found.behind >= 0]]
        answers = moved_answers(nothing, found, self.decision_, asked.encoder, self.groups_.regions[groups])

        def served(constraints: Constraints, at: Ints) -> Bools:
            reach = Reachable(reach_.offers, Allowed(constraints, asked.x.shape[1]), self.settings_.min_pureness)
            return self._found(asked.only(at), reach, 1).behind >= 0

        return advised(answers, n, self.constraints_, self.encoder_.names, served)

    def _found(self, asked: Queries, reach: Reachable, n: int) -> MovesFound:
        model = AskedModel(self.decision_, self.desired_, asked.encoder)
        search = MoveSearch(model, REWARDS[self.settings_.reward], self.nearness_, self.cell_budget, WAVES)
        step, parts = max(1, _ROOM // (CANDIDATES * asked.x.shape[1])), []
        for a in range(0, len(asked), step):
            x = asked.x[a : a + step]
            parts.append(search.find(x, partial(Askers, reach, asked.encoder, x), n))
        return MovesFound.side_by_side([MovesFound.joined(answers) for answers in zip(*parts)])

    def accepts(self, rows: Matrix) -> Bools:
        """Which coded rows get the desired decision."""
        wanted: Bools = self.desired_[self.decision_.decide(self.encoder_.decode(rows))]
        return wanted

    def region_of(self, rows: Matrix, salt: int = 0) -> list[frozenset[str]]:
        """The regions of the groups that hold somebody with a row's quasi-identifiers."""
        texts = self.groups_.regions.text()
        places: dict[bytes, set[str]] = {}
        for row, group in zip(self._rows[:, self._quasi], self.usable_group_):
            places.setdefault(row.tobytes(), set()).add(texts[group])
        return [frozenset(places.get(np.ascontiguousarray(row).tobytes(), ())) for row in rows[:, self._quasi]]

    def distance(self, queries: Matrix, rows: Matrix, regions: list[Region]) -> Matrix:
        """Query x row: the distance to a row's region, how far it reaches, and to the row's private values."""
        shown = Regions.from_cells([dict(r.cells) for r in regions], self.table_.schema)
        blur = ncp(shown, self.table_) * len(self._quasi)
        return self.candidates_.distance(queries, rows, shown, blur)

    def _check_explainer(self) -> None:
        given = self.settings_.explainer
        if given is not None and not (
            isinstance(given, NICE)
            and given.get_params(deep=False) == NICE(justified=False, target=given.target).get_params(deep=False)
        ):
            must = "None, or NICE(reward='none', justified=False) as it is, for search='groups': labels, constraints, "
            must += "rewards and other scales would tell about the owner"
            raise bad_parameter(self.settings_.owner, "explainer", must, given)

    def _assign(self, space: Space, table: Table) -> tuple[Groups, Ints]:
        """The group of each row: as stored, or new where k new people have come."""
        k = self.settings_.k
        stored = self.settings_.groups if self.settings_.groups is not None else Groups.first(k, table)
        placed = stored.assign(table)
        group, fresh = placed.group, np.flatnonzero(placed.new)
        if len(fresh) >= k:
            part = space if len(fresh) == len(table) else space.only(fresh)
            found = self._diverse(part, self._grouped(part, table.take(fresh)), table.take(fresh))
            group[fresh] = found + len(stored.regions)
            stored = stored.extended(table, fresh, found, part.regions(boxes_of(part, found)))
        return stored, group

    def _grouped(self, space: Space, table: Table) -> Ints:
        """The group of each row, from quasi-identifiers alone."""
        if self.settings_.grouping == "clusters":
            return form_groups(space, self.settings_.k)
        from countervail.protect.mondrian.mondrian import Mondrian

        return dense(Mondrian(self.settings_.k).fit(table).cell_of_.astype(np.int64))

    def _sound(self, stored: Groups, group: Ints, table: Table) -> Bools:
        """Which groups are all there and as diverse as promised; none for those without one."""
        sound, inside = stored.whole(group), np.flatnonzero(group >= 0)
        if len(inside) and self._looks_at_secrets:
            failing = self._failing(table.take(inside))(group[inside])  # whoever waits is no part of t's yardstick
            sound[: len(failing)] &= ~failing
        return np.append(sound, False)

    def _diverse(self, space: Space, group: Ints, table: Table) -> Ints:
        """Merge groups whose sensitive values are too alike."""
        if not self._looks_at_secrets:
            return group
        s = self.settings_
        if s.sensitive is None or s.sensitive not in table.frame.columns:
            raise bad_parameter(s.owner, "sensitive", f"one of the columns {list(table.frame.columns)}", s.sensitive)
        failing = self._failing(table)
        merged = merge(space, group, failing)
        if failing(merged).any():
            raise bad_parameter(s.owner, "l", f"at most the number of values of '{s.sensitive}'", s.l)
        return merged

    @property
    def _looks_at_secrets(self) -> bool:
        return self.settings_.l is not None or self.settings_.t is not None

    def _failing(self, table: Table) -> Callable[[Ints], Bools]:
        """For group numbers of the rows: which groups are less diverse than asked."""
        s = self.settings_
        assert s.sensitive is not None
        secret, column = table.frame[s.sensitive], table.schema[s.sensitive]

        def failing(labels: Ints) -> Bools:
            tally = Tally.of(labels, secret)
            bad = np.zeros(len(tally.sizes), dtype=bool)
            if s.l is not None:
                bad |= tally.distinct() < s.l
            if s.t is not None:
                bad |= tally.distances("equal", column) > s.t + 1e-9
            return bad

        return failing


def _scaled(stored: Groups, encoder: Encoder, heom: HEOM) -> tuple[Groups, HEOM]:
    """Scales as they were when the first group was formed; the first fit stores its own."""
    names = [n for n, m in zip(encoder.names, heom.measured) if m]
    if not stored.scale:
        stored = replace(stored, scale=dict(zip(names, heom.scale.tolist())))
    return stored, replace(heom, scale=np.array([stored.scale[n] for n in names]))


def _trimmed(table: Table, rows: Bools) -> Table:
    """Some of the rows, without the categories that none of them holds unless these are declared."""
    part = table.take(rows)
    for column in part.schema:
        values = part.frame[column.name]
        if isinstance(values.dtype, pd.CategoricalDtype) and column.values is None:
            part.frame[column.name] = values.cat.remove_unused_categories()
    return part
