"""Intersection: several answers about one person leave fewer people than each of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Ints, OracleAttack
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
    serve as a pseudonym: answers that share them speak of one person, or of people who cannot be told apart by them.
    """

    name: ClassVar[str] = "intersection"

    def __init__(self, *, repeats: int = 5, n_targets: int | None = 50, random_state: int = 0) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.repeats = repeats

    def ask(self, oracle: Explains, queries: pd.DataFrame, register: pd.DataFrame) -> Ints:
        """The people left for each pseudonym seen."""
        if self.repeats < 1:
            raise bad_parameter("Intersection", "repeats", "a whole number of at least 1", self.repeats)
        matches: dict[str, np.ndarray] = {}
        for _ in range(self.repeats):
            answers: Explanations = oracle.explain(queries).without_audit()
            private = [n for n in answers.counterfactuals.columns if n not in register.columns]
            shown = answers.counterfactuals.loc[answers.found, private].astype(object)
            inside = answers.regions.covers(register)
            for people, (_, cells) in zip(inside, shown.iterrows()):
                pseudonym = "|".join(cell_text(c) for c in cells)
                matches[pseudonym] = matches.get(pseudonym, people) & people
        return np.array([int(m.sum()) for m in matches.values()], dtype=np.int64)
