"""Which constraints stand between an asker and an answer: the fewest whose removal gives her one.

Asked of the same search: what is said is a function of the query, the model and the anonymised table, as answers are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.core.constraints import Constraints, must_keep
from countervail.explain.answering import Answers, Queries
from countervail.protect.cfk.moves.search import MovesFound

Look = Callable[[Sequence[tuple[Constraints, Ints]]], list[MovesFound]]
Part = tuple[str, int]  # which kind of constraint, on which column (-1: on none)
_KINDS: Final = ("ways", "allowed", "forbidden", "until")
_WORDS: Final = {
    "no": "that '{}' stays as it is",
    "up": "that '{}' does not go down",
    "down": "that '{}' does not go up",
    "kept": "that '{}' keeps its value",
    "allowed": "the range of '{}'",
    "until": "the range of '{}'",
    "forbidden": "the forbidden steps of '{}'",
    "max_changes": "the limit on the number of changes",
}
_MOST: Final = 3  # constraints named together
_SEARCHES: Final = 40  # sets of constraints that are tried without
AT_ONCE: Final = 8  # of them, where they share model calls: who is served by the first need not wait for the last
NOTHING_HELPS: Final = "Without any constraints there would be none either."


def parts_of(constraints: Constraints) -> list[Part]:
    """The constraints one by one."""
    ways = constraints.ways
    parts = [("ways", j) for j in sorted(ways) if ways[j] == "no"]
    parts += [("allowed", j) for j in sorted(constraints.allowed)]
    parts += [("ways", j) for j in sorted(ways) if ways[j] != "no"]
    parts += [("until", j) for j, (way, _) in sorted(constraints.until.items()) if ways.get(j) == way]
    parts += [("forbidden", j) for j in sorted(constraints.forbidden)]
    return parts if constraints.max_changes is None else [*parts, ("max_changes", -1)]


def without(constraints: Constraints, parts: Sequence[Part]) -> Constraints:
    """What is left of the constraints."""
    left: dict[str, Any] = {
        k: {j: v for j, v in getattr(constraints, k).items() if (k, j) not in parts} for k in _KINDS
    }
    most = None if ("max_changes", -1) in parts else constraints.max_changes
    return replace(constraints, max_changes=most, **left)


def advised(
    answers: Answers, n: int, constraints: Constraints, asked: Queries, look: Look, at_once: int = AT_ONCE
) -> Answers:
    """Answers, `n` rows for each query, with a note for those who have none; `look` searches for some of the queries
    under other constraints, `at_once` of them together."""
    open_ = np.flatnonzero(~answers.given[::n])
    if not asked.advice or not constraints or not len(open_):
        return answers
    notes = list(answers.notes) if answers.notes is not None else [""] * len(answers.cells)
    for i, note in _advice(constraints, asked, open_, look, at_once).items():
        notes[i * n] = note
    return replace(answers, notes=notes)


def _advice(constraints: Constraints, asked: Queries, open_: Ints, look: Look, at_once: int) -> dict[int, str]:
    """For queries without an answer, what to give up to get one.

    What the answer without any constraints breaks is enough to give up; then fewer are tried.
    """
    parts = parts_of(constraints)
    if not parts:
        return dict.fromkeys(open_.tolist(), NOTHING_HELPS)
    enough = _enough(constraints, parts, asked, open_, look)
    tries = [t for size in range(1, min(_MOST, len(parts)) + 1) for t in combinations(parts, size)][:_SEARCHES]
    for some in (tries[a : a + at_once] for a in range(0, len(tries), at_once)):
        waiting = [np.array([i for i, known in enough.items() if len(known) > len(t)], dtype=np.int64) for t in some]
        wanted = [(t, at) for t, at in zip(some, waiting) if len(at)]
        if not wanted:
            break
        served: dict[int, tuple[Part, ...]] = {}
        for (chosen, at), found in zip(wanted, look([(without(constraints, t), at) for t, at in wanted])):
            for i in at[found.behind >= 0].tolist():
                served.setdefault(i, chosen)  # the first that helps, which is one of the smallest
        enough |= served
    said = {i: f"There would be one without {_listed(known, constraints, asked, i)}." for i, known in enough.items()}
    return {i: said.get(i, NOTHING_HELPS) for i in open_.tolist()}


def _enough(
    constraints: Constraints, parts: list[Part], asked: Queries, open_: Ints, look: Look
) -> dict[int, tuple[Part, ...]]:
    """For those who have an answer without any constraints: some that are enough to give up."""
    (free,) = look([(without(constraints, parts), open_)])
    enough, alike = {}, dict[tuple[Part, ...], list[int]]()
    for a in np.flatnonzero(free.behind >= 0).tolist():
        enough[int(open_[a])] = tuple(parts)
        broken = _broken(constraints, parts, asked, int(open_[a]), free.rows[a], int(free.moved[a].sum()))
        alike.setdefault(broken, []).append(int(open_[a]))
    wanted = [(without(constraints, broken), np.array(people)) for broken, people in alike.items()]
    # Where other values of a cell break more, all stays as it is.
    for broken, (_, people), found in zip(alike, wanted, look(wanted) if wanted else ()):
        enough |= dict.fromkeys(people[found.behind >= 0].tolist(), broken)
    return enough


def _broken(
    constraints: Constraints, parts: list[Part], asked: Queries, i: int, row: Floats, changes: int
) -> tuple[Part, ...]:
    """Which constraints an answer breaks."""
    x, found = asked.x[i], []
    for part in parts:
        j = part[1]  # the end of a way is one on that way only
        kept = {part, ("ways", j)} if part[0] == "until" else {part}
        alone = without(constraints, [p for p in parts if p not in kept])
        if j < 0:
            fine = alone.max_changes is None or changes <= alone.max_changes
        else:
            fine = bool(alone.coded(asked.encoder).allows_values(j, x[[j]], row[[j]])[0, 0])
        if not fine:
            found.append(part)
    return tuple(found)


def _listed(parts: Sequence[Part], constraints: Constraints, asked: Queries, i: int) -> str:
    words = []
    for kind, j in parts:
        if kind == "ways":
            kind = constraints.ways[j]
        elif kind == "forbidden" and must_keep(constraints.coded(asked.encoder), j, float(asked.x[i, j])):
            kind = "kept"
        words.append(_WORDS[kind].format(constraints.encoder.names[j]))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
