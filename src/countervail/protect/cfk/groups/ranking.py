"""Candidates in the order of a native explainer that sees the sealed table alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.core.errors import bad_parameter
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.explain.nice import NICE
from countervail.model.decision import Decision
from countervail.protect.cfk.base import SearchSettings
from countervail.protect.cfk.groups.candidates import Candidates, SetShape, SpanShape
from countervail.protect.cfk.groups.group_table import GroupTable
from countervail.protect.cfk.moves.askers import CANDIDATES, WAVES, Askers, Reachable


def another_order(settings: SearchSettings) -> Any:
    """The explainer whose order is asked for; None for that of `NICE(reward="none", justified=False)`.

    It is fitted to the sealed table, so that nothing that it does can tell about an owner.
    """
    fresh = settings.native()
    plain = NICE(justified=False, target=fresh.target).get_params(deep=False)
    if isinstance(fresh, NICE) and fresh.get_params(deep=False) == plain:
        return None
    if getattr(fresh, "justified", False):
        must = "one with justified=False for search='groups': a sealed table has no labels"
        raise bad_parameter(settings.owner, "explainer", must, settings.explainer)
    return fresh


class SealedRanks:
    """A native explainer fitted to one row for each pair of a group and a private vector, in order of content.

    A row has the private vector and, for quasi-identifiers, a value in the middle of the group's cell: whatever the
    explainer does is a function of the sealed table, the model and the query.
    """

    def __init__(self, explainer: Any, made: GroupTable, decision: Decision, model: Any, eligible: Ints) -> None:
        every = Candidates(made)
        rows, points = every.private.copy(), _points(made, every.shapes)
        rows[:, made.quasi] = points[every.group][:, made.quasi]
        frame = made.encoder.decode(rows)
        labels = decision.labels(decision.decide(frame)) if len(frame) else pd.Series([], dtype=object)
        self._explainer = None
        if labels.nunique() > 1:
            target = str(made.schema.target)
            # What may be asked of people is for the moves: single columns move, whole rows would rarely be allowed.
            schema = made.schema.without_identifiers().without_actions()
            rows_of = Table(frame.assign(**{target: labels.to_numpy()})[schema.names()], schema)
            self._explainer = explainer.fit(rows_of, model)
        self._place = np.full(len(rows) + 1, -1, dtype=np.int64)  # the last is that of nobody
        self._place[eligible] = np.arange(len(eligible))

    def of(self, asked: Queries, n: int) -> Ints:
        """Query x rank: the candidates that would answer first, of those that may be handed out (-1: none left)."""
        out = np.full((len(asked), n), -1, dtype=np.int64)
        if self._explainer is None:  # everybody gets the same decision: nobody is unlike
            return out
        near = self._explainer.nearest(asked.frame, min(n, len(self._place) - 1))
        places = self._place[near]
        order = np.argsort(places < 0, axis=1, kind="stable")
        out[:, : places.shape[1]] = np.take_along_axis(places, order, axis=1)
        return out


class RankedAskers(Askers):
    """Queries in codes with candidates in a given order."""

    def __init__(
        self, within: Reachable, encoder: Encoder, x: Matrix, ranks: Ints, blocked: Bools, step: int = CANDIDATES
    ) -> None:
        super().__init__(within, encoder, x, blocked, step)
        self._ranks = ranks

    def _ranked(self, at: Ints, n: int) -> Ints:
        return self._ranks[at, :n]


LOOKED_AT = CANDIDATES * WAVES


def _points(made: GroupTable, shapes: list[SpanShape | SetShape]) -> Floats:
    """Group x column: a value in the middle of each cell, of those that the register has; labels have no middle."""
    out = np.zeros((len(made), len(made.encoder.codings)))
    for shape in shapes:
        coding, none = made.encoder.codings[shape.column], np.zeros(0)
        register = made.register.get(coding.name, none)
        for g in range(len(made)):
            values = shape.options(g, register)
            known = values[~np.isnan(values)] if coding.numeric else values[values != coding.missing]
            known = known if len(known) else values
            out[g, shape.column] = known[0 if coding.column.type == "categorical" else (len(known) - 1) // 2]
    return out
