"""What exists, found by reading the public exports."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def exported(module: ModuleType, base: type[T]) -> dict[str, type[T]]:
    """Concrete subclasses of `base` that `module` exports, by their short name."""
    found = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, base)]
    return {getattr(c, "name"): c for c in found if not inspect.isabstract(c)}  # noqa: B009
