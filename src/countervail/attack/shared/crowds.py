"""How often the same thing would happen by chance, among as many strangers as there are members."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countervail.attack.result import share_of
from countervail.core.arrays import Floats, Ints
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson, mean_interval
from countervail.core.table import Table


def crowd(control: Table, size: int, random_state: int) -> pd.DataFrame:
    """As many strangers as there are members; all of them where they are fewer."""
    if len(control) <= size:
        return control.frame
    return control.frame.iloc[np.sort(generator(random_state).permutation(len(control))[:size])]


def coincidence(members: Ints, strangers: Ints, n: int, m: int) -> Estimate:
    """Share of cases that fit exactly one among n strangers, of whom only m were looked at.

    For each case, `members` of the n members fit and `strangers` of the m strangers do. Where m < n, what m strangers
    give is brought to n by what the members themselves give at m and at n: taking m of the n members at random changes
    their figure as it would change that of strangers, and to this change a person who fits for being a member, and
    nobody else, adds nothing (1 at n; m/n at m, n/m times).
    """
    hit = strangers == 1
    if len(hit) == 0 or n <= m:
        return clopper_pearson(int(hit.sum()), len(hit))
    more = n / m
    whole: Floats = (members == 1).astype(float)
    cases = more * hit + whole - more * _alone_among(members, n, m)
    if not hit.any() and (cases <= 0).all():
        none = clopper_pearson(0, len(hit))
        return Estimate(0.0, 0.0, min(1.0, more * none.high), len(hit))
    if (cases == cases[0]).all():
        return share_of(np.clip(cases, 0, 1))
    spread = mean_interval(cases)
    value, low, high = (min(max(v, 0.0), 1.0) for v in (spread.value, spread.low, spread.high))
    return Estimate(value, low, high, len(hit))


def _alone_among(members: Ints, n: int, m: int) -> Floats:
    """The chance that exactly one of m people fits, who are drawn from n of whom so many fit."""
    from scipy.stats import hypergeom

    kinds, which = np.unique(members, return_inverse=True)
    out: Floats = np.asarray(hypergeom.pmf(1, n, kinds, m), dtype=float)[which]
    return out
