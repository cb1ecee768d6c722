"""The search from a pool to a counterfactual, against a plain twin that follows one query at a time."""

import numpy as np

from countervail.core.rng import generator
from countervail.protect.dp.pool_search import Pooled, search

D, M = 4, 6
NUMBERS = np.tile(np.arange(M, dtype=float), (D, 1))


def made_up(rng, queries, slots):
    x = rng.integers(0, M, (queries, D)).astype(float)
    pool = rng.integers(0, M, (queries, slots, D))
    shown = rng.random(pool.shape) < 0.8
    distances = np.abs(x[:, :, None] - np.arange(M)).astype(np.int64) * (1 << 30)
    return Pooled(x, pool, shown, distances, NUMBERS)


def model(rng, share):
    weights, limit = rng.normal(size=D), rng.uniform(-2, 6) + share
    return lambda rows, owner: (rows @ weights > limit, 1 / (1 + np.exp(-(rows @ weights))))


def twin(p, i, judge):
    """One query: single changes, then walks in step, then combinations."""
    unit, x = 1 << 30, p.x[i]
    offers = sorted({(j, int(p.pool[i, s, j])) for s, j in zip(*np.nonzero(p.shown[i])) if p.pool[i, s, j] != x[j]})
    best, cells, scores = None, None, {}

    def cost(row):
        return int(np.abs(row - x).sum()) * unit

    def ask(row):
        nonlocal best, cells
        valid, score = judge(row[None, :], np.array([i]))
        return bool(valid[0]), float(score[0]) - 1e-9 / unit * cost(row)

    def consider(found):
        nonlocal best, cells
        for row, valid in found:
            if valid and (best is None or cost(row) < best):
                best, cells = cost(row), row

    def changed(row, j, v):
        row = row.copy()
        row[j] = v
        return row

    ordered = sorted(offers, key=lambda o: cost(changed(x, *o)))
    for part in (ordered[:24], ordered[24:]):
        part = [o for o in part if best is None or cost(changed(x, *o)) < best]
        found = []
        for o in part:
            valid, scores[o] = ask(changed(x, *o))
            found.append((changed(x, *o), valid))
        consider(found)
    walks = []
    for s in range(p.pool.shape[1]):
        left = [j for j in range(D) if p.shown[i, s, j] and p.pool[i, s, j] != x[j]]
        known = [j for j in left if (j, int(p.pool[i, s, j])) in scores]
        if known:
            j = max(known, key=lambda j, s=s: scores[j, int(p.pool[i, s, j])])
            walks.append((s, changed(x, j, p.pool[i, s, j]), [h for h in left if h != j]))
    while walks:
        walks = [w for w in walks if best is None or cost(w[1]) < best]
        steps, found = [], []
        limit = best
        for s, row, left in walks:
            near = [(j, changed(row, j, p.pool[i, s, j])) for j in left]
            near = [(j, r) for j, r in near if limit is None or cost(r) < limit]
            if not near:
                continue
            asked = [(j, r, *ask(r)) for j, r in near]
            found += [(r, valid) for _, r, valid, _ in asked]
            j, r, _, _ = max(asked, key=lambda a: a[3])
            steps.append((s, r, [h for h in left if h != j]))
        consider(found)
        walks = steps
    if best is not None:
        return cells, True
    row, left, gain = x, set(offers), dict(scores)
    while gain:
        j, v = max(sorted(gain), key=lambda o: gain[o])
        row, left, gain, found = changed(row, j, v), {o for o in left if o[0] != j}, {}, []
        for o in sorted(left):
            valid, gain[o] = ask(changed(row, *o))
            found.append((changed(row, *o), valid))
        consider(found)
        if best is not None:
            return cells, True
    return row, False


def test_the_search_follows_its_plain_twin():
    rng = generator(0)
    outcomes = []
    for share in (-2, 0, 2, 4):
        for slots in (1, 3, 9):
            p, judge = made_up(rng, 25, slots), model(rng, share)
            cells, valid = search(p, judge)
            for i in range(25):
                want, ok = twin(p, i, judge)
                assert ok == valid[i]
                assert np.abs(want - p.x[i]).sum() == np.abs(cells[i] - p.x[i]).sum()
                if not ok:
                    assert np.array_equal(want, cells[i])
                outcomes.append(ok)
    assert 20 < sum(outcomes) < len(outcomes) - 20


def test_what_is_called_valid_is_valid_and_made_of_pool_values():
    rng = generator(1)
    p, judge = made_up(rng, 200, 5), model(rng, 0)
    cells, valid = search(p, judge)
    assert np.array_equal(judge(cells, np.arange(200))[0][valid], np.ones(valid.sum(), dtype=bool))
    for i in range(200):
        for j in np.flatnonzero(cells[i] != p.x[i]):
            assert cells[i, j] in p.pool[i, p.shown[i, :, j], j]


def test_a_pool_without_any_change_gives_the_query_back():
    x = np.zeros((1, D))
    p = Pooled(x, np.zeros((1, 2, D), dtype=np.int64), np.ones((1, 2, D), bool), np.zeros((1, D, M), np.int64), NUMBERS)
    cells, valid = search(p, lambda rows, owner: (np.zeros(len(rows), bool), np.zeros(len(rows))))
    assert np.array_equal(cells, x) and not valid.any()
