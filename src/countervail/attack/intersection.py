"""Intersection: several answers about one person leave fewer people than each of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Bools, Ints, OracleAttack
from countervail.core.cells import cell_text
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Explains


class Intersection(OracleAttack):
    """Ask the same and nearly the same again, and intersect the regions of answers about one person.

    Parameters
    ----------
    repeats : int
        How often each query is asked.
    n_targets : int, optional
        How many different queries are asked.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: a register of quasi-identifiers, and as many questions as one likes. The released private attributes
    serve as a pseudonym: answers to one query that share them are taken to speak of one person. Where their regions
    have nobody in common they do not, and each stands for itself.
    """

    name: ClassVar[str] = "intersection"

    def __init__(self, *, repeats: int = 5, n_targets: int | None = 50, random_state: int = 0) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.repeats = repeats

    def ask(self, oracle: Explains, queries: pd.DataFrame, register: pd.DataFrame) -> Ints:
        """The people left for each pseudonym seen."""
        if self.repeats < 1:
            raise bad_parameter("Intersection", "repeats", "a whole number of at least 1", self.repeats)
        seen: dict[tuple[int, str], list[Bools]] = {}
        for _ in range(self.repeats):
            for group in (queries, self._nearly(queries)):
                answers: Explanations = oracle.explain(group).without_audit()
                private = [n for n in answers.counterfactuals.columns if n not in register.columns]
                shown = answers.counterfactuals.loc[answers.found, private].astype(object)
                inside = answers.regions.covers(register)
                for people, (query, cells) in zip(inside, shown.iterrows()):
                    seen.setdefault((int(str(query)), "|".join(map(cell_text, cells))), []).append(people)
        return np.array([size for sets in seen.values() for size in _left(sets)], dtype=np.int64)

    def _nearly(self, queries: pd.DataFrame) -> pd.DataFrame:
        """The queries with one numeric value moved a little, or as they are where there is none."""
        numeric = [n for n in queries.columns if pd.api.types.is_float_dtype(queries[n].dtype)]
        return queries.assign(**{n: queries[n] * (1 + 1e-6) for n in numeric[:1]})


def _left(sets: list[Bools]) -> list[int]:
    together = np.logical_and.reduce(sets)
    return [int(together.sum())] if together.any() else [int(s.sum()) for s in sets]
