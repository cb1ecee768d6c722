"""Whether kernels are being compiled, for whoever waits: told once, and without loading the compiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable

_listeners: list[Callable[[], None]] = []
_kept: list[bool] = []


def when_compiling(listener: Callable[[], None]) -> None:
    """Call the listener when the first kernel of this process has to be compiled."""
    _listeners[:] = [listener]


def tell_once() -> None:
    """A kernel is being compiled."""
    while _listeners:
        _listeners.pop()()


def tell_nothing_is_kept() -> None:
    """Warn, once, that no folder can be written where compiled kernels are kept."""
    if not _kept:
        _kept.append(False)
        warnings.warn(
            "Compiled kernels cannot be kept: no cache folder can be written, so every process compiles them anew. "
            "Set NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )
