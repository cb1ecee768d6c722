"""What a differential inference test found: figures about all, and about kinds of people; never about a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countervail.core.arrays import Floats
from countervail.core.stats import Estimate, clopper_pearson, mean_interval

FEW: Final = 10  # people that a figure must be about
THRESHOLDS: Final = (1e-4, 1e-3, 10**-2.5, 1e-2, 1e-1)
# Points of the published distribution function: fixed, so that nobody's own distance is among them.
GRID: Final = tuple(float(10**x) for x in np.arange(-6, 0.26, 0.25))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of people (at least ten of them) and their mean distance."""

    who: str
    people: int
    mean: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; the mean to two digits, which is all that a class of ten should tell."""
        return {"who": self.who, "people": self.people, "mean": two_digits(self.mean.value)}


@dataclass(frozen=True, eq=False, slots=True)
class DifferentialResult:
    """Distances between what is inferred about each person with and without their record.

    `d_pp` has one entry per tested person, `rows` their places in the table and `draws` (person x repetition) every
    single distance; all three are for use in this process: `to_dict` and reports leave them out. `control` holds the
    distances of two releases of the whole table, where the anonymiser or the learner draws lots.
    """

    label: str
    learner: str
    distance: str
    path: str
    people: int  # in the table
    d_pp: Floats = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    draws: Floats = field(repr=False)
    changed: Estimate
    control: Floats | None = field(default=None, repr=False)
    kinds: tuple[Kind, ...] = ()
    beside: Mapping[str, DifferentialResult] = field(default_factory=dict, repr=False)
    caveats: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """The largest distance found: the release is no better than (epsilon, delta)-differentiable to this learner."""
        return float(self.d_pp.max())

    @property
    def mean(self) -> float:
        """The mean distance over the tested people."""
        return float(self.d_pp.mean())

    @property
    def sampled(self) -> bool:
        """Whether only some of the people were tested."""
        return len(self.d_pp) < self.people

    @property
    def mean_estimate(self) -> Estimate:
        """The mean with its interval; where everybody was tested there is nothing to estimate."""
        if self.sampled:
            return mean_interval(self.d_pp)
        return Estimate(self.mean, self.mean, self.mean, len(self.d_pp))

    @property
    def rank(self) -> NDArray[np.int64]:
        """Each tested person's place by distance, 1 for the largest. For use in this process."""
        order = np.argsort(-self.d_pp, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(1, len(order) + 1)
        return place

    def share_above(self, threshold: float) -> Estimate:
        """Share of people whose distance exceeds a threshold, with an interval where people were sampled."""
        hits = int((self.d_pp > threshold).sum())
        if self.sampled:
            return clopper_pearson(hits, len(self.d_pp))
        share = hits / len(self.d_pp)
        return Estimate(share, share, share, len(self.d_pp))

    def cdf(self, at: ArrayLike = GRID) -> tuple[Floats, Floats]:
        """Thresholds, and the share of people whose distance is at most that."""
        points = np.asarray(at, dtype=float)
        return points, np.searchsorted(np.sort(self.d_pp), points, side="right") / len(self.d_pp)

    def delta(self, epsilon: float, level: float = 0.95) -> Estimate:
        """How often the worst-off person's distance reaches epsilon over the repetitions.

        The upper end holds for all tested people at once (Bonferroni); without chance one repetition tells all.
        """
        hits = (self.draws >= epsilon).sum(axis=1)
        n = self.draws.shape[1]
        worst = int(hits.max())
        if self.control is None and n == 1:
            return Estimate(float(worst), float(worst), float(worst), 1, level)
        found = clopper_pearson(worst, n, 1 - (1 - level) / len(self.draws))
        return Estimate(found.value, found.low, found.high, n, level)

    def __str__(self) -> str:
        return (
            f"{self.label} to {self.learner}: mean {self.mean:.2g}, epsilon {self.epsilon:.2g}, "
            f"{self.share_above(10**-2.5).value:.1%} of people above 10^-2.5, "
            f"{self.changed.value:.1%} predictions change"
        )

    def _told_mean(self) -> dict[str, Any]:
        """The mean as JSON data; of fewer than ten people it is as good as one person's distance."""
        found = self.mean_estimate.to_dict()
        if len(self.d_pp) >= FEW:
            return found
        return {n: two_digits(v) if isinstance(v, float) and n != "level" else v for n, v in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data: no row numbers, and nobody's exact distance."""
        at, share = self.cdf()
        found: dict[str, Any] = {
            "label": self.label,
            "learner": self.learner,
            "distance": self.distance,
            "path": self.path,
            "people": self.people,
            "tested": len(self.d_pp),
            "epsilon": two_digits(self.epsilon),
            "mean": self._told_mean(),
            "share_above": {f"{x:.4g}": self.share_above(x).to_dict() for x in THRESHOLDS},
            "changed_predictions": self.changed.to_dict(),
            "cdf": {"at": [float(f"{x:.4g}") for x in at], "share": [float(s) for s in share]},
            "kinds": [k.to_dict() for k in self.kinds],
            "caveats": list(self.caveats),
            "beside": {name: r.to_dict() for name, r in self.beside.items()},
        }
        if self.control is not None:
            found["repetitions"] = int(self.draws.shape[1])
            found["control"] = {"mean": mean_interval(self.control.mean(axis=1)).to_dict()}
            found["delta"] = {f"{x:.4g}": self.delta(x).to_dict() for x in THRESHOLDS}
        return found


def two_digits(value: float) -> float | None:
    """A figure that may be one person's: two significant digits; None where it is not finite."""
    return float(f"{value:.2g}") if np.isfinite(value) else None
