"""What an attack achieved: shares with intervals, on members, on strangers and by guessing blindly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints
from countervail.core.stats import (
    Estimate,
    clopper_pearson,
    excess_interval,
    mean_interval,
    paired_excess_interval,
    plain_value,
)

UNSAID: Any = object()  # in a guess: of this column nothing is said
_WHOLE = 1e-6  # counts are whole up to this
_MOST = 100  # times as many cases as there are people: beyond it an interval is narrower than anybody would believe


@dataclass(frozen=True, eq=False, slots=True)
class AttackResult:
    """Success on members, on people who were never in the data, and by guessing blindly.

    `set_sizes` holds, for each thing released, how many people of the register it may speak of. `detail` holds further
    figures of some attacks, `remarks` what could not be measured and why, `curve` false and true positive rates.
    Where members and controls stand for two ways to try the same cases, `both_failed` says on how many both failed.
    """

    attack: str
    members: Estimate
    controls: Estimate
    baseline: Estimate
    set_sizes: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    detail: Mapping[str, Estimate] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    curve: tuple[tuple[float, float], ...] = ()
    both_failed: int | None = None

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Successes and cases of members and of controls; where shares were averaged, as many cases as they weigh."""
        return (*effective_counts(self.members), *effective_counts(self.controls))

    @property
    def excess(self) -> Estimate:
        """Success beyond what the same attack achieves on people who were never in the data."""
        beyond = excess_of(self.counts, self.both_failed, self.members.level)
        return replace(beyond, n=self.members.n + self.controls.n)

    @property
    def exposed(self) -> Estimate:
        """Share of released things that speak of exactly one person."""
        return clopper_pearson(int((self.set_sizes == 1).sum()), len(self.set_sizes))

    def __str__(self) -> str:
        alone = f"; {self.exposed.value:.1%} of what was released speaks of one person" if len(self.set_sizes) else ""
        return f"{self.attack}: members {self.members}, controls {self.controls}, blind {self.baseline}{alone}"

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return {
            "attack": self.attack,
            "members": self.members.to_dict(),
            "controls": self.controls.to_dict(),
            "baseline": self.baseline.to_dict(),
            "excess": self.excess.to_dict(),
            "exposed": self.exposed.to_dict(),
            "set_sizes": dict(zip(*(v.tolist() for v in np.unique(self.set_sizes, return_counts=True)))),
            "detail": {name: figure.to_dict() for name, figure in self.detail.items()},
            "remarks": list(self.remarks),
            "curve": plain_value(self.curve),
        }


def excess_of(counts: tuple[int, int, int, int], both_failed: int | None, level: float = 0.95) -> Estimate:
    """The excess behind counts of members and of controls, tried on cases of their own or on the same ones."""
    if both_failed is None:
        return excess_interval(*counts, level=level)
    hits, n, hits_control, _ = counts
    return paired_excess_interval(hits, hits_control, both_failed, n, level)


def effective_counts(share: Estimate) -> tuple[int, int]:
    """Successes and cases behind a share; of an average, those of a plain share with an interval as wide.

    Examples
    --------
    >>> effective_counts(clopper_pearson(3, 10))
    (3, 10)
    """
    hits = share.value * share.n
    if share.n == 0 or abs(hits - round(hits)) < _WHOLE:
        return (round(hits) if share.n else 0), share.n
    from scipy.stats import t

    half = max(share.value - share.low, share.high - share.value)
    # Where an end is cut off at 0 or 1, the other one says more about the spread.
    at = share.high if share.low <= 0 else share.low if share.high >= 1 else share.value
    spread = (half / float(t.ppf((1 + share.level) / 2, max(share.n - 1, 1)))) ** 2
    most = _MOST * share.n
    cases = most if spread <= 0 else at * (1 - at) / spread
    n = round(min(max(cases, 1.0), most))
    return round(share.value * n), n


def rate(right: Bools) -> Estimate:
    """Share of successes, person x attack; several attacks on one person are one observation."""
    people, attacks = right.shape
    if people == 0 or attacks == 0:
        return clopper_pearson(0, 0)
    return share_of(right.mean(axis=1), exact=attacks == 1)


def share_of(shares: Floats, *, exact: bool = False) -> Estimate:
    """The mean of shares between 0 and 1, one per case; exact where each is 0 or 1, or where all are alike."""
    n = len(shares)
    if exact or n < 2 or (shares == shares[0]).all():
        counted = clopper_pearson(int(np.rint(shares.sum())), n)
        return Estimate(float(shares.mean()) if n else counted.value, counted.low, counted.high, n)
    spread = mean_interval(shares)
    return Estimate(spread.value, max(spread.low, 0.0), min(spread.high, 1.0), n)


def right_cells(guesses: pd.DataFrame, truth: pd.DataFrame) -> Bools:
    """Person x column: which cells are guessed right; a missing value is no guess."""
    a, b = (f.reset_index(drop=True).astype(object).where(f.notna().to_numpy(), None) for f in (guesses, truth))
    right: Bools = np.asarray(a.to_numpy() == b.to_numpy(), dtype=bool) & ~np.asarray(pd.isna(a).to_numpy())
    return right


def right_rows(guesses: pd.DataFrame, truth: pd.DataFrame) -> Bools:
    """Which rows are guessed right in every column of which anything is said; a row of missing values is no guess."""
    a, b = (f.reset_index(drop=True).astype(object).where(f.notna().to_numpy(), None) for f in (guesses, truth))
    unsaid = a.map(lambda v: v is UNSAID).to_numpy(dtype=bool)
    same = (a.values == b.values) | (pd.isna(a).to_numpy() & pd.isna(b).to_numpy()) | unsaid
    right: Bools = np.asarray(same.all(axis=1)) & ~np.asarray((pd.isna(a).to_numpy() | unsaid).all(axis=1))
    return right
