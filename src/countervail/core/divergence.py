"""How far apart two distributions over the same values are: earth mover's distance, max divergence, KL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countervail.core.arrays import Floats
from countervail.core.conform import plain
from countervail.core.errors import bad_parameter
from countervail.core.guarantee.diversity import value_ranks
from countervail.core.hierarchy import Hierarchy
from countervail.core.schema import Column

Ground = Literal["equal", "ordered"] | Hierarchy | NDArray[np.float64]


def half_l1(p: ArrayLike, q: ArrayLike) -> Floats:
    """Earth mover's distance where any two values are 1 apart, row by row: half the L1 distance.

    Examples
    --------
    >>> half_l1([[0.49, 0.01, 0.5]], [[0.01, 0.49, 0.5]]).round(2).tolist()
    [0.48]
    """
    return np.asarray(np.abs(np.asarray(p, dtype=float) - np.asarray(q, dtype=float)).sum(axis=-1) / 2)


def line_distance(p: ArrayLike, q: ArrayLike, positions: ArrayLike) -> Floats:
    """Earth mover's distance of values on a line, row by row; `positions` ascend."""
    surplus = np.cumsum(np.asarray(p, dtype=float) - np.asarray(q, dtype=float), axis=-1)[..., :-1]
    return np.asarray(np.abs(surplus) @ np.diff(np.asarray(positions, dtype=float)))


def tree_distance(p: ArrayLike, q: ArrayLike, ancestors: ArrayLike) -> Floats:
    """Earth mover's distance where values are as far apart as the path between them in a tree is long.

    `ancestors[value, level]` is the node above a value, level 0 the value itself and the last level the root; -1 on the
    levels below a value that is a group itself.
    """
    surplus = np.asarray(p, dtype=float) - np.asarray(q, dtype=float)
    above = np.asarray(ancestors)
    moved = np.zeros(surplus.shape[:-1])
    # Each edge carries the net surplus below it.
    for level in range(above.shape[1] - 1):
        nodes = np.unique(above[:, level])
        below = above[:, level][:, None] == nodes[nodes >= 0][None, :]
        moved += np.abs(surplus @ below.astype(float)).sum(axis=-1)
    return moved


def matrix_distance(p: ArrayLike, q: ArrayLike, ground: ArrayLike) -> Floats:
    """Earth mover's distance for any ground distance, as a linear programme per row."""
    from scipy.optimize import linprog

    cost = np.asarray(ground, dtype=float)
    m = len(cost)
    leaving = np.kron(np.eye(m), np.ones(m))
    arriving = np.kron(np.ones(m), np.eye(m))
    out = []
    for a, b in zip(np.atleast_2d(np.asarray(p, dtype=float)), np.atleast_2d(np.asarray(q, dtype=float))):
        # The last row follows from the others; left in, rounding could make the programme infeasible.
        limits = np.vstack([leaving, arriving[:-1]])
        found = linprog(cost.ravel(), A_eq=limits, b_eq=np.concatenate([a, b[:-1]]), method="highs")
        out.append(float(found.fun))
    return np.array(out)


def max_divergence(p: ArrayLike, q: ArrayLike) -> Floats:
    """The largest |ln p/q| of any value, row by row: the epsilon of differential privacy between the two."""
    a, b = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.abs(np.log(a) - np.log(b))
    return np.asarray(np.where((a == 0) & (b == 0), 0.0, gap).max(axis=-1))


def kl_divergence(p: ArrayLike, q: ArrayLike) -> Floats:
    """Kullback-Leibler divergence of p from q in nats, row by row; infinite where q rules out what p allows."""
    a, b = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = a * (np.log(a) - np.log(b))
    return np.asarray(np.maximum(np.where(a == 0, 0.0, terms).sum(axis=-1), 0.0))


class Distance:
    """A distance between prediction distributions, ready for the values of one sensitive column.

    Parameters
    ----------
    kind : {"emd", "max_divergence", "kl"}
    ground : {"equal", "ordered"}, Hierarchy or square matrix
        For "emd": any two values 1 apart; difference on the column's scale (ranks of an ordinal one); path length in a
        hierarchy, whose groups may be values too; or any distance between the values, in the order of `values`.
    scale : {"half", "quarter"}
        For "emd" with equal ground: half the L1 distance, or a quarter, as one paper prints it.
    """

    def __init__(self, kind: str, ground: Any, scale: str, values: Sequence[Any], column: Column, owner: str) -> None:
        if kind not in ("emd", "max_divergence", "kl"):
            raise bad_parameter(owner, "distance", "one of ('emd', 'max_divergence', 'kl')", kind)
        if scale not in ("half", "quarter"):
            raise bad_parameter(owner, "scale", "'half' or 'quarter'", scale)
        if scale == "quarter" and (kind != "emd" or not isinstance(ground, str) or ground != "equal"):
            must = "'half' unless distance='emd' and ground='equal'"
            raise bad_parameter(owner, "scale", must, scale)
        self.kind, self.scale = kind, scale
        self._tree = self._matrix = self._order = self._places = None
        if isinstance(ground, Hierarchy):
            self._tree = ground.nodes(list(values))
        elif isinstance(ground, str):
            if ground not in ("equal", "ordered"):
                must = "'equal', 'ordered', a Hierarchy or a square matrix"
                raise bad_parameter(owner, "ground", must, ground)
            if ground == "ordered":
                self._order, self._places = _line(values, column)
        else:
            self._matrix = _checked(ground, len(values), owner)

    def __call__(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Row by row."""
        a, b = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        if self.kind == "max_divergence":
            return max_divergence(a, b)
        if self.kind == "kl":
            return kl_divergence(a, b)
        if self._tree is not None:
            return tree_distance(a, b, self._tree)
        if self._matrix is not None:
            return matrix_distance(a, b, self._matrix)
        if self._order is not None and self._places is not None:
            return line_distance(a[..., self._order], b[..., self._order], self._places)
        return half_l1(a, b) if self.scale == "half" else half_l1(a, b) / 2


def _line(values: Sequence[Any], column: Column) -> tuple[NDArray[np.intp], Floats]:
    """The order of the values and their places: numbers as they are, levels by rank; missing comes last, 1 apart."""
    order = np.argsort(value_ranks(values, column))
    places = np.arange(len(values), dtype=float)
    if column.numeric:
        numbers = [values[i] for i in order if values[i] is not None]
        places[: len(numbers)] = [float(v) for v in numbers]
        places[len(numbers) :] = (places[len(numbers) - 1] if numbers else 0.0) + 1.0
    elif column.levels:
        rank = {plain(v): float(i) for i, v in enumerate(column.levels)}
        places = np.array([rank.get(plain(values[i]), float(len(rank))) for i in order])
    return order, places


def _checked(ground: Any, n: int, owner: str) -> Floats:
    try:
        matrix = np.asarray(ground, dtype=float)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.shape != (n, n) or not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
        must = f"a {n} x {n} matrix of distances at least 0 with zeros on the diagonal"
        raise bad_parameter(owner, "ground", must, f"an array of shape {matrix.shape}", "One row per sensitive value.")
    return matrix
