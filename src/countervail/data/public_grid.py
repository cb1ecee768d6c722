"""Grids for columns of numbers that nobody's row is needed for: by the name of the column, from round numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

from countervail.data.column_words import suggests

_MONTHS = (0, 1, 2, 3, 6, 9, 12, 18, 24, 30, 36, 42, 48, 60, 72, 84, 96, 120, 180, 240, 300, 360)


@dataclass(frozen=True, slots=True)
class PublicGrid:
    """A domain, the positions within it where they are not evenly spread, and where both come from."""

    domain: tuple[int, int]
    cuts: tuple[int, ...] | None
    why: str

    @property
    def lines(self) -> str:
        """As it stands in a schema file."""
        cuts = "" if self.cuts is None else f", cuts = [{', '.join(map(str, self.cuts))}]"
        return f"domain = [{self.domain[0]}, {self.domain[1]}]{cuts}"


def public_grid(name: str) -> PublicGrid | None:
    """A grid that follows from the name of a column alone; None where the name suggests none.

    Examples
    --------
    >>> public_grid("hours_per_week").lines
    'domain = [0, 168]'
    >>> public_grid("Einkommen").cuts[:6], public_grid("shoe size")
    ((0, 100, 200, 500, 1000, 2000), None)
    """
    if suggests(name, "birth"):
        return None  # a year, a day or a place
    if suggests(name, "older"):
        return PublicGrid((0, 120), None, "ages of people")
    if suggests(name, "hours"):
        return PublicGrid((0, 168), None, "a week has 168 hours")
    if suggests(name, "money"):
        steps = tuple(m * 10**e for e in range(2, 6) for m in (1, 2, 5))
        return PublicGrid((0, 1_000_000), (0, *steps, 1_000_000), "amounts in steps of 1, 2, 5; extend it below 0")
    if suggests(name, "months"):
        return PublicGrid((0, 360), _MONTHS, "months of contracts, up to thirty years")
    return None
