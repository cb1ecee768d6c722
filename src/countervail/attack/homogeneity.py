"""Homogeneity: everyone who matches shares the value, so it does not matter who it is."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Ints, Knowledge, ReleaseAttack
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
    *Threat model*: the quasi-identifiers of the target, and the explanations. k people who share a sensitive value hide
    nobody; `l` and `t` are the answer.
    """

    name: ClassVar[str] = "homogeneity"

    def secrets(self, table: Table) -> list[str]:
        """The sensitive columns."""
        return table.schema.names("sensitive")

    def sizes(self, release: Any, register: pd.DataFrame) -> Ints:
        """How many people of the register match each explanation."""
        counts: Ints = release.regions.count(register)
        return counts

    def guess(self, release: Any, known: Knowledge) -> pd.DataFrame:
        """The value that every matching explanation shows, where there is one."""
        secret = list(known.secret)
        guesses = pd.DataFrame(None, index=range(len(known.targets)), columns=secret, dtype=object)
        shown = release.counterfactuals.loc[release.found, secret].reset_index(drop=True).astype(object)
        if len(shown):
            inside = release.regions.covers(known.targets)
            for name in secret:
                codes, kinds = pd.factorize(shown[name], use_na_sentinel=False)
                votes = np.stack([inside[codes == c].any(axis=0) for c in range(len(kinds))])
                one = np.flatnonzero(votes.sum(axis=0) == 1)
                guesses.loc[one, name] = np.asarray(kinds, dtype=object)[votes[:, one].argmax(axis=0)]
        return guesses
