"""What one layer may ask of another without importing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from countervail.core.explanation import Explanations

Progress = Callable[[int, int], None]  # done, of how many


@runtime_checkable
class Native(Protocol):
    """An explainer that can say which training rows lie behind its counterfactuals."""

    @property
    def native(self) -> bool:
        """Whether the counterfactuals are those rows as they are."""
        ...

    def nearest(self, rows: Any, n: int = 1) -> NDArray[np.int64]:
        """Row numbers of the `n` nearest unlike neighbours of each row (-1: none). Internal: never released."""
        ...


class Explains(Protocol):
    """Anything that answers queries with explanations: what an attack may ask."""

    def explain(self, rows: Any) -> Explanations:
        """Explanations of the rows."""
        ...
