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
from countervail.core.constraints import Constraints
from countervail.explain.answering import Answers

Part = tuple[str, int]  # which kind of constraint, on which column (-1: on none)
_KINDS: Final = ("ways", "allowed", "forbidden")
_WORDS: Final = {
    "no": "that '{}' stays as it is",
    "ways": "the direction of '{}'",
    "allowed": "the range of '{}'",
    "forbidden": "the forbidden steps of '{}'",
    "max_changes": "the limit on the number of changes",
}
_MOST: Final = 3  # constraints named together
_SEARCHES: Final = 200  # sets of constraints that are tried without
NOTHING_HELPS: Final = "Without any constraints there would be none either."


def parts_of(constraints: Constraints) -> list[Part]:
    """The constraints one by one."""
    ways = constraints.ways
    parts = [("ways", j) for j in sorted(ways) if ways[j] == "no"]
    parts += [("allowed", j) for j in sorted(constraints.allowed)]
    parts += [("ways", j) for j in sorted(ways) if ways[j] != "no"]
    parts += [("forbidden", j) for j in sorted(constraints.forbidden)]
    return parts if constraints.max_changes is None else [*parts, ("max_changes", -1)]


def without(constraints: Constraints, parts: Sequence[Part]) -> Constraints:
    """What is left of the constraints."""
    ways, allowed, forbidden = (
        {j: v for j, v in getattr(constraints, kind).items() if (kind, j) not in parts} for kind in _KINDS
    )
    most = None if ("max_changes", -1) in parts else constraints.max_changes
    return replace(constraints, ways=ways, allowed=allowed, forbidden=forbidden, max_changes=most)


def advised(
    answers: Answers, n: int, constraints: Constraints, served: Callable[[Constraints, Ints], Bools]
) -> Answers:
    """Answers, `n` rows for each query, with a note for those who have none; `served` says who has one under other
    constraints."""
    open_ = np.flatnonzero(~answers.given[::n])
    if not constraints or not len(open_):
        return answers
    notes = list(answers.notes) if answers.notes is not None else [""] * len(answers.cells)
    for i, note in _advice(constraints, open_, served).items():
        notes[i * n] = note
    return replace(answers, notes=notes)


def _advice(constraints: Constraints, open_: Ints, answered: Callable[[Constraints, Ints], Bools]) -> dict[int, str]:
    """For queries without an answer, what to give up to get one."""
    parts, said = parts_of(constraints), dict.fromkeys(open_.tolist(), NOTHING_HELPS)
    served = answered(without(constraints, parts), open_) if len(open_) and parts else np.zeros(len(open_), dtype=bool)
    open_, tried = open_[served], 0
    said |= dict.fromkeys(open_.tolist(), f"There would be one without {_listed(parts, constraints)}.")
    for size in range(1, min(_MOST, len(parts) - 1) + 1):
        for chosen in combinations(parts, size):
            tried += 1
            if not len(open_) or tried > _SEARCHES:
                return said
            served = answered(without(constraints, chosen), open_)
            said |= dict.fromkeys(open_[served].tolist(), f"There would be one without {_listed(chosen, constraints)}.")
            open_ = open_[~served]
    return said


def _listed(parts: Sequence[Part], constraints: Constraints) -> str:
    words = []
    for kind, j in parts:
        fixed = kind == "ways" and constraints.ways[j] == "no"
        words.append(_WORDS["no" if fixed else kind].format(constraints.encoder.names[j]))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
