"""One table at several k: what each costs, what it hides, and where the knee is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from countervail.core.errors import bad_parameter
from countervail.core.protocols import Progress
from countervail.core.stats import Estimate, plain_json
from countervail.core.table import Table
from countervail.measure.queries import query_error
from countervail.measure.table import ncp, release_risk
from countervail.measure.utility import Encoding, ModelUtility, model_utility
from countervail.model.train import training_labels
from countervail.protect.base import TableProtector
from countervail.protect.mondrian.mondrian import Mondrian

_STRAIGHT = 0.05  # a curve that stays this near to its chord has no knee


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The figures of one k; no model without a target column."""

    k: int
    classes: int
    suppressed: int
    ncp: float
    prosecutor: float
    marketer: float
    query_error: float
    model: ModelUtility | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """Figures for ascending k; `knee` is one of them, or None where the loss grows evenly."""

    points: tuple[SweepPoint, ...]
    knee: int | None
    words: str

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


def sweep(
    table: Table,
    ks: Sequence[int],
    *,
    protector: TableProtector | None = None,
    encoding: Encoding = "midpoint",
    test_size: float = 0.3,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Sweep:
    """Anonymise at every k, by Mondrian or whatever protector takes one; loss and risk are those of the whole table.

    The model learns from a release of one part of the rows and is tested on the rest, with the same parting at every k.

    Examples
    --------
    >>> import countervail as cv
    >>> found = cv.measure.sweep(cv.load("german_credit"), [2, 10, 50], encoding="tf")
    >>> [p.k for p in found.points], found.points[0].ncp < found.points[-1].ncp
    ([2, 10, 50], True)
    """
    wanted = sorted(set(ks))
    if not wanted or any(not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1 for k in wanted):
        raise bad_parameter("sweep", "ks", "whole numbers of at least 1", list(ks))
    if table.schema.target is not None:
        training_labels(table, "sweep")
    # A sweep releases nothing, so that there is nothing to enter in a ledger.
    base = Mondrian() if protector is None else protector
    settings = {n: v for n, v in base.get_params(deep=False).items() if n != "ledger"}
    parts = table.split(test_size=test_size, random_state=random_state) if table.schema.target is not None else None
    points: list[SweepPoint] = []
    for i, k in enumerate(wanted):
        if progress is not None:
            progress(i, len(wanted))
        known = points[0].model.original if points and points[0].model is not None else None
        points.append(_point(type(base)(**{**settings, "k": int(k)}), table, parts, encoding, random_state, known))
    if progress is not None:
        progress(len(wanted), len(wanted))
    knee, words = knee_of([p.k for p in points], [p.ncp for p in points])
    return Sweep(tuple(points), knee, " ".join(filter(None, [words, _model_words(points)])))


def _point(
    protector: Any,
    table: Table,
    parts: tuple[Table, Table] | None,
    encoding: Encoding,
    seed: int,
    before: Estimate | None,
) -> SweepPoint:
    release = protector.fit(table).protect(table)
    risk = release_risk(release)
    model = None
    if parts is not None:
        learnt = clone(protector).fit(parts[0])
        release_of_part = learnt.protect(parts[0])
        model = model_utility(release_of_part, parts[1], encoding=encoding, before=before, random_state=seed)
    asked = query_error(release, columns=min(2, len(release.regions.axes)), random_state=seed)
    return SweepPoint(
        protector.k,
        len(np.unique(release.classes())),
        release.suppressed,
        float(ncp(release).mean()),
        risk.prosecutor,
        risk.marketer,
        asked.median,
        model,
    )


def knee_of(ks: Sequence[int], costs: Sequence[float]) -> tuple[int | None, str]:
    """Where the cost over log k bends most away from a straight line, and what that means.

    Examples
    --------
    >>> knee_of([2, 4, 8, 16], [0.01, 0.02, 0.03, 0.3])[0]
    8
    >>> knee_of([2, 4, 8, 16], [0.1, 0.2, 0.3, 0.4])[1]
    'There is no knee: each doubling of k costs about as much as the one before (NCP 10.0% to 40.0%).'
    """
    if len(ks) < 3:
        return None, "Where the knee is takes at least three values of k."
    first, last = costs[0], costs[-1]
    if last - first <= 1e-12:
        return None, f"There is no knee: the loss (NCP {first:.1%}) does not grow with k, so take the largest."
    x = np.log(np.asarray(ks, dtype=float))
    across = (x - x[0]) / (x[-1] - x[0])
    below = across - (np.asarray(costs) - first) / (last - first)
    at = int(np.argmax(np.abs(below)))
    if abs(below[at]) < _STRAIGHT:
        return None, (
            f"There is no knee: each doubling of k costs about as much as the one before "
            f"(NCP {first:.1%} to {last:.1%})."
        )
    k = int(ks[at])
    if below[at] > 0:
        return k, (
            f"The knee is at k={k}: up to there NCP grows slowly, from {first:.1%} to {costs[at]:.1%}; beyond it each "
            f"doubling of k costs more, up to {last:.1%} at k={ks[-1]}."
        )
    return k, (
        f"The knee is at k={k}: most of the loss is paid by then (NCP {first:.1%} to {costs[at]:.1%}); a larger k adds "
        f"little, {last:.1%} at k={ks[-1]}."
    )


def _model_words(points: Sequence[SweepPoint]) -> str:
    """The largest k at which the model is as good as before, as far as the test rows can tell."""
    judged = [(p.k, p.model) for p in points if p.model is not None]
    if not judged:
        return ""
    before = judged[0][1].original
    as_good = [k for k, m in judged if m.released.high >= before.value]
    shown = f"{before.value:.1%} on the original rows"
    if not as_good:
        return f"At every k the model is measurably worse than before ({shown})."
    worst = min(judged, key=lambda pair: pair[1].released.value)
    return (
        f"The model is as accurate as before ({shown}) up to k={max(as_good)}, as far as {before.n:,} test rows can "
        f"tell; at worst {worst[1].released.value:.1%} (k={worst[0]})."
    )
