"""Models that share a small batch among threads wait for these threads longer than one of them would work."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_SMALL = 50_000  # rows up to which one thread is asked: on a busy machine, two of them took ten times as long
_POOLS: dict[tuple[str, int], Any] = {}


def one_thread(model: Any, rows: int) -> AbstractContextManager[Any]:
    """In here, compiled libraries share nothing among threads of OpenMP, where a model is asked about few rows."""
    if rows > _SMALL or "sklearn" not in sys.modules:  # whoever brings threads of their own brings scikit-learn too
        return nullcontext()
    # Libraries are looked for once for each kind of model, and again where others were loaded since.
    key = (type(model).__module__, sum(name in sys.modules for name in ("lightgbm", "xgboost", "catboost", "torch")))
    if key not in _POOLS:
        from threadpoolctl import ThreadpoolController

        _POOLS[key] = ThreadpoolController().select(user_api="openmp")
    limited: AbstractContextManager[Any] = _POOLS[key].limit(limits=1)
    return limited
