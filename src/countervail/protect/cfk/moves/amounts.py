"""Round amounts: a private number that moves leaves as a rounder one, nearer to the asker where the model allows it.

Everything here is a function of the query, the model, public constraints and the k-anonymous table, as the moves are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Coding, Encoder
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.offers import named
from countervail.protect.cfk.moves.sets import SetSearch, Weights

_DIGITS: Final = 3  # of the way from her value to the candidate's
_BEYOND: Final = 0.1  # share of the way that a number may lie beyond the candidate's to be rounder
_FEW: Final = 20  # so few values of a column may be codes: what lies between them may be no value at all
_TRIES: Final = 3  # whole cells asked about for one amount
_POWERS: Final = np.array([float(f"1e{e}") for e in range(309)])
_NEAR: Final = 1e-12  # what is lost when a float is divided

Steps = Iterator[tuple[Floats, Floats, Bools]]


@dataclass(frozen=True, eq=False, slots=True)
class AmountColumn:
    """What numbers of a column may be: `least` and `most` are the table's, `low` and `high` the declared ends."""

    dates: bool
    low: float
    high: float
    least: float
    most: float
    grid: float  # between two declared levels (0: none are declared)
    step: float  # the least that is worth asking for (0: none is declared)
    only: Floats | None  # the table's values, where they are few

    @classmethod
    def of(cls, coding: Coding, held: Floats) -> Self:
        """From the declared column and the table's values in it, whosever they are."""
        known, domain = np.unique(held[np.isfinite(held)]), coding.column.domain
        low, high = (-np.inf, np.inf) if domain is None else map(float, domain[:2])
        levels = int(domain[2]) if domain is not None and len(domain) == 3 else 1
        least, most = (known[0], known[-1]) if len(known) else (np.inf, -np.inf)
        grid = (high - low) / (levels - 1) if levels > 1 else 0.0
        step = coding.column.step or 0.0  # whoever declares one says that its multiples are values
        only = known if len(known) <= _FEW and not step else None
        return cls(coding.column.type == "date", low, high, least, most, grid, step, only)

    def ladder(self, x: Floats, v: Floats, back: float = 1.0) -> Floats:
        """Asker x rung: the values to be tried in the place of `v`, the first first; NaN where there is none.

        They lead back from `v` by at most this share of the way.
        """
        between, beyond = ladder(x, v, _firsts(x, v) if self.dates else _multiples(x, v))
        between[np.abs(between - v[:, None]) > back * np.abs(v - x)[:, None] * (1 + _NEAR)] = np.nan
        beyond[(beyond < self.least) | (beyond > self.most)] = np.nan
        out: Floats = np.concatenate([between, beyond], axis=1)
        wrong = (out < self.low) | (out > self.high)
        if self.only is not None:
            wrong |= ~np.isin(out, self.only)
        if self.step:
            wrong |= (np.abs(out - x[:, None]) < 0.5 * self.step) | ~self._is_multiple(out)
        if self.grid:
            wrong |= self._on_grid(v)[:, None] & ~self._on_grid(out)
        out[wrong] = np.nan
        for rung in range(1, out.shape[1]):
            out[(out[:, :rung] == out[:, [rung]]).any(axis=1), rung] = np.nan
        return out

    def _is_multiple(self, values: Floats) -> Bools:
        many = values / self.step
        return np.asarray(np.abs(many - np.rint(many)) < 1e-9)

    def _on_grid(self, values: Floats) -> Bools:
        places = (values - self.low) / self.grid
        return np.asarray(np.abs(places - np.rint(places)) < 1e-9)


def ladder(x: Floats, v: Floats, steps: Steps) -> tuple[Floats, Floats]:
    """Round numbers strictly between `x` and `v`, and a little beyond `v`, from coarse to fine; NaN: none.

    `steps` are the next round numbers towards x and away from it, and whether v is one itself: then it is as round as
    all finer ones.
    """
    way, round_already = v - x, np.zeros(len(x), dtype=bool)
    between, beyond = [], []
    for near, far, same in steps:
        round_already |= same
        inside = (near - x) * np.sign(way) > 0
        between.append(np.where(~round_already & inside, near, np.nan))
        close = np.abs(far - v) <= _BEYOND * np.abs(way) * (1 + _NEAR)
        beyond.append(np.where(~round_already & close, far, np.nan))
    return np.stack(between, axis=1), np.stack(beyond, axis=1)


def _multiples(x: Floats, v: Floats) -> Steps:
    """By the power of ten above the way from x to v, then by those that leave one, two and three digits of it."""
    up, top = v > x, np.floor(np.log10(np.abs(v - x)) + _NEAR).astype(np.int64)
    for digits in range(_DIGITS + 1):
        power = np.clip(top + 1 - digits, -300, 300)
        unit = _POWERS[np.abs(power)]
        many = np.where(power < 0, v * unit, v / unit)
        same = np.abs(many - np.rint(many)) <= _NEAR * np.abs(many)
        low, high = (np.where(power < 0, n / unit, n * unit) + 0.0 for n in (np.floor(many), np.ceil(many)))
        yield np.where(up, low, high), np.where(up, high, low), same


def _firsts(x: Floats, v: Floats) -> Steps:
    """By the first days of years, then of months."""
    up, days = v > x, v.astype(np.int64).astype("datetime64[D]")
    for unit in ("Y", "M"):
        first = days.astype(f"datetime64[{unit}]")
        low, high = (d.astype("datetime64[D]").astype(np.int64).astype(float) for d in (first, first + 1))
        yield np.where(up, low, high), np.where(up, high, low), low == v


@dataclass(frozen=True, eq=False, slots=True)
class Amounts:
    """The columns whose moved values may leave as rounder ones: private numbers."""

    columns: Mapping[int, AmountColumn]

    @classmethod
    def of(cls, encoder: Encoder, quasi: Bools, rows: Matrix) -> Self:
        """`rows` hold the table's private vectors, in whatever order."""
        places = [j for j, coding in enumerate(encoder.codings) if coding.numeric and not quasi[j]]
        return cls({j: AmountColumn.of(encoder.codings[j], rows[:, j]) for j in places})

    def ladder(self, column: Ints, x: Floats, v: Floats, back: float) -> Floats:
        """Asker x rung: the values to be tried, each asker in a column of her own."""
        out = np.full((len(x), 2 * (_DIGITS + 1)), np.nan)
        for j in np.unique(column).tolist():
            at = np.flatnonzero(column == j)
            tried = self.columns[j].ladder(x[at], v[at], back)
            out[at, : tried.shape[1]] = tried
        return out


@dataclass(frozen=True, eq=False, slots=True)
class Rounding:
    """Amounts for the askers of a batch: codes are the encoder's, and `allowed` is what may be asked of them."""

    amounts: Amounts
    allowed: Allowed
    encoder: Encoder
    weights: Weights

    @property
    def back(self) -> float:
        """The share of the way that may be given up for a round number; little where it was made for nearness."""
        return _BEYOND if self.weights.near > self.weights.way else 1.0

    def settle(self, search: SetSearch) -> None:
        """Make the amounts of what was found round, one feature after the other: each gets the first value of its
        ladder with which the answer holds for no smaller share of combinations than before."""
        moves, numbers = search.moves, np.zeros(search.moved.shape, dtype=bool)
        numbers[:, list(self.amounts.columns)] = True
        open_ = search.moved & numbers & np.isfinite(moves.x) & np.isfinite(search.rows) & (search.place >= 0)[:, None]
        while len(at := np.flatnonzero(open_.any(axis=1))):
            column = open_[at].argmax(axis=1)
            open_[at, column] = False
            self._round(search, at, column)

    def _round(self, search: SetSearch, at: Ints, column: Ints) -> None:
        """Make one amount of each of some answers round."""
        rungs = self.amounts.ladder(column, search.moves.x[at, column], search.rows[at, column], self.back)
        of, rung = np.nonzero(~np.isnan(rungs))
        query, points = at[of], search.rows[at[of]]
        points[np.arange(len(of)), column[of]] = rungs[of, rung]
        fine = self.allowed.holds(self.encoder, search.moves.x[query], points)[np.arange(len(of)), column[of]]
        fine &= search.earlier.others(query, search.moved[query], shown_names(search, query, points))
        query, points = query[fine], points[fine]
        if not len(query):
            return
        good = search.model.accepts_points(points)
        query, points = query[good], points[good]
        for _ in range(_TRIES):
            first = np.unique(query, return_index=True)[1]
            taken = self._take(search, query[first], points[first])
            left = ~np.isin(query, taken)
            left[first] = False
            query, points = query[left], points[left]
            if not len(query):
                return

    def _take(self, search: SetSearch, query: Ints, points: Matrix) -> Ints:
        """Take the points, one of a query, that hold with the whole cells; the queries that have theirs."""
        wide = search.moves.wide(query, search.place[query], search.moved[query])
        cells = [search.combinations(int(q), p) if w else points[:0] for q, p, w in zip(query, points, wide)]
        share = search.shares(cells)
        pure = share >= search.share[query]
        search.rows[query[pure]], search.share[query[pure]] = points[pure], share[pure]
        return query[pure]


def shown_names(search: SetSearch, query: Ints, points: Matrix) -> Ints:
    """What moved, named as moves are; a round amount by its own value."""
    moves, moved = search.moves, search.moved[query]
    names = np.where(moves.offers.quasi, moves.name[query, search.place[query]], named(points))
    return np.where(moved, names, 0)
