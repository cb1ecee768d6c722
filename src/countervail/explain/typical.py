"""Of several answers to a query, the one that lies best among the rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike
from countervail.explain.answering import Answers, Queries, join_answers
from countervail.explain.crowd import RowCrowd
from countervail.explain.several import choose_different

_WAY = 0.5  # what the way to an answer weighs beside that


def choose_typical(
    asked: Queries,
    parts: Sequence[Answers],
    n: int,
    crowd: RowCrowd,
    distances: Callable[[Matrix, Matrix], Floats],
) -> Answers:
    """For each query the best of its answers in all parts, then others as different as there are, `n` in all.

    Best is the least distance to the crowd plus half the distance from the query; the first of equals.
    """
    pool = join_answers(parts)
    owner: Ints = np.concatenate([np.repeat(np.arange(len(asked)), len(p.cells) // len(asked)) for p in parts])
    at = np.flatnonzero(pool.found)
    worth = np.full(len(owner), np.inf)
    if len(at):
        worth[at] = crowd.away(pool.cells[at]) + _WAY * distances(asked.x[owner[at]], pool.cells[at])
    order = np.lexsort([np.arange(len(owner)), worth, owner])
    starts = np.searchsorted(owner[order], np.arange(len(asked) + 1))
    chosen = np.full((len(asked), n), -1, dtype=np.int64)
    for q in range(len(asked)):
        mine = order[starts[q] : starts[q + 1]]
        mine = mine[pool.found[mine]]
        if not len(mine):
            continue
        best = mine[:1]
        if n > 1:
            x, rows = asked.x[q], pool.cells[mine]
            others = choose_different(x, [pool.cells[mine[0]]], rows, worth[mine], n)
            best = np.concatenate([best, mine[others]])
        chosen[q, : len(best)] = best
    return _taken(asked, pool, chosen.ravel(), n)


def within(asked: Queries, answers: Answers, most: int | None) -> Answers:
    """The answers that change at most so many columns."""
    if most is None:
        return answers
    origin = np.repeat(np.arange(len(asked)), len(answers.cells) // len(asked))
    few: Bools = unlike(asked.x[origin], answers.cells).sum(axis=1) <= most
    return Answers(answers.cells, np.where(few, answers.after, -1), answers.found & few, answers.scores)


def _taken(asked: Queries, pool: Answers, chosen: Ints, n: int) -> Answers:
    """The chosen rows of the pool (-1: none), one below the other."""
    there = chosen >= 0
    cells = np.repeat(asked.x, n, axis=0)
    after = np.full(len(chosen), -1, dtype=np.int64)
    cells[there], after[there] = pool.cells[chosen[there]], pool.after[chosen[there]]
    scores = None
    if pool.scores is not None:
        scores = np.full((len(chosen), pool.scores.shape[1]), np.nan)
        scores[there] = pool.scores[chosen[there]]
    return Answers(cells, after, there, scores)
