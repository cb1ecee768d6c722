"""Noise that is drawn in other processes: the ledger has been debited before, and stores what comes back.

A part of the draws may be made twice, where a process fails or is slow: one of the two comes back, and the other is
seen by nobody.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from countervail.core.arrays import Matrix
from countervail.core.rng import Words
from countervail.explain.answering import Queries
from countervail.protect._fitted import without_ledger

Spread = Callable[[Callable[[bytes], bytes], Sequence[bytes]], list[bytes]]
AT_ONCE: Final = 8192  # answers drawn and stored at a time
_PART: Final = 256  # queries of one part


@dataclass(frozen=True, slots=True)
class SentDraw:
    """What draws the answers to a part of the queries, from the system's entropy of the place where it is."""

    explainer: bytes

    def __call__(self, part: bytes) -> bytes:
        """Rows that answer pickled queries, as the bytes of their numbers."""
        explainer: Any = pickle.loads(self.explainer)
        drawn: Matrix = explainer._answer(pickle.loads(part), Words())
        return drawn.tobytes()


def draw_elsewhere(explainer: Any, asked: Queries, spread: Spread) -> Matrix:
    """The rows that answer queries, one below the other."""
    from joblib.externals.loky.backend.reduction import dumps

    sent = without_ledger(explainer)
    sent.table_ = None
    places = [np.arange(i, min(i + _PART, len(asked))) for i in range(0, len(asked), _PART)]
    parts = [bytes(dumps(asked.only(at))) for at in places]
    found = spread(SentDraw(bytes(dumps(sent))), parts)
    rows = [np.frombuffer(drawn, np.float64).reshape(-1, asked.x.shape[1]) for drawn in found]
    return np.concatenate(rows)
