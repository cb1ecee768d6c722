"""How much privacy loss do draws prove? A lower bound on epsilon that holds with a stated confidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.core.guarantee.two_shares import TwoShares, share_above, share_below

if TYPE_CHECKING:
    from countervail.core.table import Table

_CUTS = 400  # sizes of the event that are looked at
_RERUNS = 40
_WAYS = ((0, 1), (1, 0))  # from the table to its neighbour, and back


@dataclass(frozen=True, slots=True)
class Evidence:
    """What draws prove: epsilon is at least `epsilon`, unless something of probability `alpha` has happened.

    The bound rests on one event: it came `hits` times in `draws` draws on one side and `misses` times on the other.
    """

    epsilon: float
    alpha: float
    delta: float
    draws: int
    hits: int
    misses: int
    forward: bool

    def refutes(self, epsilon: float) -> bool:
        """Whether a promise of this epsilon is broken."""
        return self.epsilon > epsilon

    def __str__(self) -> str:
        side = "table" if self.forward else "neighbour"
        return (
            f"epsilon >= {self.epsilon:.3f} with confidence 1 - {self.alpha:g}: an event of the {side} came "
            f"{self.hits:,} times in {self.draws:,} draws, and {self.misses:,} times on the other side"
        )


def epsilon_bound(
    training: tuple[Ints, Ints], fresh: tuple[Ints, Ints], *, alpha: float = 1e-6, delta: float = 0.0
) -> Evidence:
    """The bound from outcomes (as numbers 0, 1, ...) on two neighbouring tables.

    The training draws choose the direction and the event: outcomes by falling likelihood ratio, as many as give the
    best bound. The fresh draws alone bound it (docs/decisions/epsilon-bounds.md).
    """
    size = 1 + max(int(x.max(initial=0)) for x in (*training, *fresh))
    chosen, tested = ([np.bincount(x, minlength=size) for x in pair] for pair in (training, fresh))
    ways = [(*_event(chosen[i], chosen[j], len(training[i]), len(training[j]), delta), i, j) for i, j in _WAYS]
    _, event, i, j = max(ways, key=lambda way: way[0])
    hits, misses = int(tested[i][event].sum()), int(tested[j][event].sum())
    found = TwoShares(hits, len(fresh[i]), misses, len(fresh[j])).epsilon(alpha, delta)
    return Evidence(found, alpha, delta, len(fresh[0]), hits, misses, i == 0)


@dataclass(frozen=True, slots=True)
class RhoEvidence:
    """What draws prove of zero-concentrated privacy: rho is at least `rho`, but for a chance of `alpha`."""

    rho: float
    alpha: float
    draws: int
    hits: int
    misses: int
    forward: bool

    def refutes(self, rho: float) -> bool:
        """Whether a promise of this rho is broken."""
        return self.rho > rho


def rho_bound(training: tuple[Ints, Ints], fresh: tuple[Ints, Ints], *, alpha: float = 1e-6) -> RhoEvidence:
    """The same for rho-zCDP: of every event, the Renyi divergence at order a is at most a rho.

    The shares of one event on both sides are bounded as in :func:`epsilon_bound`; the divergence grows with the first
    and falls with the second, so it is at least that of the bounds.
    """
    size = 1 + max(int(x.max(initial=0)) for x in (*training, *fresh))
    chosen, tested = ([np.bincount(x, minlength=size) for x in pair] for pair in (training, fresh))
    best = None
    for i, j in _WAYS:
        order, cuts = _ordered(chosen[i], chosen[j])
        low = share_below(np.cumsum(chosen[i][order])[cuts], len(training[i]), 1e-4)
        high = share_above(np.cumsum(chosen[j][order])[cuts], len(training[j]), 1e-4)
        event = order[: int(cuts[int(np.argmax(_event_rho(low, high)))]) + 1]
        hits, misses = int(tested[i][event].sum()), int(tested[j][event].sum())
        p, q = share_below(hits, len(fresh[i]), alpha / 4), share_above(misses, len(fresh[j]), alpha / 4)
        found = float(_event_rho(p.reshape(1), q.reshape(1))[0])
        if best is None or found > best.rho:
            best = RhoEvidence(found, alpha, len(fresh[0]), hits, misses, i == 0)
    assert best is not None
    return best


def _event_rho(p: Floats, q: Floats) -> Floats:
    """The least rho under which an event may have these probabilities; nothing where q is not below p."""
    p, q = np.clip(p, 1e-300, 1 - 1e-12)[:, None], np.clip(q, 1e-300, 1 - 1e-12)[:, None]
    orders = 1 + np.exp(np.linspace(-7.0, 4.0, 111))[None]
    inside = orders * np.log(p) + (1 - orders) * np.log(q)
    outside = orders * np.log1p(-p) + (1 - orders) * np.log1p(-q)
    divergence = np.logaddexp(inside, outside) / (orders - 1)
    found: Floats = np.where((p > q)[:, 0], (divergence / orders).max(axis=1), 0.0)
    return found


def _ordered(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Outcomes by falling likelihood ratio, and how many of them are tried as an event."""
    order: Ints = np.argsort(-np.log((a + 0.5) / (b + 0.5)), kind="stable")
    return order, np.unique(np.linspace(0, len(order) - 1, min(len(order), _CUTS)).astype(int))


def _event(a: Ints, b: Ints, n_a: int, n_b: int, delta: float) -> tuple[float, Ints]:
    """The outcomes that tell `a` from `b` best, and how well they do."""
    order, cuts = _ordered(a, b)
    low = share_below(np.cumsum(a[order])[cuts], n_a, 1e-4) - delta
    high = share_above(np.cumsum(b[order])[cuts], n_b, 1e-4)
    score = np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)
    best = int(np.argmax(score))
    return float(score[best]), order[: int(cuts[best]) + 1]


def numbered(*groups: Any) -> list[Ints]:
    """Outcomes (numbers, rows of a matrix, or anything hashable) as numbers 0, 1, ... common to all groups."""
    arrays = [np.asarray(g) if not isinstance(g, list) else g for g in groups]
    if all(isinstance(a, np.ndarray) for a in arrays):
        stacked = np.concatenate(arrays)
        axis = 0 if stacked.ndim > 1 else None
        codes = np.unique(stacked, axis=axis, return_inverse=True)[1].ravel().astype(np.int64)
        return np.split(codes, np.cumsum([len(a) for a in arrays])[:-1])
    known: dict[Hashable, int] = {}
    return [np.array([known.setdefault(o, len(known)) for o in g], dtype=np.int64) for g in arrays]


def rerun_evidence(
    release: Any,
    table: Table,
    again: Callable[[Table], Any],
    epsilon: float,
    *,
    delta: float = 0.0,
    reruns: int = _RERUNS,
    alpha: float = 1e-3,
) -> Evidence | None:
    """Proof that the first answer tells more of one record than epsilon allows, or None. Few reruns: a coarse sieve.

    Reruns end as soon as those that are left could not make up a proof any more.
    """
    counts = np.arange(reruns + 1)
    low, high = share_below(counts, reruns, alpha / 2) - delta, share_above(counts, reruns, alpha / 2)
    # Hits x misses: the bound that so many prove.
    bound = np.log(np.maximum(low, 1e-300))[:, None] - np.log(high)[None, :]
    proves = (low > 0)[:, None] & (bound > epsilon)
    seen = _outcome(release, table)
    hits = 0
    for left in range(reruns, 0, -1):
        if not proves[hits : hits + left + 1].any():
            return None
        hits += _outcome(again(table), table) == seen
    other, misses = _neighbour(release, table), 0
    for _ in range(reruns):
        if not proves[hits, misses]:
            return None
        misses += _outcome(again(other), table) == seen
    proven = Evidence(float(bound[hits, misses]), alpha, delta, reruns, hits, misses, True)
    return proven if proven.refutes(epsilon) else None


def _outcome(release: Any, table: Table) -> Hashable:
    """The first explanation, or how many released rows equal the table's first record."""
    if hasattr(release, "counterfactuals"):
        at = int(np.argmax((release.status != "already_favourable").to_numpy()))
        return tuple(str(v) for v in release.counterfactuals.iloc[at])
    rows = release.cells()
    names = [n for n in table.schema.features if n in rows.columns]
    first = table.frame[names].iloc[0]
    return int((rows[names].astype(object) == first.astype(object)).all(axis=1).sum())


def _neighbour(release: Any, table: Table) -> Table:
    """The table where the record that matters most to the first answer has become the one that matters least.

    For an explanation that is the record nearest to its query among those with the decision it leads to.
    """
    from dataclasses import replace

    near, far = 0, len(table) - 1
    if hasattr(release, "counterfactuals"):
        away = _distances(release, table)
        near, far = int(np.argmin(away)), int(np.argmax(np.where(np.isinf(away), -1.0, away)))
    order = np.arange(len(table))
    order[near] = far
    frame = table.frame.copy()
    for name in table.schema.features:
        frame[name] = frame[name].array.take(order)
    return replace(table, frame=frame)


def _distances(release: Any, table: Table) -> Floats:
    """From the first query to each record; infinite for records with another target than the answer's decision."""
    from countervail.core.distance import HEOM
    from countervail.core.encode import Encoder, conform_rows

    at = int(np.argmax((release.status != "already_favourable").to_numpy()))
    encoder = Encoder.fit(table)
    rows = encoder.encode(table.features)
    query = encoder.extended(conform_rows(release.factuals.iloc[[at]], table, "refute"))[1]
    away = HEOM.fit(encoder, rows).between(np.repeat(query, len(rows), axis=0), rows)
    wanted = (table.target.astype(object) == release.after.iloc[at]).to_numpy()
    return np.where(wanted, away, np.inf) if wanted.any() else away
