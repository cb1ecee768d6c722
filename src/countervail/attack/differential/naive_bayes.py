"""Bernoulli naive Bayes on true/false features, where the target's own are all true: counts of agreement suffice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import BernoulliNB

from countervail.attack.shared.released import plain_axis
from countervail.core.canonical import code_values
from countervail.core.guarantee import NoGuarantee
from countervail.core.protocols import Agreement, LeaveOneOut
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.schema import Schema
from countervail.core.table import Table

Floats = NDArray[np.float64]
_STEP = 20_000  # people at a time
_TINY, _LIFT = 1e-100, 1e100


def closed_form(learner: Any) -> bool:
    """Whether the learner's prediction follows from the counts."""
    return (
        type(learner) is BernoulliNB
        and isinstance(learner.alpha, (int, float))
        and learner.alpha > 1e-9
        and learner.fit_prior
        and learner.class_prior is None
        and (learner.binarize is None or 0 <= learner.binarize < 1)
    )


def both_predictions(source: LeaveOneOut, rows: NDArray[np.int64], alpha: float) -> tuple[Floats, Floats]:
    """The distributions predicted for each person, with and without their record."""
    n_values = len(source.values)
    totals = np.bincount(source.secret, minlength=n_values).astype(float)
    with_person, without = np.empty((len(rows), n_values)), np.empty((len(rows), n_values))
    for a in range(0, len(rows), _STEP):
        part = rows[a : a + _STEP]
        counts = source.agreement(part)
        whole = np.broadcast_to(totals, (len(part), n_values))
        less = whole.copy()
        less[np.arange(len(part)), source.secret[part]] -= 1
        with_person[a : a + _STEP] = _bayes(counts.with_person, whole, alpha)
        without[a : a + _STEP] = _bayes(counts.without_person, less, alpha)
    return with_person, without


def _bayes(agree: NDArray[np.int32], totals: Floats, alpha: float) -> Floats:
    """Prior times the share that agrees, attribute by attribute; a value that nobody has is not a class."""
    p = totals / totals.sum(axis=1, keepdims=True)
    base = totals + 2 * alpha
    for j in range(agree.shape[1]):
        p *= (agree[:, j] + alpha) / base
        small = p.max(axis=1) < _TINY
        p[small] *= _LIFT
    out: Floats = p / p.sum(axis=1, keepdims=True)
    return out


@dataclass(frozen=True, eq=False, slots=True)
class IdentityCounts:
    """Counts of agreement for the table as it is, which is the same without a person but for their own row."""

    values: tuple[Any, ...]
    secret: NDArray[np.int32]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, table: Table, secret: NDArray[np.int64], values: tuple[Any, ...]) -> IdentityCounts:
        """Code the quasi-identifiers."""
        names = table.schema.names("quasi")
        codes = [code_values(table.frame[n])[0] for n in names]
        return cls(values, secret.astype(np.int32), np.column_stack(codes))

    def agreement(self, rows: NDArray[np.int64]) -> Agreement:
        """Equal values agree."""
        out = np.empty((len(rows), self.codes.shape[1], len(self.values)), np.int32)
        for j in range(self.codes.shape[1]):
            held = np.zeros((self.codes[:, j].max() + 1, len(self.values)), np.int32)
            np.add.at(held, (self.codes[:, j], self.secret), 1)
            out[:, j] = held[self.codes[rows, j]]
        less = out.copy()
        less[np.arange(len(rows)), :, self.secret[rows]] -= 1
        return Agreement(out, less)


def identity(table: Table) -> Release:
    """The table as it is, without identifiers: the yardstick that no anonymiser should come near."""
    names = table.schema.names("quasi")
    axes = tuple(plain_axis(table.frame[n], n, table.schema) for n in names)
    shown = Schema(tuple(c for c in table.schema if c.role != "identifier"), table.schema.favourable)
    others = table.frame[[c.name for c in shown if c.role != "quasi"]].reset_index(drop=True)
    return Release(Regions(axes, len(table)), np.arange(len(table)), others, shown, NoGuarantee("published as it is"))
