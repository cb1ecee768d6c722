"""What one attack of a battery found, as counts and figures that name nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from countervail.attack import AttackResult
from countervail.attack.result import excess_of
from countervail.core.arrays import Ints
from countervail.core.files.json_data import is_count, is_text, need
from countervail.core.stats import Estimate, clopper_pearson, excess_p_value, plain_json, plain_value

Status = Literal["run", "not run", "failed", "does not apply"]
TIME_UP = "the time was up"
UNSTEADY = "it answers the same question differently each time, though it declares no noise"
LEFT_OUT = "it was left out: other attacks were asked for by name"
ANSWERS_ALONE = "only answers were given, and nobody who could be asked"
_EDGES = (1, 2, 5, 10, 20, 50, 100)  # people behind something released, from here on
_SURE = 0.025  # the chance with which a planted leak may be found by luck
_FEW = 5  # a count below it is not shown as it is


@dataclass(frozen=True, slots=True)
class Counts:
    """Successes and cases, of members and of controls; of an average, as many cases as it weighs.

    Where both were tried on the same cases: on how many both failed.
    """

    hits: int = 0
    n: int = 0
    hits_control: int = 0
    n_control: int = 0
    both_failed: int | None = None

    @classmethod
    def of(cls, result: AttackResult) -> Self:
        """The counts behind a result."""
        return cls(*result.counts, result.both_failed)

    @property
    def members(self) -> Estimate:
        """Success on people who are in the data."""
        return clopper_pearson(self.hits, self.n)

    @property
    def controls(self) -> Estimate:
        """Success on people who never were."""
        return clopper_pearson(self.hits_control, self.n_control)

    def excess(self, level: float = 0.95) -> Estimate:
        """Success beyond that on controls."""
        return excess_of((self.hits, self.n, self.hits_control, self.n_control), self.both_failed, level)

    def p_value(self, threshold: float, side: Literal["above", "below"]) -> float:
        """How surely the excess is not on the other side of a threshold."""
        return excess_p_value(self.hits, self.n, self.hits_control, self.n_control, threshold, side)


@dataclass(frozen=True, slots=True)
class SetSizes:
    """How many people released things speak of: the fewest, the average risk, and shares by size.

    Things that fit nobody are left out: they speak of no one.
    """

    things: int
    least: int
    average_risk: float
    shares: Mapping[str, float]

    @classmethod
    def of(cls, sizes: Ints) -> Self | None:
        """Sizes of sets; None where nothing released fits anybody."""
        some = np.asarray(sizes)[np.asarray(sizes) > 0]
        if not len(some):
            return None
        place = np.digitize(some, _EDGES) - 1
        counts = np.bincount(place, minlength=len(_EDGES))
        shown = {label: _rounded(int(c), len(some)) for label, c in zip(_labels(), counts)}
        return cls(len(some), int(some.min()), float((1 / some).mean()), shown)

    @property
    def max_risk(self) -> float:
        """One over the fewest people."""
        return 1 / self.least


@dataclass(frozen=True, slots=True)
class WorstGroup:
    """The group on whom an attack succeeds most, out of several that were looked at."""

    group: str
    counts: Counts
    of: int = 1

    def excess(self, level: float = 0.95) -> Estimate:
        """Success beyond that on controls; sure for all groups together, because the worst was picked out of them."""
        return self.counts.excess(1 - (1 - level) / max(self.of, 1))


@dataclass(frozen=True, slots=True)
class Finding:
    """An attack of the battery: what it found, and whether it found the leak that was planted for it.

    `worst` is the group of askers or people on whom it succeeds most, with the counts there.
    """

    attack: str
    criterion: str
    asks: bool
    summary: str
    status: Status = "not run"
    why: str = ""
    counts: Counts = field(default_factory=Counts)
    baseline: Estimate | None = None
    planted: Counts | None = None
    sets: SetSizes | None = None
    detail: Mapping[str, Estimate] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    curve: tuple[tuple[float, float], ...] = ()
    worst: WorstGroup | None = None
    seconds: float = 0.0

    @property
    def found_planted(self) -> bool:
        """Whether the leak that was planted for this attack was found, beyond chance."""
        return self.planted is not None and self.planted.p_value(0.0, "above") < _SURE

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain JSON data."""
        data = plain_json(self)
        data["members"], data["controls"] = self.counts.members.to_dict(), self.counts.controls.to_dict()
        data["excess"] = self.counts.excess().to_dict()
        data["found_planted"] = self.found_planted
        data["worst"] = None
        if self.worst is not None:
            data["worst"] = {**plain_json(self.worst), "excess": self.worst.excess().to_dict()}
        data["seconds"] = round(self.seconds, 1)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; to be called where damaged data are reported."""
        need(all(is_text(data[key]) for key in ("attack", "criterion", "summary", "status", "why")))
        sets, worst = data["sets"], data["worst"]
        return cls(
            data["attack"],
            data["criterion"],
            bool(data["asks"]),
            data["summary"],
            data["status"],
            data["why"],
            counts_from(data["counts"]),
            None if data["baseline"] is None else estimate_from(data["baseline"]),
            None if data["planted"] is None else counts_from(data["planted"]),
            None if sets is None else SetSizes(sets["things"], sets["least"], sets["average_risk"], sets["shares"]),
            {name: estimate_from(e) for name, e in data["detail"].items()},
            tuple(data["remarks"]),
            tuple((float(x), float(y)) for x, y in data["curve"]),
            None
            if worst is None
            else WorstGroup(worst["group"], counts_from(worst["counts"]), int(worst.get("of", 1))),
            float(data["seconds"]),
        )


def counts_from(data: Mapping[str, Any]) -> Counts:
    """Counts out of JSON data."""
    values = [data[key] for key in ("hits", "n", "hits_control", "n_control")]
    both = data.get("both_failed")
    need(all(is_count(v) for v in values) and (both is None or is_count(both)))
    hits, n, hits_control, n_control = values
    made = Counts(hits, n, hits_control, n_control, both)
    need(made.hits <= made.n and made.hits_control <= made.n_control)
    if both is not None:
        failed, spared = made.n - made.hits, made.n_control - made.hits_control
        need(made.n == made.n_control and failed + spared - made.n <= both <= min(failed, spared))
    return made


def estimate_from(data: Mapping[str, Any]) -> Estimate:
    """An estimate out of JSON data; what was left open there was not finite."""
    value, low, high = (float("nan") if data[key] is None else float(data[key]) for key in ("value", "low", "high"))
    return Estimate(value, low, high, int(data["n"]), float(data["level"]))


def worst_group(groups: Mapping[str, Counts]) -> WorstGroup | None:
    """The group with the largest excess that is shown: by the lower end of the interval, then by the value."""
    each = [WorstGroup(name, counts, len(groups)) for name, counts in groups.items()]
    return max(each, key=lambda g: ((e := g.excess()).low, e.value), default=None)


GROUP = "in the group "  # begins the name of a figure about one group


def group_details(groups: Mapping[str, Counts]) -> dict[str, Estimate]:
    """The excess in every group, with intervals that are sure for all of them together."""
    return {f"{GROUP}{name}": WorstGroup(name, counts, len(groups)).excess() for name, counts in groups.items()}


def detail_of(result: AttackResult) -> dict[str, Estimate]:
    """Further figures of an attack that are there."""
    return {name: e for name, e in result.detail.items() if plain_value(e.value) is not None}


def size_labels(shares: Mapping[str, float]) -> Sequence[str]:
    """The sizes in their order."""
    return [label for label in _labels() if label in shares]


def _labels() -> list[str]:
    spans = [f"{a}" if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(_EDGES)]
    return [*spans, f"{_EDGES[-1]} or more"]


def _rounded(count: int, of: int) -> float:
    """A share; of few things it is not told how few."""
    return round((_FEW if 0 < count < _FEW and of > _FEW else count) / of, 4)
