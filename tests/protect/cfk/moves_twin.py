"""The search among moves once more, from the definitions: slow, one query at a time, on frames."""

from copy import copy
from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pandas as pd

import countervail as cv
from countervail.core.cells import fits
from countervail.protect._fitted import freeze

CITIES, LEVELS, ILL = ("a", "b", "c"), ("low", "mid", "high"), ("no", "yes", "maybe")
QUASI = ["age", "city", "level"]
WEIGHTS = {
    "sparsity": (1.0, 1.0, 0),
    "proximity": (1.0, 0.0, 1),
    "plausibility": (0.5, 1.0, 1),
    "typical": (0.5, 1.0, 3),
}
REWARDS = tuple(WEIGHTS)
LIMITS = {
    "immutable": {"immutable": ["age"]},
    "two immutable": {"immutable": ["city", "pay"]},
    "ranges": {"ranges": {"pay": (2, 6), "city": ["a", "b"]}},
    "cells in range": {"ranges": {"age": (22, 27)}},
    "monotone": {"monotone": {"age": "up", "level": "down", "pay": "up"}},
    "forbidden": {"forbidden": {"city": [("a", "b"), ("c", "a")], "ill": [("no", "yes")]}},
    "all at once": {
        "immutable": ["city"],
        "ranges": {"pay": (1, 7)},
        "monotone": {"age": "up"},
        "forbidden": {"ill": [("no", "maybe")]},
    },
}


def people(seed, n):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 30, n),
            "city": rng.choice(CITIES, n),
            "level": pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True),
            "pay": rng.integers(0, 8, n),
            "debt": rng.random(n).round(2),
            "ill": rng.choice(ILL, n),
        }
    )
    frame["ok"] = rng.choice(["no", "yes"], n)
    frame.loc[:1, "ok"] = ["no", "yes"]
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=QUASI, sensitive=["ill"])


def merit(frame, seed):
    """Weights of both signs for everything, so that cells are often impure and one move is often not enough."""
    w = np.random.default_rng(seed).normal(0, 1, 6)
    city, level, ill = (_codes(frame[n], values) for n, values in (("city", CITIES), ("level", LEVELS), ("ill", ILL)))
    columns = (frame["age"].to_numpy(float) / 3, city, level, frame["pay"].to_numpy(float) / 2, frame["debt"], ill)
    total = sum(a * np.asarray(c, float) for a, c in zip(w, columns))
    return total - (8.3 * w[0] + w[1] + w[2] + 2.4 * w[3] + 0.5 * w[4] + w[5]) - 0.4


def _codes(values, known):
    held = np.asarray(values, dtype=object)
    return sum((i * (held == v) for i, v in enumerate(known)), np.zeros(len(held)))


def labels(seed):
    """A model that gives labels only."""
    return lambda frame: np.where(merit(frame, seed) > 0, "yes", "no")


def scores(seed):
    """The same model with scores of "no" and "yes"."""

    def scored(frame):
        yes = 1 / (1 + np.exp(-merit(frame, seed)))
        return np.column_stack([1 - yes, yes])

    return scored


def permuted(table, group, seed):
    """The same people with their private vectors (labels included) permuted within groups."""
    rng, order = np.random.default_rng(seed), np.arange(len(table))
    for g in np.unique(group):
        rows = np.flatnonzero(group == g)
        order[rows] = rng.permutation(rows)
    quasi, moved = table.schema.names("quasi"), table.frame.take(order)
    own = {n: (table.frame if n in quasi else moved)[n].array for n in table.frame.columns}
    return cv.Table(pd.DataFrame(own), table.schema)


def otherwise(protector, **parameters):
    """A fitted protector as if it had been fitted with another reward, other constraints or more answers."""
    other, search = copy(protector), copy(protector.search_)
    for name, value in parameters.items():
        setattr(other, name, value)
    search.settings_ = replace(other._settings(), k=search.settings_.k, previous=None, explainer=None)
    search._settle_moves()
    other.search_, other.fitted_as_ = search, freeze(other)
    return other


def values_of(cell, name, table):
    """Every value that a cell stands for."""
    if isinstance(cell, pd.Interval):
        return [v for v in table.frame[name].unique().tolist() if fits(v, cell)]
    return list(cell) if isinstance(cell, frozenset) else [cell]


def breaches(e, table, immutable=(), ranges=None, monotone=None, forbidden=None):
    """The features of answers that break a constraint with any value of their cell."""

    def rank(name, value):
        return LEVELS.index(value) if name == "level" else value

    def breaks(name, start, end):
        allowed, way = (ranges or {}).get(name), (monotone or {}).get(name)
        if allowed is not None and not (allowed[0] <= end <= allowed[1] if name in ("age", "pay") else end in allowed):
            return True
        if way is not None and (rank(name, end) - rank(name, start)) * (1 if way == "up" else -1) < 0:
            return True
        return (start, end) in (forbidden or {}).get(name, ()) or (name in immutable and end != start)

    return [
        name
        for answer in (a for a in e if a.found)
        for name, cell in answer.cells.items()
        if any(breaks(name, answer.factual[name], v) for v in values_of(cell, name, table))
    ]


def impure(e, table, model):
    """How many combinations of the cells of answers lead elsewhere than to "yes"."""
    rows = [
        dict(zip(answer.cells, made))
        for answer in e
        if answer.found
        for made in product(*(values_of(cell, name, table) for name, cell in answer.cells.items()))
    ]
    if not rows:
        return 0
    frame = pd.DataFrame(rows).astype(table.frame.dtypes[table.schema.features].to_dict())
    said = model(frame)
    return int((said != "yes").sum() if said.ndim == 1 else (said[:, 1] <= said[:, 0]).sum())


class Twin:
    """Everything from the table, the groups and a function that gives labels."""

    def __init__(self, table, group, regions, model, immutable=()):
        self.table, self.model, self.immutable = table, model, set(immutable)
        self.names = table.schema.features
        self.private = [n for n in self.names if n not in QUASI]
        frame = table.frame
        self.range = {n: float(np.ptp(frame[n])) or 1.0 for n in ("age", "pay", "debt")}
        self.cells = [regions[g].cells for g in range(len(regions))]
        self.pairs = sorted({(int(g), tuple(row)) for g, row in zip(group, frame[self.private].to_numpy().tolist())})
        # Asked for again and again.
        self.options, self.width = cache(self._options), cache(self._width)
        self.candidates = self._eligible([frame[QUASI][group == g].to_dict("records") for g in range(len(regions))])

    def _eligible(self, members):
        """The pairs whose private vector leads to the decision with every member's quasi-identifiers."""
        rows = [(pair, own | dict(zip(self.private, pair[1]))) for pair in self.pairs for own in members[pair[0]]]
        good = self.model(self._typed(pd.DataFrame([row for _, row in rows])[self.names])) == "yes"
        failing = {pair for (pair, _), ok in zip(rows, good) if not ok}
        return [pair for pair in self.pairs if pair not in failing]

    def _typed(self, rows):
        return rows.astype(self.table.frame[self.names].dtypes.to_dict())

    def _options(self, name, cell):
        if isinstance(cell, pd.Interval):
            values = sorted(set(self.table.frame[name].tolist()))
            return [v for v in values if cell.left <= v <= cell.right]
        return sorted(cell, key=LEVELS.index if name == "level" else str) if isinstance(cell, frozenset) else [cell]

    def gap(self, name, value, cell):
        """Distance of a value to a cell, its nearest member, and whether it lies outside."""
        options = self.options(name, cell)
        if name == "age":
            near = min(max(value, options[0]), options[-1])
            return abs(near - value) / self.range["age"], near, not options[0] <= value <= options[-1]
        if value in options:
            return 0.0, value, False
        if name == "level":
            near = min(options, key=lambda o: (abs(LEVELS.index(o) - LEVELS.index(value)), LEVELS.index(o)))
            return abs(LEVELS.index(near) - LEVELS.index(value)) / 2, near, True
        return 1.0, options[0], True

    def _width(self, name, cell):
        options = self.options(name, cell)
        if name == "age":
            return (options[-1] - options[0]) / self.range["age"]
        if name == "level":
            return (LEVELS.index(options[-1]) - LEVELS.index(options[0])) / 2
        return len(options) / self.table.frame[name].nunique() if len(options) > 1 else 0.0

    def term(self, name, a, b):
        return float(a != b) if name == "ill" else abs(a - b) / self.range[name]

    def away(self, row, pair, skip=()):
        g, v = pair
        total = sum(
            self.gap(n, row[n], self.cells[g][n])[0] + self.width(n, self.cells[g][n]) for n in QUASI if n not in skip
        )
        return total + sum(self.term(n, row[n], b) for n, b in zip(self.private, v) if n not in skip)

    def near(self, row, most=50):
        """The nearest candidates that have something to offer."""
        able = [c for c in self.candidates if self.moves(row, c)]
        return sorted(able, key=lambda c: (round(self.away(row, c, self.immutable), 9), c))[:most]

    def moves(self, row, pair):
        """What may move: nearest value, cost and all values."""
        g, v = pair
        out = {}
        for n in QUASI:
            gap, near, outside = self.gap(n, row[n], self.cells[g][n])
            if outside:
                cell = self.cells[g][n]
                out[n] = (near, gap + 8 * self.width(n, cell), self.options(n, cell))
        out |= {n: (b, self.term(n, row[n], b), [b]) for n, b in zip(self.private, v) if b != row[n]}
        return {n: m for n, m in out.items() if n not in self.immutable}

    def pure_sets(self, row, most=3):
        """All pure sets of up to `most` features towards the nearest candidates: features, cost, nearest point."""
        asked, sets = [], []
        for pair in self.near(row):
            moves = self.moves(row, pair)
            for size in range(1, most + 1):
                for names in combinations(sorted(moves, key=self.names.index), size):
                    rows = [dict(row) | dict(zip(names, c)) for c in product(*(moves[n][2] for n in names))]
                    point = dict(row) | {n: moves[n][0] for n in names}
                    sets.append((names, sum(moves[n][1] for n in names), point, pair, len(rows)))
                    asked += rows
        if not sets:
            return []
        good = self.model(self._typed(pd.DataFrame(asked)[self.names])) == "yes"
        ends = np.cumsum([s[-1] for s in sets])
        return [s[:-1] for s, end in zip(sets, ends) if good[end - s[-1] : end].all()]

    def best(self, row, reward):
        """The fewest features that are enough, and the keys of the best sets that the reward allows; None without."""
        way, near, spare = WEIGHTS[reward]
        sets = self.pure_sets(row)
        if not sets:
            return None
        fewest = min(len(names) for names, *_ in sets)
        allowed = [s for s in sets if len(s[0]) <= fewest + spare]
        keys = [way * cost + near * self.nearness(point) for _, cost, point, _ in allowed]
        if reward != "plausibility":
            return fewest, {min(keys)}
        tied = [s for s, key in zip(allowed, keys) if key < min(keys) + 1e-9]
        return fewest, {
            way * cost + near * self.nearness(point) for s in tied for _, cost, point, _ in self.ends(row, s)
        }

    def ends(self, row, given, further=5):
        """Where small steps that are worth it lead from a set of moves; several ends where steps are tied."""
        names, _, here, _ = given
        away, moves = self.nearness(here), {pair: self.moves(row, pair) for pair in self.near(row)}
        now, wider = {n: moves[given[3]][n] for n in names}, []
        for pair, offered in moves.items():
            if any(offered.get(n) != now[n] for n in names):
                continue
            for n, (value, cost, _) in offered.items():
                left = self.nearness(here | {n: value})
                if n not in now and 0.1 * away <= cost <= 0.05 and away - left >= 0.1 * away:
                    made = tuple(sorted((*names, n), key=self.names.index))
                    point, total = here | {n: value}, sum(offered[m][1] for m in made)
                    if self._pure(row, {m: offered[m][2] for m in made}):
                        wider.append((total / 2 + left, (made, total, point, pair)))
        if not wider or not further:
            return [given]
        least = min(key for key, _ in wider)
        return [end for key, s in wider if key < least + 1e-9 for end in self.ends(row, s, further - 1)]

    def _pure(self, row, values):
        rows = [dict(row) | dict(zip(values, c)) for c in product(*values.values())]
        return bool((self.model(self._typed(pd.DataFrame(rows)[self.names])) == "yes").all())

    def nearness(self, point):
        return min(self.away(point, pair) for pair in self.pairs)
