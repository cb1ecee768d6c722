"""The search among moves once more, from the definitions: slow, one query at a time, on frames."""

from itertools import combinations, product

import numpy as np
import pandas as pd

import countervail as cv

CITIES, LEVELS = ("a", "b", "c"), ("low", "mid", "high")
QUASI = ["age", "city", "level"]
WEIGHTS = {
    "sparsity": (1.0, 1.0, 0),
    "proximity": (1.0, 0.0, 1),
    "plausibility": (0.5, 1.0, 1),
    "typical": (0.5, 1.0, 3),
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
            "ill": rng.choice(["no", "yes", "maybe"], n),
        }
    )
    frame["ok"] = rng.choice(["no", "yes"], n)
    frame.loc[:1, "ok"] = ["no", "yes"]
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=QUASI, sensitive=["ill"])


def merit(frame, seed):
    """Weights of both signs for everything, so that cells are often impure and one move is often not enough."""
    w = np.random.default_rng(seed).normal(0, 1, 6)
    city = frame["city"].map({c: i for i, c in enumerate(CITIES)}).to_numpy(float)
    ill = frame["ill"].map({"no": 0, "yes": 1, "maybe": 2}).to_numpy(float)
    level = frame["level"].astype(object).map({v: i for i, v in enumerate(LEVELS)}).to_numpy(float)
    columns = (frame["age"].to_numpy(float) / 3, city, level, frame["pay"].to_numpy(float) / 2, frame["debt"], ill)
    total = sum(a * np.asarray(c, float) for a, c in zip(w, columns))
    return total - (8.3 * w[0] + w[1] + w[2] + 2.4 * w[3] + 0.5 * w[4] + w[5]) - 0.4


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
    rng = np.random.default_rng(seed)
    frame = table.frame.copy()
    private = [n for n in frame.columns if n not in table.schema.names("quasi")]
    for g in np.unique(group):
        rows = np.flatnonzero(group == g)
        frame.loc[rows, private] = frame.loc[rng.permutation(rows), private].to_numpy()
    return cv.Table(frame.astype(table.frame.dtypes.to_dict()), table.schema)


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
        self.candidates = [(g, v) for g, v in self.pairs if self._eligible(g, v, frame[QUASI][group == g])]

    def _eligible(self, g, v, members):
        rows = members.assign(**dict(zip(self.private, v)))[self.names]
        return bool((self.model(self._typed(rows)) == "yes").all())

    def _typed(self, rows):
        return rows.astype(self.table.frame[self.names].dtypes.to_dict())

    def options(self, name, cell):
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

    def width(self, name, cell):
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
                out[n] = (near, gap + 2 * self.width(n, cell), self.options(n, cell))
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
