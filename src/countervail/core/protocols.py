"""What one layer may ask of another without importing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from countervail.core.explanation import Explanations
from countervail.core.table import Table

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


@runtime_checkable
class Noisy(Protocol):
    """What adds fresh noise to each answer, and can say what it would have answered without."""

    def explain(self, rows: Any) -> Explanations:
        """Explanations of the rows."""
        ...

    def behind(self, rows: Any) -> Explanations:
        """The answers before noise. For audits: never released."""
        ...


@runtime_checkable
class Invertible(Protocol):
    """A protector whose search an adversary can rerun: everything here follows from public code and the model."""

    def explain(self, rows: Any) -> Explanations:
        """Explanations of the rows."""
        ...

    def region_of(self, rows: Any, salt: int = 0) -> list[frozenset[str]]:
        """For rows put in the counterfactual's place, the regions (as text) that the search could release."""
        ...

    def accepts(self, rows: Any) -> NDArray[np.bool_]:
        """Whether the model gives rows the desired decision."""
        ...

    def distance(self, queries: Any, rows: Any, regions: Any) -> NDArray[np.float64]:
        """Query x row: the distance that the neighbour search would use, were a row the owner of its region."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Agreement:
    """Person x quasi-identifier x sensitive value: released rows whose cell contains the person's own value.

    `with_person` is counted on the release of the whole table, `without_person` on that of all others. Internal: never
    released.
    """

    with_person: NDArray[np.int32]
    without_person: NDArray[np.int32]


class LeaveOneOut(Protocol):
    """The releases of a table without each of its people, asked for counts only."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The sensitive values (None: missing), in the order of the counts."""
        ...

    @property
    def secret(self) -> NDArray[np.int32]:
        """The place of each row's sensitive value among them."""
        ...

    def agreement(self, rows: NDArray[np.int64]) -> Agreement:
        """The counts for these rows of the table."""
        ...


@runtime_checkable
class LeavesOneOut(Protocol):
    """A protector that knows what it would release without each person, without being run again for each."""

    def leave_one_out(self, table: Table, sensitive: str) -> LeaveOneOut | None:
        """The releases without each person; None where these settings have to be run again."""
        ...
