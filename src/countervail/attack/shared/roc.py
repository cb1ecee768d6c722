"""Who was in the data, told by a score: areas and rates with intervals, and what too few strangers cannot show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from countervail.core.arrays import Bools, Floats
from countervail.core.errors import bad_parameter
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson

RATES = (0.1, 0.01, 0.001)
_AT_LEAST = 5  # strangers beyond a threshold, or the rate that goes with it is a matter of luck
_POINTS = 200


@dataclass(frozen=True, slots=True)
class Told:
    """The threshold set on half of the strangers, the rates beyond it, and what all scores say together."""

    members: Estimate
    controls: Estimate
    baseline: Estimate
    detail: dict[str, Estimate]
    remarks: tuple[str, ...]
    curve: tuple[tuple[float, float], ...]


def tell_members(members: Floats, strangers: Floats, fpr: float, random_state: int) -> Told:
    """Figures of a score that is higher for members."""
    if not 0 < fpr < 1:
        raise bad_parameter("a membership attack", "fpr", "strictly between 0 and 1", fpr)
    if len(strangers) < 2:
        raise bad_parameter("a membership attack", "control", "at least two people", len(strangers))
    rng = generator(random_state)
    order = rng.permutation(len(strangers))
    half = len(order) // 2
    tried, rest = strangers[order[:half]], strangers[order[half:]]
    found, mistaken = (_taken(scores, tried, fpr, rng) for scores in (members, rest))
    alike = float((strangers == strangers.max()).mean())
    detail = {"AUC": auc(members, strangers)}
    remarks = []
    for wanted in RATES:
        if wanted * len(strangers) < _AT_LEAST:
            needed = math.ceil(_AT_LEAST / wanted)
            remarks.append(
                f"TPR at FPR {wanted:.1%}: not measurable with n={len(strangers)} controls; it takes {needed:,}."
            )
        elif wanted < alike < 1:
            remarks.append(f"TPR at FPR {wanted:.1%}: not measurable: more strangers than that have the highest score.")
        else:
            detail[f"TPR at FPR {wanted:.1%}"] = tpr_at(members, strangers, wanted)
    return Told(
        clopper_pearson(int(found.sum()), len(members)),
        clopper_pearson(int(mistaken.sum()), len(rest)),
        Estimate(fpr, fpr, fpr, len(rest)),
        detail,
        tuple(remarks),
        curve(members, strangers),
    )


def _taken(scores: Floats, tried: Floats, fpr: float, rng: np.random.Generator) -> Bools:
    """Who is taken for a member: whoever is above the threshold that this share of those `tried` is above.

    Where more of them have the highest score of all, of those with that score as many as the rate allows, by lot; where
    all have the same one, it tells nobody.
    """
    limit = _threshold(tried, fpr)
    alike = float((tried == limit).mean()) if len(tried) and limit == tried.max() else 0.0
    if alike <= fpr or alike == 1:
        return np.asarray(scores > limit)
    return np.asarray((scores > limit) | ((scores == limit) & (rng.random(len(scores)) < fpr / alike)))


def auc(members: Floats, strangers: Floats, level: float = 0.95) -> Estimate:
    """How often a member's score is above a stranger's, with DeLong's interval on the scale of log odds."""
    from scipy.stats import norm, rankdata

    m, n = len(members), len(strangers)
    if not m or not n:
        return Estimate(float("nan"), 0.0, 1.0, m + n, level)
    together = rankdata(np.concatenate([members, strangers]))
    above = (together[:m] - rankdata(members)) / n  # of each member: share of strangers below
    below = 1 - (together[m:] - rankdata(strangers)) / m
    area = float(above.mean())
    least = min(m, n)
    if m < 2 or n < 2 or area in (0.0, 1.0):
        exact = clopper_pearson(round(area * least), least, level)
        return Estimate(area, min(exact.low, area), max(exact.high, area), m + n, level)
    spread = math.sqrt(float(above.var(ddof=1)) / m + float(below.var(ddof=1)) / n)
    middle, half = math.log(area / (1 - area)), float(norm.ppf((1 + level) / 2)) * spread / (area * (1 - area))
    low, high = (1 / (1 + math.exp(-v)) for v in (max(middle - half, -700), min(middle + half, 700)))
    return Estimate(area, low, high, m + n, level)


def tpr_at(members: Floats, strangers: Floats, fpr: float, level: float = 0.95) -> Estimate:
    """Share of members above the threshold that this share of strangers is above.

    The interval adds, squared, how sure one is of the share and of the threshold (variance estimates recovered from
    both intervals: Zou and Donner 2008).
    """
    from scipy.stats import binom

    n, k = len(strangers), fpr * len(strangers)
    at = clopper_pearson(int((members > _threshold(strangers, fpr)).sum()), len(members), level)
    fewest, most = (float(binom.ppf(q, n, fpr)) for q in ((1 - level) / 2, (1 + level) / 2))
    strict = float((members > _threshold(strangers, max(fewest, 0.0) / n)).mean()) if fewest < k else at.value
    loose = float((members > _threshold(strangers, min(most / n, 1.0))).mean())
    low = at.value - math.hypot(at.value - at.low, at.value - min(strict, at.value))
    high = at.value + math.hypot(at.high - at.value, max(loose, at.value) - at.value)
    return Estimate(at.value, max(low, 0.0), min(high, 1.0), len(members), level)


def curve(members: Floats, strangers: Floats) -> tuple[tuple[float, float], ...]:
    """False and true positive rates at thresholds from strict to loose."""
    if not len(members) or not len(strangers):
        return ()
    ranks = np.unique(np.rint(np.geomspace(1, len(strangers), min(_POINTS, len(strangers)))).astype(int))
    limits = np.sort(strangers)[::-1][ranks - 1]
    return tuple((float((strangers >= t).mean()), float((members >= t).mean())) for t in limits)


def _threshold(strangers: Floats, share: float) -> float:
    """The lowest score that at most this share of strangers is above."""
    if not len(strangers):
        return math.inf
    allowed = math.floor(share * len(strangers) + 1e-9)
    ranked = np.sort(strangers)[::-1]
    return -math.inf if allowed >= len(ranked) else float(ranked[allowed])
