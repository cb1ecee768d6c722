"""The work behind the figures: plain functions of a seed and settings, found by name, so that any process runs them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from countervail.core.errors import bad_parameter

_ROOMS = {
    "toy": "toys",
    "rules_toy": "toys",
    "risk": "linkage",
    "explained": "linkage",
    "mondrian": "linkage",
    "plausible": "linkage",
    "forest_grid": "linkage",
    "differential": "inference",
    "inference_examples": "inference",
    "encodings": "encodings",
    "accuracy": "patterns",
    "shallow": "patterns",
    "deep": "patterns",
    "described": "patterns",
    "private": "private",
    "models": "private",
    "distributions": "private",
}


def worker(name: str) -> Callable[..., dict[str, Any]]:
    """The function of a name."""
    if name not in _ROOMS:
        raise bad_parameter("reproduce", "work", f"one of {sorted(_ROOMS)}", name)
    found: Callable[..., dict[str, Any]] = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    return found
