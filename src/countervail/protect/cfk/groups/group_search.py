"""Answers from groups: who hides with whom is settled once, and only what a group shares is looked at from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from countervail.core.arrays import Bools, Ints, Matrix
from countervail.core.constraints import Constraints
from countervail.core.encode import Encoder, require_numbers
from countervail.core.errors import SchemaError, bad_parameter, check_count
from countervail.core.files.json_data import need, places
from countervail.core.guarantee.diversity import Tally
from countervail.core.region import Region, Regions
from countervail.core.schema import Column
from countervail.core.sealed import canonical_table
from countervail.core.table import Table
from countervail.explain.answering import Aim, Answers, Queries
from countervail.model.decision import Decision
from countervail.protect._fitted import WithoutRows
from countervail.protect.cfk.base import SAMPLED, SearchSettings
from countervail.protect.cfk.groups.candidates import Candidates, Members
from countervail.protect.cfk.groups.group_table import GroupTable, labels_of, made_up, measure_reach
from countervail.protect.cfk.groups.grouping import boxes_of, dense, form_groups, merge
from countervail.protect.cfk.groups.ranking import LOOKED_AT, RankedAskers, SealedRanks, another_order
from countervail.protect.cfk.groups.roster import Roster
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.amounts import Amounts, Rounding
from countervail.protect.cfk.moves.askers import CANDIDATES, WAVES, Askers, JoinedAskers, Reachable
from countervail.protect.cfk.moves.offers import Offers, offered
from countervail.protect.cfk.moves.relax import advised
from countervail.protect.cfk.moves.search import ROOM, MoveSearch, MovesFound, PoolNearness, moved_answers, whole_cells
from countervail.protect.cfk.moves.sets import REWARDS, AskedModel
from countervail.protect.cfk.space import Space

Grouping = Literal["clusters", "mondrian"]
_CORNERS = 256  # made-up rows that tell one model from another
_ADVISED = 2  # waves of candidates, where the question is which constraint stands in the way


class GroupSearch(WithoutRows, BaseEstimator):
    """The nearest private vector of a group whose region every member's decision and every combination agree on.

    Parameters
    ----------
    cell_budget : int
        Combinations of a region that the model is asked about; above it, pureness is a sampled figure.
    grouping : {"clusters", "mondrian"}
        Small clusters, or the classes of a Mondrian table (explanations drawn from that table).
    """

    def __init__(self, *, cell_budget: int = 20_000, grouping: Grouping = "clusters") -> None:
        self.cell_budget = cell_budget
        self.grouping = grouping

    def fit(self, settings: SearchSettings, table: Table, model: Any) -> Self:
        """Settle who hides with whom, on quasi-identifiers alone, and seal it; then which candidates may be handed out.

        Nothing but this sees the table, and nothing of it stays but `sealed_` and what the model says of its groups.
        """
        owner, previous = settings.owner, settings.previous
        check_parameters(self)
        explainer = None if settings.explainer is None else another_order(settings)
        self.settings_ = replace(settings, previous=None, explainer=None)
        clean = canonical_table(table)
        # A model of other columns is refused before the work begins; nobody who waits is asked about.
        if previous is None:
            rows = made_up(Encoder.fit(clean), dict(clean.frame))
            decision = Decision.unseen(model, clean.schema, labels_of(clean), rows, owner)
        else:
            rows = previous.table.made_up()
            decision = Decision.unseen(model, previous.table.schema, previous.table.labels, rows, owner)
        check_numbers(clean, rows, decision, owner)
        self.sealed_, group = self._sealed(clean) if previous is None else self._grown(table, clean, previous)
        self.settle(model)
        made, inside = self.sealed_, group >= 0
        self.judge(Members.of(made, made.encoder.encode(clean.features[inside]), group[inside]), explainer, model)
        self._remember(table, group_of=group)
        return self

    def judge(self, members: Members, explainer: Any, model: Any) -> None:
        """Which candidates may be handed out, and in which order they are looked at."""
        whole, least = self.settings_.reward == "none", self.settings_.min_pureness
        self.candidates_.judge(self._decide, self.desired_, members, self.cell_budget, least, whole=whole)
        self._settle_moves()
        self.ranks_: SealedRanks | None = None
        if explainer is not None:
            self.ranks_ = SealedRanks(explainer, self.sealed_, self.decision_, model, self.candidates_.kept)

    def answer(self, asked: Queries) -> Answers:
        """The fewest moves towards a near candidate; without a reward, the nearest one behind its group's region."""
        if self.settings_.reward != "none":
            return self._moved(asked)
        near = self.candidates_.nearest(asked.x) if self.ranks_ is None else self.ranks_.of(asked, LOOKED_AT)[:, 0]
        return self._whole(Answers.nothing(asked.x), near)

    def whole(self, answers: Answers) -> Answers:
        """The candidate behind each answer, all of it."""
        return answers if answers.behind is None else self._whole(Answers.nothing(answers.cells), answers.behind)

    @property
    def looks_at(self) -> int:
        """Of how many nearest candidates an answer may be taken: with a reward, of all."""
        return 1 if self.settings_.reward == "none" else max(CANDIDATES * WAVES, len(self.candidates_.group))

    def _whole(self, nothing: Answers, near: Ints) -> Answers:
        """Candidates (-1: none) behind their groups' regions."""
        at, chosen = np.flatnonzero(near >= 0), near[near >= 0]
        if not len(at):
            return nothing
        rows = self.candidates_.private[chosen]
        regions = self.sealed_.sealed.regions[self.candidates_.group[chosen]]
        shown = partial(whole_cells, self.encoder_, rows, regions)
        notes = [SAMPLED if drawn else "" for drawn in self.candidates_.sampled[chosen]]
        after, pureness = self.candidates_.after[chosen], self.candidates_.pureness[chosen]
        part = Answers(rows, after, np.ones(len(at), dtype=bool), None, pureness, notes, shown)
        return nothing.filled(at, part)

    def _settle_moves(self) -> None:
        """What the sealed table offers, and what public constraints allow of it."""
        self.constraints_ = self.settings_.constraints(self.encoder_)
        self.reach_: Reachable | None = None
        if self.settings_.reward != "none" and len(self.candidates_.group):
            offers = offered(self.sealed_, self.candidates_, steps=self.settings_.amounts == "round")
            self.reach_, self.nearness_ = self._within(self.constraints_, offers), PoolNearness(offers)
            self.amounts_ = Amounts.of(self.encoder_, offers.quasi, offers.pool_private)

    def _moved(self, asked: Queries) -> Answers:
        """The fewest moves towards a near candidate, several answers to each query if several are wanted."""
        n, nothing = self.settings_.n, Answers.nothing(np.repeat(asked.x, self.settings_.n, axis=0))
        reach_ = self.reach_
        if reach_ is None:
            return nothing
        limits = self.constraints_ if asked.constraints is None else asked.constraints
        reach = reach_ if limits is self.constraints_ else self._within(limits, reach_.offers)
        model = AskedModel(self.decision_, self.desired_, asked.encoder)
        rounding = Rounding(self.amounts_, reach.allowed, asked.encoder, REWARDS[self.settings_.reward])
        found = self._found(asked, reach, n, model, rounding if self.settings_.amounts == "round" else None)
        groups = self.candidates_.group[found.behind[found.behind >= 0]]
        answers = moved_answers(nothing, found, model, asked.encoder, self.sealed_.sealed.regions[groups])
        return advised(answers, n, limits, asked, partial(self._look, asked, reach, model))

    def _within(self, constraints: Constraints, offers: Offers, like: Reachable | None = None) -> Reachable:
        return Reachable(offers, Allowed(constraints), self.settings_.min_pureness, like)

    def _look(
        self, asked: Queries, reach: Reachable, model: AskedModel, wanted: Sequence[tuple[Constraints, Ints]]
    ) -> list[MovesFound]:
        """What some of the queries would get under other constraints; all of them share their model calls."""
        model.again = True
        search = MoveSearch(model, REWARDS[self.settings_.reward], self.nearness_, self.cell_budget, _ADVISED)
        x, ends = asked.x[np.concatenate([at for _, at in wanted])], np.cumsum([len(at) for _, at in wanted])[:-1]
        kinds = [self._within(constraints, reach.offers, reach) for constraints, _ in wanted]

        def source(blocked: Bools) -> JoinedAskers:
            parts = zip(kinds, wanted, np.split(blocked, ends))
            return JoinedAskers([self._askers(kind, asked.only(at))(own) for kind, (_, at), own in parts])

        (found,) = search.find(x, source)
        return found.parted(ends)

    def _askers(self, reach: Reachable, some: Queries) -> Callable[..., Askers]:
        """The askers of a batch, given what does not move."""
        if self.ranks_ is None:
            return partial(Askers, reach, some.encoder, some.x)
        return partial(RankedAskers, reach, some.encoder, some.x, self.ranks_.of(some, LOOKED_AT))

    def _found(
        self, asked: Queries, reach: Reachable, n: int, model: AskedModel, rounding: Rounding | None
    ) -> MovesFound:
        weights = REWARDS[self.settings_.reward]
        search = MoveSearch(model, weights, self.nearness_, self.cell_budget, WAVES, rounding, WAVES, farther=True)
        short = not weights.spare  # others spend features on purpose
        step, parts = max(1, ROOM // (CANDIDATES * asked.x.shape[1])), []
        for a in range(0, len(asked), step):
            some = asked.only(np.arange(a, min(a + step, len(asked))))
            source = self._askers(reach, some)
            parts.append(search.find(some.x, source, n, partial(source, step=LOOKED_AT) if short else None))
        return MovesFound.side_by_side([MovesFound.joined(answers) for answers in zip(*parts)])

    def accepts(self, rows: Matrix) -> Bools:
        """Which coded rows get the desired decision."""
        return np.asarray(self.desired_[self._decide(rows)])

    def region_of(self, rows: Matrix, salt: int = 0) -> list[frozenset[str]]:
        """The regions of the groups that hold somebody with a row's quasi-identifiers, while the table is kept."""
        made, group = self.sealed_, self.row_group_
        inside = group >= 0
        held = made.encoder.encode(canonical_table(self.table_).features[inside])[:, made.quasi]
        texts = made.sealed.regions.text()
        places: dict[bytes, set[str]] = {}
        for row, g in zip(held, group[inside]):
            places.setdefault(row.tobytes(), set()).add(texts[g])
        return [frozenset(places.get(np.ascontiguousarray(row).tobytes(), ())) for row in rows[:, made.quasi]]

    def distance(self, queries: Matrix, rows: Matrix, regions: list[Region]) -> Matrix:
        """Query x row: the distance to a row's region, how far it reaches, and to the row's private values.

        Nothing where an explainer's order is gone by: it is none of distances to regions.
        """
        if self.ranks_ is not None:
            return np.zeros((len(queries), len(rows)))
        made = self.sealed_
        shown = Regions.from_cells([dict(r.cells) for r in regions], made.schema)
        reach = measure_reach(shown, made.schema, made.scale, made.sets)
        return self.candidates_.distance(queries, rows, shown, reach.sum(axis=1))

    @property
    def row_group_(self) -> Ints:
        """The group of each row of the fitted table (-1: none), while somebody keeps the table."""
        group: Ints = self._recall("group_of")
        return group

    def roster(self, previous: Roster | None) -> Roster:
        """Who hides with whom, for later fits to tables of the same people; while somebody keeps the table."""
        s = self.settings_
        merged = (s.l, s.t, s.sensitive if self._looks_at_secrets else None)
        return Roster.of(s.k, self.sealed_, self.table_, self.row_group_, previous, merged)

    def saved(self) -> dict[str, Any]:
        """What answers are made from, as plain JSON data."""
        if self.ranks_ is not None:
            raise SchemaError(
                "A protector that was given an 'explainer' cannot be saved. Fit without it, or fit again."
            )
        judged = self.candidates_
        return {
            "table": self.sealed_.to_dict(),
            "kept": judged.kept.tolist(),
            "pureness": judged.pureness.tolist(),
            "sampled": judged.sampled.tolist(),
            "after": judged.after.tolist(),
            "decisions": self._sampled_decisions(),
        }

    def restored(self, settings: SearchSettings, data: dict[str, Any], model: Any) -> Self:
        """As after fit, with a model that decides as the one did; to be called inside `whole_json`."""
        check_parameters(self)
        self.settings_, self.sealed_, self.ranks_ = settings, GroupTable.from_dict(data["table"]), None
        self._recount()
        self.settle(model)
        judged = self.candidates_
        kept, after = places(data["kept"], len(judged.group)), places(data["after"], len(self.desired_))
        pureness, sampled = np.array(data["pureness"], dtype=float), np.array(data["sampled"], dtype=bool)
        need(len(kept) == len(after) == len(pureness) == len(sampled) and bool((np.diff(kept) > 0).all()))
        need(bool(((pureness >= 0) & (pureness <= 1)).all() and self.desired_[after].all()))
        judged.keep(kept, pureness, sampled, after)
        self._settle_moves()
        if self._sampled_decisions() != data["decisions"]:
            raise SchemaError(
                "The model that was given decides otherwise than the one that this protector was fitted with. Give "
                "that one, or fit again."
            )
        return self

    def _recount(self) -> None:
        """What is promised must hold of what was read."""
        s, sealed = self.settings_, self.sealed_.sealed
        need(int(np.bincount(sealed.groups).min(initial=s.k)) >= s.k)
        if self._looks_at_secrets and s.sensitive is not None and s.sensitive in sealed.others.columns:
            failing = less_diverse(s, sealed.others[s.sensitive], sealed.schema[s.sensitive])
            need(not failing(sealed.groups).any())

    def settle(self, model: Any) -> None:
        """What follows from the sealed table and the model alone."""
        made, s = self.sealed_, self.settings_
        self.schema_, self.encoder_, self.caveats_ = made.schema, made.encoder, ()
        self.decision_ = Decision.unseen(model, made.schema, made.labels, made.made_up(), s.owner)
        self.desired_ = Aim(self.decision_, s.target, made.schema, s.owner).aimed()
        self.candidates_ = Candidates(made)

    def _sampled_decisions(self) -> list[int]:
        """What the model says of some made-up rows: to tell it from another one."""
        return self._decide(self.sealed_.corners(_CORNERS)).tolist() if len(self.sealed_) else []

    def _decide(self, rows: Matrix) -> Ints:
        return self.decision_.decide(self.encoder_.decode(rows))

    def _sealed(self, clean: Table) -> tuple[GroupTable, Ints]:
        """Everybody in groups; and the group of each row."""
        found, regions = self._formed(clean)
        made, place = GroupTable.first(clean, found, regions)
        return made, place[found]

    def _grown(self, table: Table, clean: Table, previous: Roster) -> tuple[GroupTable, Ints]:
        """The groups of an earlier fit that nothing has happened to, and new ones of k people who are new."""
        declared = clean.schema
        clean = clean.with_frame(clean.frame, previous.table.schema)
        matched = previous.match(table, clean)
        before = previous.table.declared_as(declared)
        fresh, found, regions = np.flatnonzero(matched.new), np.zeros(0, dtype=np.int64), Regions((), 0)
        joined = clean
        if len(fresh) >= self.settings_.k:
            joined = canonical_table(before.with_levels(clean.take(fresh), table.schema))
            found, regions = self._formed(joined)
        if not matched.stay.any() and not len(found):
            raise SchemaError(
                "No group of 'previous' is as it was, and fewer than k people are new: there is nobody to answer from."
            )
        made, old, new = before.grown(matched.stay, joined, found, regions)
        group = np.append(old, -1)[matched.group]
        if len(found):
            group[fresh] = new[found]
        self._verify_diverse(clean, group)
        return made, group

    def _verify_diverse(self, clean: Table, group: Ints) -> None:
        """Groups are merged when they are formed; labels and the distribution of all may be others by now."""
        inside = np.flatnonzero(group >= 0)
        if self._looks_at_secrets and _failing(self.settings_, clean.take(inside))(dense(group[inside])).any():
            raise SchemaError(
                "The groups of 'previous' and the new ones do not keep l or t together: labels have changed, or the "
                "values of all people are distributed otherwise than before. Nothing has left. Fit without l and t."
            )

    def _formed(self, clean: Table) -> tuple[Ints, Regions]:
        """The group of each row, from quasi-identifiers alone but for merging; and the groups' regions."""
        encoder, s = Encoder.fit(clean), self.settings_
        return self.in_groups(Space.fit(clean, encoder, encoder.encode(clean.features), s.weights, s.owner), clean)

    def in_groups(self, space: Space, clean: Table, people: Ints | None = None) -> tuple[Ints, Regions]:
        """The same of quasi-identifiers in codes, where each row is one person or stands for so many `people`."""
        k = self.settings_.k
        apart = form_groups(space, k) if self.grouping == "clusters" else _mondrian_groups(clean, k)
        found = self._diverse(space, apart, clean, people)
        return found, space.regions(boxes_of(space, found))

    def _diverse(self, space: Space, group: Ints, table: Table, people: Ints | None) -> Ints:
        """Merge groups whose sensitive values are too alike."""
        if not self._looks_at_secrets:
            return group
        s, failing = self.settings_, _failing(self.settings_, table, people)
        merged = merge(space, group, failing, people)
        if failing(merged).any():
            raise bad_parameter(s.owner, "l", f"at most the number of values of '{s.sensitive}'", s.l)
        return merged

    @property
    def _looks_at_secrets(self) -> bool:
        return self.settings_.l is not None or self.settings_.t is not None


def _failing(s: SearchSettings, table: Table, people: Ints | None = None) -> Callable[[Ints], Bools]:
    names = list(table.frame.columns)
    if s.sensitive is None or s.sensitive not in names:
        raise bad_parameter(s.owner, "sensitive", f"one of the columns {names}", s.sensitive)
    return less_diverse(s, table.frame[s.sensitive], table.schema[s.sensitive], people)


def less_diverse(
    settings: SearchSettings, secret: pd.Series, column: Column, people: Ints | None = None
) -> Callable[[Ints], Bools]:
    """For group numbers of rows, which stand for so many `people`: which groups are less diverse than asked."""

    def failing(labels: Ints) -> Bools:
        tally = Tally.of(labels, secret, people)
        bad = np.zeros(len(tally.sizes), dtype=bool)
        if settings.l is not None:
            bad |= tally.distinct() < settings.l
        if settings.t is not None:
            bad |= tally.distances("equal", column) > settings.t + 1e-9
        return bad

    return failing


def check_parameters(search: GroupSearch) -> None:
    """What is wrong with the parameters, if anything is."""
    check_count("GroupSearch", "cell_budget", search.cell_budget)
    if search.grouping not in get_args(Grouping):
        raise bad_parameter("GroupSearch", "grouping", f"one of {get_args(Grouping)}", search.grouping)


def _mondrian_groups(table: Table, k: int) -> Ints:
    """The class of each row in a Mondrian table, from quasi-identifiers alone."""
    from countervail.protect.mondrian.mondrian import class_rows

    return dense(class_rows(table, k))


def check_numbers(clean: Table, rows: pd.DataFrame, decision: Decision, owner: str) -> None:
    """Numbers may be missing where the model can do without them, as made-up rows tell."""
    numbers = [n for n in clean.schema.features if clean.schema[n].numeric]
    holes = [n for n in numbers if clean.frame[n].isna().any()]
    gone = rows.assign(**dict.fromkeys(holes, np.nan))
    # A model that fails on complete rows too fails for another reason, which is said when it is asked.
    if holes and not decision.answers_to(gone) and decision.answers_to(rows):
        require_numbers(clean.features, clean.schema, owner, "table")
