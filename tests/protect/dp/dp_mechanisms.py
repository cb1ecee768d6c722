"""Our mechanisms on a tiny public domain, as functions of coded records: what the audit looks at.

They are built from the very parts that the protectors use (records, pool, randomiser, search); only the model is a
fixed rule, so that 100,000 answers take seconds.
"""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd

import countervail as cv
from countervail.core.rng import Words
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.histograms import noisy_counts
from countervail.protect.dp.pool import Pool, PoolRecords
from countervail.protect.dp.pool_search import Pooled, search, search_several
from countervail.protect.dp.randomiser import Randomiser, choose

K = 3
SIZES = (2, 4, 5)
X = np.array([0, 0, 0])


def _grid():
    frame = pd.DataFrame({"sex": ["f"], "job": ["a"], "hours": [0]})
    domains = {"sex": ["f", "m"], "job": ["a", "b", "c", "d"], "hours": (0, 4)}
    return Grid.of(cv.Table.from_frame(frame, domains=domains), "audit")


GRID = _grid()
DISTANCES = GRID.distances(X[None, :].astype(float))
WANTED = np.array([[False, True]])


def rule(rows):
    """The model: a fixed rule on sex, job and hours."""
    sex, job, hours = np.moveaxis(np.asarray(rows), -1, 0)
    return ((job >= 1) & (hours >= 2)) | ((sex == 1) & (hours >= 3))


def nearest(table, k=K):
    """The k nearest records of the wanted class, by the shipped code."""
    table = np.asarray(table, dtype=np.int64).reshape(-1, 3)
    return PoolRecords.of(table, rule(table).astype(np.int64), GRID.default).nearest(DISTANCES, WANTED, k)


def number(rows):
    """Each row of coded columns as one number; several rows of an outcome as one number too."""
    one = (rows[..., 0] * 4 + rows[..., 1]) * 5 + rows[..., 2]
    return one if one.ndim == 1 else (one * (41 ** np.arange(one.shape[1]))).sum(axis=1)


def make_pool(variant, epsilon, k=K):
    shares = (Fraction(1, 3),) * 3
    return Pool.of(GRID, variant, shares, Fraction(epsilon), k, 1, 1)


def drawn_pool(variant, epsilon):
    """The whole noisy pool: the strongest view an adversary could have."""

    def mechanism(table, n):
        pool, shown = make_pool(variant, epsilon).draw(np.repeat(nearest(table), n, axis=0), Words())
        return number(np.where(shown, pool, 5)) if variant == "features" else number(pool)

    return mechanism


def answer(variant, epsilon):
    """The counterfactual that leaves."""

    def mechanism(table, n):
        pool, shown = make_pool(variant, epsilon).draw(np.repeat(nearest(table), n, axis=0), Words())
        x = np.repeat(X[None, :].astype(float), n, axis=0)
        pooled = Pooled(x, pool, shown, np.repeat(DISTANCES, n, axis=0), GRID.numbers())
        cells, valid = search(pooled, lambda rows, owner: (rule(rows), rows.sum(axis=1) / 12))
        return number(cells.astype(np.int64)) * 2 + valid

    return mechanism


def three_answers(epsilon):
    """Three answers from one pool, within constraints: hours may not be 4, and two columns may change."""

    def mechanism(table, n):
        pool, shown = make_pool("all", epsilon).draw(np.repeat(nearest(table), n, axis=0), Words())
        x = np.repeat(X[None, :].astype(float), n, axis=0)
        allowed = np.ones((n, *GRID.numbers().shape), dtype=bool)
        allowed[:, 2, 4] = False
        most = np.full(n, 2)
        pooled = Pooled(x, pool, shown, np.repeat(DISTANCES, n, axis=0), GRID.numbers(), allowed, most)
        cells = search_several(pooled, lambda rows, owner: (rule(rows), rows.sum(axis=1) / 12), 3)
        return number(np.where(np.isnan(cells), 0, cells).astype(np.int64).reshape(n, 3, 3))

    return mechanism


def slot_probabilities(epsilon):
    """Record x record: how likely each noisy record is, from the shipped weights."""
    r = randomiser(epsilon)
    tables = [np.array(r.table(j), dtype=float) for j in range(3)]
    shares = [t / t.sum(axis=1, keepdims=True) for t in tables]
    return np.kron(np.kron(shares[0], shares[1]), shares[2])


def telling_pool(epsilon, table, neighbour):
    """The whole pool seen through its exact likelihood ratio: 64,000 outcomes become some fifty that tell most."""
    p = slot_probabilities(epsilon)
    sides = [number(nearest(t)[0]) for t in (table, neighbour)]

    def likelihood(slots, side):
        orders = (list(order) for order in permutations(range(K)))
        return sum(np.prod([p[side[o], slots[:, i]] for i, o in enumerate(order)], axis=0) for order in orders)

    def mechanism(t, n):
        pool, _ = make_pool("all", epsilon).draw(np.repeat(nearest(t), n, axis=0), Words())
        slots = np.stack([number(pool[:, i]) for i in range(K)], axis=1)
        return np.rint(25 * np.log(likelihood(slots, sides[0]) / likelihood(slots, sides[1]))).astype(np.int64)

    return mechanism


def nice(table):
    """A plain explainer: from x to the nearest record, column by column, until the decision changes."""
    goal = nearest(table, 1)[0, 0]
    row = X.copy()
    for j in (2, 1, 0):
        if rule(row):
            break
        row[j] = goal[j]
    return row


def randomiser(epsilon):
    return Randomiser.over(GRID, [Fraction(epsilon) / 3] * 3)


def noisy(epsilon):
    return lambda table, n: number(randomiser(epsilon).draw(np.tile(nice(table), (n, 1)), Words()))


def noisy_until_valid(epsilon, stop=0.1):
    """Twice epsilon in all, so each draw gets half."""

    def mechanism(table, n):
        words, true = Words(), nice(table)
        out, open_ = np.empty((n, 3), dtype=np.int64), np.arange(n)
        while len(open_):
            out[open_] = randomiser(epsilon / 2).draw(np.tile(true, (len(open_), 1)), words)
            gives_up = (words.draw(len(open_)) >> np.uint64(4)).astype(np.int64) < int(stop * 2**60)
            open_ = open_[~rule(out[open_]) & ~gives_up]
        return number(out)

    return mechanism


def noisy_table(epsilon):
    """The nearest valid row of the shuffled noisy table."""

    def mechanism(table, n):
        words, size = Words(), len(table)
        rows = randomiser(epsilon).draw(np.broadcast_to(table, (n, size, 3)), words)
        rows = np.take_along_axis(rows, choose(n, size, size, words)[:, :, None], axis=1)
        far = DISTANCES[0, np.arange(3), rows].sum(axis=2) + (~rule(rows)) * 2**40
        return number(rows[np.arange(n), far.argmin(axis=1)])

    return mechanism


def histogram(epsilon, table, neighbour, sensitivity):
    """All noisy counts of all columns, seen through their exact log-likelihood ratio: the best test there is."""

    def counts(t):
        out = np.zeros((2, 3, 5), dtype=np.int64)
        for row in t:
            for j, v in enumerate(row):
                out[int(rule(row)), j, v] += 1
        return out.ravel()

    here, there = counts(table), counts(neighbour)
    moved = here != there

    def mechanism(t, n):
        true = counts(t)[moved]
        seen = noisy_counts(np.tile(true, (n, 1)), sensitivity, Fraction(epsilon) / 3)
        return (np.abs(seen - there[moved]) - np.abs(seen - here[moved])).sum(axis=1)

    return mechanism


BASE = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 1, 4]]
PAIRS = {
    "nearest replaced, other columns change": ([*BASE, [1, 0, 3]], [*BASE, [0, 3, 2]]),
    "k-th displaced": ([*BASE, [1, 3, 4]], [*BASE, [0, 1, 2]]),
    "singleton value": ([[0, 1, 2]] * 3, [[0, 1, 2], [0, 1, 2], [1, 3, 4]]),
    "class flip": ([[0, 1, 2], [0, 2, 2], [0, 3, 2]], [[0, 1, 2], [0, 2, 2], [0, 3, 1]]),
    "no candidate": ([[0, 0, 1]], [[1, 3, 4]]),
}
UNEQUAL = {
    "first candidate added": ([[0, 0, 0]], [[0, 0, 0], [1, 3, 4]]),
    "nearest removed": (BASE, BASE[1:]),
}


def pairs(*, unequal=True):
    """Neighbouring tables; with tables of unequal size, unless the promise is about replacing only."""
    found = {**PAIRS, **(UNEQUAL if unequal else {})}
    return {name: tuple(np.array(t, dtype=np.int64) for t in pair) for name, pair in found.items()}


def ours(epsilon):
    """Name -> (mechanism for a pair, whether add/remove is promised too); the claim is epsilon."""
    variants = ("all", "sampled", "features")
    fixed = {
        "three answers within constraints": (three_answers(epsilon), True),
        **{f"pool, {v}": (drawn_pool(v, epsilon), True) for v in variants[1:]},
        **{f"answer, {v}": (answer(v, epsilon), True) for v in variants},
        "noisy": (noisy(epsilon), True),
        "noisy until valid": (noisy_until_valid(epsilon), True),
        "noisy table": (noisy_table(epsilon), False),
    }
    return {
        "pool, all": (lambda pair: telling_pool(epsilon, *pair), True),
        **{name: (lambda pair, m=m: m, unequal) for name, (m, unequal) in fixed.items()},
    }


def histograms(epsilon):
    """The histograms have a promise of each kind; their noise is OpenDP's, which is slow, so they stand apart."""
    return {
        **{f"{n} (replace-one)": (histogram(epsilon, *p, 2), p) for n, p in pairs(unequal=False).items()},
        **{f"{n} (add-remove)": (histogram(epsilon, *pairs()[n], 1), pairs()[n]) for n in UNEQUAL},
    }
