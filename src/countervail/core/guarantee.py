"""Guarantees: promises computed from parameters alone, that name their adversary and can try to refute themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from countervail.core.errors import bad_parameter

if TYPE_CHECKING:
    from countervail.core.region import Regions
    from countervail.core.table import Table

Against = Literal["register", "algorithm"]
ADVERSARIES: dict[str, str] = {
    "register": "someone who holds a register of everybody's quasi-identifiers and sees the release",
    "algorithm": "someone who holds such a register, the model, our code and its settings, and asks without limit",
}


class Published(Protocol):
    """What a refutation looks at: the regions that left."""

    @property
    def regions(self) -> Regions: ...


Again = Callable[["Table"], Published]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A promise. `refute` gives a reason why it does not hold, or None when it found none."""

    proof: ClassVar[str | None] = None

    @property
    def adversary(self) -> str | None:
        """Whom the promise withstands, in words."""
        return None

    def refute(self, release: Published, table: Table, again: Again | None = None) -> str | None:
        """Try to show that the promise is broken."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """The promise as plain JSON data."""
        return {"promise": type(self).__name__, **asdict(self)}


@dataclass(frozen=True, slots=True)
class NoGuarantee(Guarantee):
    """Nothing is promised, and `why`."""

    why: str

    def __str__(self) -> str:
        return f"No privacy guarantee: {self.why}."


@dataclass(frozen=True, slots=True)
class KAnonymity(Guarantee):
    """At least `k` people of the table share every released combination of quasi-identifiers."""

    k: int
    against: Against = "register"

    def __post_init__(self) -> None:
        if self.against not in ADVERSARIES:
            raise bad_parameter("KAnonymity", "against", f"one of {list(ADVERSARIES)}", self.against)

    def __str__(self) -> str:
        return f"{self.k}-anonymity against {self.adversary}."

    @property
    def adversary(self) -> str:
        """Whom the promise withstands, in words."""
        return ADVERSARIES[self.against]

    def refute(self, release: Published, table: Table, again: Again | None = None) -> str | None:
        """Count the people in each region."""
        counts = release.regions.count(table.select("quasi"))
        short = int((counts < self.k).sum())
        if short:
            return f"{short} of {len(counts)} regions hold fewer than k={self.k} people; the least holds {counts.min()}"
        return None


def guarantee_from_dict(data: dict[str, Any]) -> Guarantee:
    """The inverse of :meth:`Guarantee.to_dict`."""
    kinds = {c.__name__: c for c in Guarantee.__subclasses__()}
    fields = {k: v for k, v in data.items() if k != "promise"}
    if data.get("promise") not in kinds:
        raise bad_parameter("guarantee_from_dict", "promise", f"one of {sorted(kinds)}", data.get("promise"))
    return kinds[data["promise"]](**fields)
