"""Mechanisms that break their promise: the published ones, and ours with one precondition taken away at a time.

Each is (mechanism, table, neighbour, claim). An audit that does not catch all of them is no audit.
"""

import math
from fractions import Fraction

import numpy as np
from dp_mechanisms import K, make_pool, nearest, nice, number, pairs, randomiser, rule

from countervail.core.rng import Words, generator
from countervail.protect.dp.randomiser import Randomiser, choose

PAIR = pairs()
RNG = generator(None)


def published_response(values, m, epsilon):
    """Redraws over all m values with probability 1 / (1 + e**epsilon): keeps more than it promises."""
    redrawn = RNG.random(values.shape) < 1 / (1 + np.exp(epsilon))
    return np.where(redrawn, RNG.integers(0, m, values.shape), values)


def published_laplace(values, m, epsilon):
    noise = RNG.laplace(size=values.shape) * (m - 1) / epsilon
    return np.clip(np.rint(values + noise), 0, m - 1).astype(np.int64)


def published_column(values, j, epsilon):
    m = (2, 4, 5)[j]
    return published_laplace(values, m, epsilon) if j == 2 else published_response(values, m, epsilon)


def published_inline(table, n):
    """Inline_DP: which columns are noisy comes from a true neighbour, and shows."""
    near = nearest(table)[0]
    basis = near[RNG.integers(0, K, n)]
    differs = basis != 0
    share = 1.0 / np.maximum(differs.sum(axis=1), 1)
    pool = np.broadcast_to(near, (n, K, 3)).copy()
    for j in range(3):
        pool[:, :, j] = np.where(differs[:, None, j], published_column(pool[:, :, j], j, share[:, None]), 0)
    cells = np.zeros((n, 3), dtype=np.int64)
    for j in (2, 1, 0):
        moved = cells.copy()
        moved[:, j] = pool[:, :, j].max(axis=1)
        cells = np.where(rule(cells)[:, None], cells, moved)
    return number(cells)


def published_post(table, n):
    """Noise on the changed columns only: which they are is released exactly."""
    row = nice(table)
    out = np.tile(row, (n, 1))
    changed = np.flatnonzero(row)
    for j in changed:
        out[:, j] = published_column(out[:, j], j, 1.0 / len(changed))
    return number(out)


def published_noisy_max(table, n):
    """Gaussian noise, and only values that occur can win."""
    row, valid = nice(table), table[rule(table)]
    out = np.tile(row, (n, 1))
    changed = np.flatnonzero(row)
    for j in changed:
        counts = np.bincount(valid[:, j], minlength=5).astype(float)
        scores = counts + RNG.normal(scale=len(changed), size=(n, 5))
        scores[:, counts == 0] = -np.inf
        out[:, j] = scores.argmax(axis=1)
    return number(out)


def ranked_pool(table, n):
    """Three neighbours' bits in the order of their distance, each noisy on its own."""
    bits = np.broadcast_to(table[np.argsort(table[:, 0], kind="stable")][:3, 1], (n, 3))
    kept = RNG.random((n, 3)) < math.e / (1 + math.e)
    return np.where(kept, bits, 1 - bits) @ [1, 2, 4]


def status_of_the_table(table, n):
    """Says "no counterfactual" when the table has no candidate."""
    if not rule(table).any():
        return np.full(n, -1)
    return number(make_pool("all", 1).draw(np.repeat(nearest(table), n, axis=0), Words())[0])


def plain_dummies(table, n):
    """Empty slots are shown as they are instead of passing through the noise; how many show the dummy tells."""
    noisy = randomiser(1).draw(np.repeat(nearest(table), n, axis=0), Words())
    dummy = (noisy == [0, 0, 2]).all(axis=2)
    dummy[:, np.arange(K) >= int(rule(table).sum())] = True
    return dummy.sum(axis=1)


def reused_shuffle(table, n):
    """Two queries, one permutation: slot i of the first answer is linked to slot i of the second."""
    first = table[np.argsort(table[:, 0], kind="stable")][:3, 1]
    second = np.array([0, 1, 2])  # the neighbours of the other query, far from the record in question
    order = choose(n, 3, 3, Words())
    bits, marks = np.broadcast_to(first, (n, 3)), np.broadcast_to(second, (n, 3))
    kept = RNG.random((n, 3)) < math.e**3 / (1 + math.e**3)
    kept_marks = RNG.random((n, 3)) < math.e**3 / (2 + math.e**3)
    others = (marks + 1 + RNG.integers(0, 2, (n, 3))) % 3
    seen = np.where(kept, bits, 1 - bits) * 3 + np.where(kept_marks, marks, others)
    return np.take_along_axis(seen, order, axis=1) @ [1, 6, 36]


def classes_by_batch(table, n):
    """A record is a candidate when it lies above the batch's mean: one record moves all the others in or out."""
    near = table[table[:, 2] >= table[:, 2].mean()][:K]
    noisy = randomiser(3).draw(np.broadcast_to(near, (n, *near.shape)), Words())
    return (noisy == [0, 1, 2]).sum(axis=(1, 2))


def fitted_imputer(table, n):
    """Missing hours (5) become the largest hours in the table: one record changes every imputed one."""
    hours = table[:, 2]
    filled = np.where(hours == 5, hours[hours < 5].max(initial=0), hours)[:K]
    noisy = Randomiser.of([5], [True], [Fraction(1)]).draw(np.broadcast_to(filled[:, None], (n, K, 1)), Words())
    return noisy.sum(axis=(1, 2))


def error_outside_the_domain(table, n):
    """Fails when a record of the table lies outside."""
    outside = (table >= [2, 4, 5]).any()
    return np.full(n, -1) if outside else number(randomiser(1).draw(np.tile(table[0], (n, 1)), Words()))


def domain_from_the_data(table, n):
    """Noise over the values that occur: a value that nobody has cannot come out."""
    values = np.unique(table[:, 1])
    kept = RNG.random(n) < math.e / (math.e + len(values) - 1)
    return np.where(kept, table[0, 1], RNG.choice(values, n))


def query_from_the_table(table, n):
    """The factual row of the answer is a record of the table."""
    return np.full(n, number(table[:1])[0])


def visible_retries(table, n):
    """Tells how many draws it took until sex was 1: each further failure tells as much as the first."""
    one = Randomiser.of([2], [False], [Fraction(1)])
    words, tries, open_ = Words(), np.zeros(n, dtype=np.int64), np.arange(n)
    for _ in range(25):
        tries[open_] += 1
        open_ = open_[one.draw(np.tile(table[0, :1], (len(open_), 1)), words)[:, 0] == 0]
    return tries


def shown_slot(table, n):
    """The sampled slot's rank is shown: it was the secret that allowed less noise."""
    slot = RNG.integers(0, K, n)
    budget = math.log(1 + K * (math.e - 1))
    noisy = randomiser(budget).draw(nearest(table)[0][slot], Words())
    return number(noisy) * K + slot


def seeded(table, n):
    """The seed is known: the noise is always the same."""
    return np.full(n, number(randomiser(1).draw(table[None, :1], Words(0))[0])[0])


def target_kept(table, n):
    """The noisy table with the true target beside it."""
    return np.full(n, int(rule(table).sum()))


def light_histogram(table, n):
    """Noise for adding or removing a record, where one is replaced: two counts move, not one."""
    counts = np.bincount(table[:, 1], minlength=4)
    p = 1 - math.exp(-1)
    noise = RNG.geometric(p, (n, 4)) - RNG.geometric(p, (n, 4))
    return np.clip((counts + noise) - counts.mean().astype(int), -6, 6)[:, [0, 3]] @ [1, 13]


def response_of_sixteen(table, n):
    return published_response(np.full(n, table[0, 0]), 16, 1.0)


def _rows(*rows):
    return np.array(rows, dtype=np.int64)


BITS = _rows([0, 0], [1, 1], [2, 0], [3, 1])
TRIES = _rows([0, 3, 4]), _rows([1, 3, 4])
CROWD = [*[[0, 1, 2]] * 3, *[[1, 3, 4]] * 3, *[[0, 0, 0]] * 2]
HOLES = [[0, 1, 5]] * 3
CONTROLS = {
    "published inline": (published_inline, *PAIR["nearest replaced, other columns change"], 1),
    "published post": (published_post, *PAIR["no candidate"], 1),
    "published noisy max": (published_noisy_max, *PAIR["singleton value"], 1),
    "published response, 16 values": (response_of_sixteen, _rows([0]), _rows([1]), 1),
    "ranked pool": (ranked_pool, BITS, BITS[1:], 1),
    "status of the table": (status_of_the_table, *PAIR["no candidate"], 1),
    "dummies without noise": (plain_dummies, *PAIR["no candidate"], 1),
    "one shuffle for two queries": (reused_shuffle, BITS, BITS[1:], 6),
    "classes by batch": (classes_by_batch, _rows(*CROWD, [0, 0, 0]), _rows(*CROWD, [0, 0, 4]), 3),
    "fitted imputer": (fitted_imputer, _rows(*HOLES, [0, 0, 0]), _rows(*HOLES, [0, 0, 4]), 1),
    "error outside the domain": (error_outside_the_domain, _rows([0, 1, 2]), _rows([0, 1, 7]), 1),
    "domain from the data": (domain_from_the_data, _rows([0, 1, 2], [0, 1, 2]), _rows([0, 1, 2], [0, 3, 2]), 1),
    "query from the table": (query_from_the_table, _rows([0, 1, 2]), _rows([1, 3, 4]), 1),
    "visible retries": (visible_retries, *TRIES, 2),
    "slot shown": (shown_slot, *PAIR["singleton value"], 1),
    "seeded": (seeded, _rows([0, 1, 2]), _rows([1, 3, 4]), 1),
    "true target kept": (target_kept, _rows([0, 1, 2]), _rows([0, 0, 0]), 1),
    "light histogram": (light_histogram, _rows([0, 0, 0], [0, 1, 0]), _rows([0, 3, 0], [0, 1, 0]), 1),
}
