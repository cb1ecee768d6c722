"""Homogeneity: everyone who matches shares the value, so it does not matter who it is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, Knowledge, ReleaseAttack
from countervail.attack.shared.released import Released, people_behind, quasi_classes, shown_cells, unmoved_cells
from countervail.core.arrays import Ints
from countervail.core.table import Table


class Homogeneity(ReleaseAttack):
    """Guess a sensitive value where all that was released about a target's regions agrees on it.

    Parameters
    ----------
    n_targets : int, optional
        How many people are attacked; all by default.
    random_state : int
        Which ones, if not all.

    Notes
    -----
    *Threat model*: the quasi-identifiers of the target, and the explanations or the table. k people who share a
    sensitive value hide nobody; `l` and `t` are the answer.

    References
    ----------
    Machanavajjhala et al.: l-diversity, privacy beyond k-anonymity (2007).

    Examples
    --------
    >>> import pandas as pd, countervail as cv
    >>> frame = pd.DataFrame({"age": [20, 21, 50, 51], "ill": ["flu", "flu", "cold", "flu"]})
    >>> table = cv.Table.from_frame(frame, quasi_identifiers=["age"], sensitive=["ill"])
    >>> release = cv.Mondrian(k=2).fit(table).protect(table)
    >>> cv.attack.Homogeneity().run(release, table, control=table).members.value  # both people of 20 and 21
    0.5
    """

    name: ClassVar[str] = "homogeneity"
    criterion: ClassVar[Criterion] = "inference"

    def secrets(self, table: Table) -> list[str]:
        """The sensitive columns."""
        return table.schema.names("sensitive")

    def sizes(self, release: Released, register: pd.DataFrame) -> Ints:
        """How many people of the register match each explanation or row."""
        return people_behind(release, register)

    def guess(self, release: Released, known: Knowledge) -> pd.DataFrame:
        """The value that every matching explanation or row shows, where there is one; an asker's own is none."""
        secret, cells = list(known.secret), shown_cells(release, known.secret)
        guesses = pd.DataFrame(None, index=range(len(known.targets)), columns=secret, dtype=object)
        shown = cells.reindex(columns=secret).astype(object)
        if len(shown):
            classes, at = quasi_classes(release)
            inside = classes.covers(known.targets)
            for name in (n for n in secret if n in cells.columns):
                said = ~unmoved_cells(release, [name])[:, 0]
                if not said.any():
                    continue
                codes, kinds = pd.factorize(shown[name][said], use_na_sentinel=False)
                saying = (np.unique(at[said][codes == c]) for c in range(len(kinds)))
                votes = np.stack([inside[classes_].any(axis=0) for classes_ in saying])
                one = np.flatnonzero(votes.sum(axis=0) == 1)
                guesses.loc[one, name] = np.asarray(kinds, dtype=object)[votes[:, one].argmax(axis=0)]
        return guesses
