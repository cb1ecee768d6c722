"""Linkage: whoever matches the released quasi-identifiers alone owns the released private attributes."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, Knowledge, ReleaseAttack
from countervail.attack.result import UNSAID
from countervail.attack.shared.persons import register_of
from countervail.attack.shared.released import (
    Released,
    people_behind,
    people_of,
    quasi_classes,
    shown_cells,
    unmoved_cells,
)
from countervail.core.arrays import Ints
from countervail.core.errors import bad_parameter
from countervail.core.table import Table


class Linkage(ReleaseAttack):
    """Take a released row for the record of the one person of a register whom it fits.

    Parameters
    ----------
    adversary : {"prosecutor", "journalist"}
        The prosecutor knows that the target is in the data, and who else is. The journalist's register also holds
        people who are not (here: the controls), and anyone will do.
    n_targets : int, optional
        How many people are attacked; all by default.
    random_state : int
        Which ones, if not all.

    Notes
    -----
    *Threat model*: a register of quasi-identifiers and the explanations. An explanation whose quasi-identifiers match
    exactly one person of the register is taken for that person's record. Success: every private attribute is right.
    Values that are the asker's own neither match nor are guessed; what is said of the rest must be right.

    References
    ----------
    Goethals, Sörensen, Martens: The privacy issue of counterfactual explanations: explanation linkage attacks (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> plain = cv.NICE().fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> cv.attack.Linkage().run(plain, table, control=table).members.value  # one of ten people: Fiona
    0.1
    """

    name: ClassVar[str] = "linkage"
    criterion: ClassVar[Criterion] = "singling out"

    def __init__(
        self,
        adversary: Literal["prosecutor", "journalist"] = "prosecutor",
        *,
        n_targets: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.adversary = adversary

    @property
    def label(self) -> str:
        """The attack's name in results."""
        return f"linkage ({self.adversary})"

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls("prosecutor"), cls("journalist")]

    def register(self, table: Table, control: Table) -> pd.DataFrame:
        """Who is in the data, or more people than that."""
        if self.adversary not in ("prosecutor", "journalist"):
            raise bad_parameter("Linkage", "adversary", "'prosecutor' or 'journalist'", self.adversary)
        if self.adversary == "prosecutor":
            return register_of(table)
        return register_of(table, control)

    def sizes(self, release: Released, register: pd.DataFrame) -> Ints:
        """How many people of the register match each explanation."""
        return people_behind(release, register)

    def guess(self, release: Released, known: Knowledge) -> pd.DataFrame:
        """For each target the private attributes of the first explanation that matches nobody else."""
        cells = shown_cells(release, known.secret or None)
        private = list(known.secret) or [n for n in cells.columns if n not in known.targets.columns]
        shown = cells.reindex(columns=private).astype(object)
        for name in (n for n in private if n in cells.columns):
            shown.loc[unmoved_cells(release, [name])[:, 0], name] = UNSAID
        classes, at = quasi_classes(release)
        alone = np.flatnonzero(people_of(classes, known.register)[at] == 1)
        guesses = pd.DataFrame(None, index=range(len(known.targets)), columns=private, dtype=object)
        if len(alone):
            matches = classes[at[alone]].covers(known.targets)
            hit = np.flatnonzero(matches.any(axis=0))
            first = alone[matches[:, hit].argmax(axis=0)]
            guesses.iloc[hit] = shown.iloc[first].to_numpy()
        return guesses
