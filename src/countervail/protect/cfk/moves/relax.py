"""Which constraints stand between an asker and an answer: the fewest whose removal gives her one.

Asked of the same search: what is said is a function of the query, the model and the anonymised table, as answers are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from countervail.core.arrays import Bools, Ints
from countervail.explain.answering import Answers
from countervail.explain.constraints import Constraints

Part = tuple[str, int]  # which kind of constraint, on which column
_WORDS: Final = {
    "immutable": "that '{}' stays as it is",
    "allowed": "the range of '{}'",
    "direction": "the direction of '{}'",
    "forbidden": "the forbidden steps of '{}'",
}
_MOST: Final = 3  # constraints named together
_SEARCHES: Final = 200  # sets of constraints that are tried without
NOTHING_HELPS: Final = "Without any constraints there would be none either."


def parts_of(constraints: Constraints) -> list[Part]:
    """The constraints one by one."""
    return [(kind, j) for kind in _WORDS for j in sorted(getattr(constraints, kind))]


def without(constraints: Constraints, parts: Sequence[Part]) -> Constraints:
    """What is left of the constraints."""
    gone = {kind: {j for k, j in parts if k == kind} for kind in _WORDS}
    kept = {
        kind: {j: v for j, v in getattr(constraints, kind).items() if j not in gone[kind]}
        for kind in _WORDS
        if kind != "immutable"
    }
    return replace(constraints, immutable=tuple(j for j in constraints.immutable if j not in gone["immutable"]), **kept)


def advised(
    answers: Answers,
    n: int,
    constraints: Constraints,
    names: Sequence[str],
    served: Callable[[Constraints, Ints], Bools],
) -> Answers:
    """Answers, `n` rows for each query, with a note for those who have none; `served` says who has one under other
    constraints."""
    open_ = np.flatnonzero(~answers.given[::n])
    if not constraints or not len(open_):
        return answers
    notes = list(answers.notes) if answers.notes is not None else [""] * len(answers.cells)
    for i, note in _advice(constraints, names, open_, served).items():
        notes[i * n] = note
    return replace(answers, notes=notes)


def _advice(
    constraints: Constraints, names: Sequence[str], open_: Ints, answered: Callable[[Constraints, Ints], Bools]
) -> dict[int, str]:
    """For queries without an answer, what to give up to get one."""
    parts, said = parts_of(constraints), dict.fromkeys(open_.tolist(), NOTHING_HELPS)
    served = answered(without(constraints, parts), open_) if len(open_) and parts else np.zeros(len(open_), dtype=bool)
    open_, tried = open_[served], 0
    said |= dict.fromkeys(open_.tolist(), f"There would be one without {_listed(parts, names)}.")
    for size in range(1, min(_MOST, len(parts) - 1) + 1):
        for chosen in combinations(parts, size):
            tried += 1
            if not len(open_) or tried > _SEARCHES:
                return said
            served = answered(without(constraints, chosen), open_)
            said |= dict.fromkeys(open_[served].tolist(), f"There would be one without {_listed(chosen, names)}.")
            open_ = open_[~served]
    return said


def _listed(parts: Sequence[Part], names: Sequence[str]) -> str:
    words = [_WORDS[kind].format(names[j]) for kind, j in parts]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
