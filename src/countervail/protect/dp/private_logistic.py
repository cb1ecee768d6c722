"""Logistic regression by noisy gradients, in whole numbers: a model that its people may see.

Everything that records are added up to is a whole number, so no rounding can add to what one record moves. What is made
of the noisy sums is done in floating point, where only noisy things are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.core.errors import SchemaError, bad_parameter, check_count
from countervail.core.guarantee import Adjacency, DifferentialPrivacy
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.explain.base import check_table
from countervail.ledger.codec import pack, unpack
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.model.private import PrivateLogistic
from countervail.protect.dp.base import DECLARED, check_epsilon
from countervail.protect.dp.budgeted import cost_of, spelling
from countervail.protect.dp.grid import Axis, Grid
from countervail.protect.dp.synthetic.accounting import L1, Neighbouring, NoiseBudget, check_budget, rho_of

PAGE = "docs/decisions/dp-logistic.md"
NAME = "private-logistic"
TOTAL, ONES, SLOPES = Fraction(1, 100), Fraction(14, 100), Fraction(85, 100)
WHOLE = 1 << 10  # a share of one, or a probability of one
WEIGHT = 1 << 16  # a weight of one
_KNOTS = 8  # of an ordered column: between them weights change evenly
_REACH = 12  # scores beyond it count as it
_HOPELESS = 1e9  # noise of a slope, in parts of the largest there is
_STEP, _CURVE = 0.6, 0.8  # of a full step; how curved the loss is, in parts of the most


def train_private_logistic(
    table: Table,
    epsilon: float = 1.0,
    *,
    delta: float = 1e-6,
    adjacency: Neighbouring = "add-remove",
    steps: int = 8,
    missing: Sequence[str] = (),
    random_state: RandomState = None,
    ledger: Ledger | None = None,
) -> PrivateLogistic:
    """A model of the table's target that is differentially private itself, so that answers about it can be as a whole.

    Parameters
    ----------
    table : Table
        With declared domains, also of the target. Values outside go to the ends; a target that is missing, or that was
        not declared, counts as the first label.
    epsilon, delta, adjacency
        As for :class:`PrivateSynthetic`; the model may be used, and published, as often as you like.
    steps : int
        How often all people's slopes are added up, each time with a share of the budget.
    missing : list of str
        Columns in which "missing" is a public level of its own.
    random_state : int, optional
        For tests only: seeded noise promises nothing, and says so.
    ledger : Ledger, optional
        Counts the training against a budget for these people, and keeps the weights.

    Notes
    -----
    *Threat model*: someone who knows every other record, the domains and this code, and holds the model. Not covered:
    settings that were chosen by looking at how well models of the same people do.

    References
    ----------
    Proof: docs/decisions/dp-logistic.md. After Song, Chaudhuri, Sarwate: Stochastic gradient descent with
    differentially private updates (2013); Canonne, Kamath, Steinke: The discrete Gaussian for differential privacy
    (2020).

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_table
    >>> model = cv.train_private_logistic(small_table(4_000), epsilon=2.0)
    >>> private = cv.PrivateSynthetic(epsilon=1.0).fit(small_table(4_000), model)
    >>> private.guarantee().given, private.guarantee().total
    ('private model', 3.0)
    """
    owner = "train_private_logistic"
    check_epsilon(epsilon, owner)
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
        raise bad_parameter(owner, "delta", "at least 0 and below 1", delta, "Try delta=1e-6.")
    check_budget(epsilon, delta, owner)
    if adjacency not in L1:
        raise bad_parameter(owner, "adjacency", f"one of {list(L1)}", adjacency)
    check_count(owner, "steps", steps)
    check_ledger(ledger, owner, random_state)
    check_table(table, owner, DECLARED)
    grid, labels = Grid.of(table, owner, missing, numbers=True), _labels(table, owner)
    budget = NoiseBudget(float(epsilon), float(delta), adjacency, random_state)
    covers: Adjacency = "both" if adjacency == "replace-one" else "add-remove"
    rho = rho_of(float(epsilon), float(delta)) if delta else None
    promise = DifferentialPrivacy(float(epsilon), None, covers, PAGE, delta=float(delta), rho=rho, given="no model")

    def draw() -> Ints:
        return trained(grid.codes(table.features), _classes(table, labels), len(labels), grid, budget, int(steps))

    if ledger is None:
        weights = draw()
    else:
        settings: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "steps": steps}
        settings |= {"target": table.schema.target, "labels": labels}
        request = spelling(settings, (), grid)
        weights = unpack(ledger.once(request, cost_of(promise), NAME, lambda: pack([draw()])))[0]
    return _model(weights, grid, labels, None if random_state is not None else promise.to_dict())


@dataclass(frozen=True, eq=False, slots=True)
class Shares:
    """One column: for each position, how much of each weight it takes, in parts of `WHOLE`; a row adds up to it."""

    parts: Ints

    @classmethod
    def of(cls, axis: Axis) -> Self:
        """Every label its own weight; on an order, at most so many weights, and in between the two nearest."""
        alone = int(axis.numeric and axis.missing)  # "missing" lies beside no number: a weight of its own
        m = len(axis) - alone
        if not axis.ordered or m <= _KNOTS:
            return cls(np.eye(m + alone, dtype=np.int64) * WHOLE)
        steps, at = _KNOTS - 1, np.arange(m)
        left = np.minimum(at * steps // (m - 1), steps - 1)
        right = (2 * WHOLE * (at * steps - left * (m - 1)) + m - 1) // (2 * (m - 1))  # rounded, in whole numbers
        parts = np.zeros((m + alone, _KNOTS + alone), dtype=np.int64)
        parts[at, left], parts[at, left + 1] = WHOLE - right, right
        if alone:
            parts[m, _KNOTS] = WHOLE
        return cls(parts)


def trained(codes: Ints, classes: Ints, labels: int, grid: Grid, budget: NoiseBudget, steps: int) -> Ints:
    """Vector x weight, in parts of `WEIGHT`: the one draw, and the only function here that looks at records."""
    shares = [Shares.of(a) for a in grid.axes]
    d, vectors = len(shares), 1 if labels == 2 else labels
    people = int(budget.counts(np.array([len(codes)], dtype=np.int64), budget.total * TOTAL)[0])
    ones = [
        budget.counts(np.bincount(codes[:, j], minlength=len(a)).astype(np.int64), budget.total * ONES / d)
        for j, a in enumerate(grid.axes)
    ]
    l1, l2_squared = reach(d, vectors)
    each = budget.total * SLOPES / steps
    noise = budget.sum_scale(each, l1, l2_squared) / WHOLE**2
    many = float(max(people, 1))
    ridge = _ridge(noise / many)
    curve = _curvature(ones, shares, labels)
    inverse = np.linalg.inv(curve + ridge * np.eye(len(curve)))
    weights = np.zeros((vectors, len(curve)), dtype=np.int64)
    for _ in range(steps):
        noisy = budget.sums(slopes(codes, classes, shares, weights), each, l1, l2_squared)
        now = weights / WEIGHT
        slope = noisy / WHOLE**2 / many + ridge * now
        weights = np.rint(np.clip(now - _STEP * slope @ inverse, -_REACH, _REACH) * WEIGHT).astype(np.int64)
    return weights


def reach(columns: int, vectors: int) -> tuple[int, int]:
    """How long one record's slopes are at most: in L1, and in L2 squared.

    A record's shares are `WHOLE` in each column (so at most that in L2), its miss is `WHOLE` at most for two labels.
    For more it is one miss and others of the same sum, at most `WHOLE` each: twice that in L1 and in L2 squared.
    """
    times = 1 if vectors == 1 else 2
    return times * columns * WHOLE**2, times * columns * WHOLE**4


def slopes(codes: Ints, classes: Ints, shares: Sequence[Shares], weights: Ints) -> Ints:
    """Vector x weight: the sum of each record's slopes, in whole numbers."""
    missed = misses(codes, classes, shares, weights)
    parts = []
    for j, s in enumerate(shares):
        # Sums of whole numbers far below 2^53: exact, in whatever order.
        by_position = [np.bincount(codes[:, j], weights=m, minlength=len(s.parts)).astype(np.int64) for m in missed.T]
        parts.append(np.stack(by_position) @ s.parts)
    found: Ints = np.concatenate(parts, axis=1)
    return found


def misses(codes: Ints, classes: Ints, shares: Sequence[Shares], weights: Ints) -> Ints:
    """Record x vector: probability less truth, in parts of `WHOLE`; a function of the record and of the weights."""
    scores = np.zeros((len(codes), len(weights)), dtype=np.int64)
    start = 0
    for j, s in enumerate(shares):
        width = s.parts.shape[1]
        scores += (s.parts @ weights[:, start : start + width].T)[codes[:, j]]
        start += width
    scores //= WEIGHT  # in parts of WHOLE
    if scores.shape[1] == 1:
        at = np.arange(-_REACH * WHOLE, _REACH * WHOLE + 1)
        likely = np.rint(WHOLE / (1 + np.exp(-at / WHOLE))).astype(np.int64)
        found: Ints = likely[np.clip(scores, at[0], at[-1]) + _REACH * WHOLE] - WHOLE * classes[:, None]
        return found
    behind = np.minimum(scores.max(axis=1, keepdims=True) - scores, _REACH * WHOLE)
    times = np.rint(np.exp(-np.arange(_REACH * WHOLE + 1) / WHOLE) * (1 << 20)).astype(np.int64)[behind]
    missed: Ints = times * WHOLE // times.sum(axis=1, keepdims=True)
    missed[np.arange(len(codes)), classes] -= WHOLE
    return missed


def _ridge(noise: float) -> float:
    """What pulls weights to nothing: little where noise is little, all of it where a slope is mostly noise."""
    noise = min(noise, _HOPELESS)  # beyond it all is pulled to nothing, and squares would leave the floats
    return noise * (0.5 + 60 * noise) + 1e-6


def _curvature(ones: Sequence[Ints], shares: Sequence[Shares], labels: int) -> Floats:
    """How the loss bends, as if columns had nothing to do with each other: from noisy counts alone."""
    widths = [s.parts.shape[1] for s in shares]
    ends = np.cumsum([0, *widths])
    blocks, means = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1])
    for j, (noisy, s) in enumerate(zip(ones, shares)):
        counts = np.maximum(noisy, 0).astype(float)
        held, part = counts / max(counts.sum(), 1.0), s.parts / WHOLE
        mine = slice(ends[j], ends[j + 1])
        means[mine] = held @ part
        blocks[mine, mine] = part.T @ (held[:, None] * part) - np.outer(means[mine], means[mine])
    most = (labels - 1) / labels**2  # the spread of a label when all are as likely
    curve: Floats = _CURVE * most * (blocks + np.outer(means, means))
    return curve


def _labels(table: Table, owner: str) -> list[Any]:
    target = table.schema.target
    declared = None if target is None or table.schema[target].numeric else table.schema[target].public
    if declared is None or len(declared) < 2:
        raise SchemaError(
            f"{owner} needs a target with declared labels, at least two: labels read off the rows would give them "
            f"away. Pass domains={{target: [...]}} to Table.from_frame, or add them to the schema."
        )
    return list(declared)


def _classes(table: Table, labels: Sequence[Any]) -> Ints:
    """The label of each record by its place; what was not declared counts as the first."""
    plain = replace(table.schema[str(table.schema.target)], type="categorical", domain=tuple(labels), levels=None)
    return Axis.of(plain, table.target.dtype, missing=False).codes(table.target)


def _model(weights: Ints, grid: Grid, labels: Sequence[Any], promise: dict[str, Any] | None) -> PrivateLogistic:
    columns, start = [], 0
    for axis in grid.axes:
        parts = Shares.of(axis).parts
        width = parts.shape[1]
        own = weights[:, start : start + width] @ parts.T / (WEIGHT * WHOLE)
        start += width
        held = {"name": axis.column.name, "numeric": axis.numeric, "values": list(axis.values)}
        columns.append({**held, "default": axis.default, "missing": axis.missing, "weights": own.tolist()})
    return PrivateLogistic(labels, columns, promise)
