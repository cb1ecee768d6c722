"""The epsilon of a whole mechanism, measured from outside on tiny tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats, Ints
from countervail.core.encode import Encoder
from countervail.core.errors import PrivacyWarning, bad_parameter
from countervail.core.guarantee.evidence import Evidence, epsilon_bound, numbered
from countervail.core.rng import generator
from countervail.core.table import Table
from countervail.protect.dp.grid import Grid
from countervail.protect.published.clusters import folded_back, noisy_centres, spread_out
from countervail.protect.published.columns import Columns
from countervail.protect.published.perturbed.functional import noisy_prototypes, noisy_weights
from countervail.protect.published.perturbed.svm import least_weights, noisy, weight_reach
from countervail.study import tiny
from countervail.study.mechanisms import mechanisms

_NEIGHBOURS = 3
_LATENT, _RIDGE = 4, 0.01


def audit_mechanism(
    name: str, epsilon: float = 1.0, *, draws: int = 20_000, training: int | None = None, alpha: float = 1e-6
) -> Evidence | None:
    """The strongest lower bound on a mechanism's epsilon over a few pairs of tables that differ in one person.

    The shipped class answers the same person again and again. Mechanisms whose noise is drawn once, at `fit`, are too
    slow for that and give None, but for some published ones, of which the noisy thing itself is looked at, before any
    model is asked: of LDP the noisy record, of PrivRecourse the noisy centres, of FunctionalPrototypes the noisy
    prototypes (the claims of these two are about a record there or not: twice that where one is exchanged, as here),
    of RobustSVM the noisy weights. LaplaceRecourse hides what a model was trained on: it gets a model of each table.

    Parameters
    ----------
    name : str
        One of `mechanisms()`, with an epsilon.
    epsilon : float
        What it claims.
    draws, training : int
        Answers that measure, and that choose what to look at (by default a quarter as many).
    alpha : float
        The probability with which the bound may be wrong, all pairs together.

    Examples
    --------
    >>> from countervail.study import audit_mechanism
    >>> audit_mechanism("published-inline", 1.0, draws=2_000).refutes(1.0)
    True
    """
    claiming = {n: m for n, m in mechanisms().items() if m.takes("epsilon")}
    if name not in claiming:
        raise bad_parameter("audit_mechanism", "name", f"one of {list(claiming)}", name)
    if draws < 1:
        raise bad_parameter("audit_mechanism", "draws", "a whole number of at least 1", draws)
    if not claiming[name].draws_each and name not in _ONCE:
        return None
    found = pair_evidence(name, epsilon, draws=draws, training=training, alpha=alpha)
    return max(found.values(), key=lambda e: e.epsilon)


def pair_evidence(
    name: str, epsilon: float, *, draws: int, training: int | None = None, alpha: float = 1e-6
) -> dict[str, Evidence]:
    """What each pair of tables proves."""
    first = max(1, draws // 4) if training is None else training
    found = {}
    for label, pair in tiny.PAIRS.items():
        outcomes = [_outcomes(name, epsilon, tiny.table_of(rows), first + draws) for rows in pair]
        a, b = numbered(*outcomes)
        found[label] = epsilon_bound((a[:first], b[:first]), (a[first:], b[first:]), alpha=alpha / len(tiny.PAIRS))
    return found


def _outcomes(name: str, epsilon: float, table: Table, n: int) -> Ints:
    """n answers to the same person as numbers."""
    if name in _ONCE:
        return _ONCE[name](epsilon, table, n)
    made = mechanisms()[name].make(epsilon, _NEIGHBOURS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # that nothing is promised is what is shown here
        answers = made.fit(table, tiny.scores).explain(tiny.asker(n))
    return _numbers(tiny.coded(answers.counterfactuals))


def _noisy_record(epsilon: float, table: Table, n: int) -> Ints:
    """The exchanged person's row in n noisy tables: it is released as it is, whatever is computed from it."""
    encoder = Encoder.fit(table)
    rows = encoder.encode(table.features)
    columns, rng = Columns.of(encoder, rows), generator(None)
    last = rows[len(rows) - len(tiny.ALWAYS) - 1]
    share = np.full(n, epsilon / rows.shape[1])
    noisy = [columns.noisy(j, np.full(n, last[j]), share, rng) for j in range(rows.shape[1])]
    return _numbers(np.column_stack(noisy).astype(np.int64))


def _noisy_centres(epsilon: float, table: Table, n: int) -> Ints:
    """The centres of n clusterings in one round from two public corners: all that paths are made of."""
    grid, rng = Grid.of(table, "audit_mechanism"), generator(None)
    points = spread_out(grid, grid.codes(table.features))
    start = spread_out(grid, np.array([np.zeros(len(grid.axes), np.int64), grid.sizes - 1]))
    drawn = [folded_back(grid, noisy_centres(points, start, len(grid.axes), epsilon, 1, rng)) for _ in range(n)]
    first, second = (_numbers(np.array([d[i] for d in drawn])) for i in (0, 1))
    return 1000 * first + second


def _noisy_rows(epsilon: float, table: Table, n: int) -> Ints:
    """The prototypes of both decisions, read as rows, after n trainings: all that answers are led by."""
    grid, rng = Grid.of(table, "audit_mechanism"), generator(None)
    points, axes = spread_out(grid, grid.codes(table.features)), len(grid.axes)
    said = tiny.scores(table.features).argmax(axis=1)
    drawn = []
    for _ in range(n):
        weights = noisy_weights(points, axes, _LATENT, epsilon / 2, rng)
        made = noisy_prototypes(points @ weights, said, 2, axes, epsilon / 2, rng)
        drawn.append(folded_back(grid, np.clip(made @ weights.T, 0.0, 1.0)))
    first, second = (_numbers(np.array([d[i] for d in drawn])) for i in (0, 1))
    return 1000 * first + second


def _noisy_machine(epsilon: float, table: Table, n: int) -> Ints:
    """A noisy weight of each column, in steps of one."""
    grid, rng = Grid.of(table, "audit_mechanism"), generator(None)
    points = spread_out(grid, grid.codes(table.features))
    points = np.column_stack([points, np.ones(len(points))]) / np.sqrt(len(grid.axes) + 1)
    exact = least_weights(points, np.where(tiny.scores(table.features).argmax(axis=1) == 1, 1.0, -1.0), _RIDGE)
    scale = weight_reach(len(points), _RIDGE) / epsilon
    first = np.cumsum([0, *(1 if a.ordered else len(a) for a in grid.axes[:-1])])
    drawn = np.stack([noisy(exact, scale, rng) for _ in range(n)])[:, first]
    return _numbers(np.clip(np.floor(drawn) + 5, 0, 9).astype(np.int64))


def _noisy_recourse(epsilon: float, table: Table, n: int) -> Ints:
    """n answers to the same person about a model that learned from this table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        made = mechanisms()["published-laplace-recourse"].make(epsilon).fit(table, _learned(table))
    return _numbers(tiny.coded(made.explain(tiny.asker(n)).counterfactuals))


def _learned(table: Table) -> Callable[[pd.DataFrame], Floats]:
    """Scores of a plain logistic regression, without any noise, on these rows alone."""
    from sklearn.linear_model import LogisticRegression

    sides = tiny.scores(table.features).argmax(axis=1)
    fitted = LogisticRegression(C=10.0).fit(tiny.coded(table.features), sides)
    return lambda rows: np.asarray(fitted.predict_proba(tiny.coded(rows)))


def _numbers(rows: Ints) -> Ints:
    """Each row as one number."""
    coded: Ints = rows @ np.array([100, 10, 1])
    return coded


_ONCE: dict[str, Callable[[float, Table, int], Ints]] = {
    "published-ldp": _noisy_record,
    "published-recourse": _noisy_centres,
    "published-prototypes": _noisy_rows,
    "published-robust-svm": _noisy_machine,
    "published-laplace-recourse": _noisy_recourse,
}
