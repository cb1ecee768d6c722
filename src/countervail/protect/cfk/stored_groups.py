"""Groups of people, frozen: who hides with whom is settled once, stored, and only ever added to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from countervail.core.arrays import Bools, Ints
from countervail.core.errors import SchemaError
from countervail.core.files.frames import write_text
from countervail.core.files.json_data import is_count, is_number, json_object, need, places, texts, whole_json
from countervail.core.region import Range, Regions
from countervail.core.release import regions_from_json, regions_to_json
from countervail.core.schema import Column, Schema
from countervail.core.table import Table
from countervail.ledger.ledger import Ledger
from countervail.protect._recorded import Digests, row_digests

_FORMAT = 2  # of stored groups: 2 keeps quasi-identifiers and identifiers apart
_KEY = 16  # bytes


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """The group of each row (-1: none), and which of the others are people who are in no group yet."""

    group: Ints
    new: Bools


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """The regions of all groups ever formed for a table, and keyed digests of the people in each.

    People are kept as digests of their features, of their quasi-identifiers, and of each identifier (0: missing). It is
    as confidential as the table: it links digests of people to groups, and holds their key. Keep it with the table, and
    give it to every later fit (`CFK(groups=...)`): a second grouping of the same people would intersect with the first.
    """

    k: int
    version: int
    names: tuple[str, ...]
    regions: Regions
    key: str
    digests: Digests
    group: Ints
    scale: Mapping[str, float]
    identifiers: tuple[str, ...]
    quasi: Digests
    people: Digests

    def __repr__(self) -> str:
        return f"Groups(k={self.k}, version={self.version}, {len(self.regions)} groups)"

    @classmethod
    def first(cls, k: int, table: Table) -> Self:
        """Nobody grouped yet."""
        key = secrets.token_hex(_KEY // 2)
        nobody = np.zeros(0, dtype=np.uint64)
        quasi, identifiers = (tuple(table.schema.names(role)) for role in ("quasi", "identifier"))
        people = np.zeros((0, len(identifiers)), dtype=np.uint64)
        return cls(
            k, 0, quasi, Regions((), 0), key, nobody, nobody.astype(np.int64), {}, identifiers, nobody, people
        )  # fmt: skip

    def digests_of(self, table: Table) -> Digests:
        """A keyed digest of each row's features."""
        return row_digests(table, table.schema.features, self.key)

    def people_of(self, table: Table) -> Digests:
        """A keyed digest of each row's identifiers, one by one; 0 where one is missing."""
        each = [np.where(table.frame[n].isna(), 0, row_digests(table, [n], self.key)) for n in self.identifiers]
        return np.array(each, dtype=np.uint64).reshape(len(each), len(table)).T

    def assign(self, table: Table) -> Placed:
        """The group of each row of somebody who is in one and has not changed, and which rows are new people's.

        All others may be somebody of a group who has changed: they wait. That is every row that shares an identifier,
        or all features, with somebody stored who is not found; and where either of the two lacks an identifier, every
        row that shares the quasi-identifiers.
        """
        self._check_columns(table)
        digests, people = self.digests_of(table), self.people_of(table)
        places: dict[bytes, list[int]] = {}
        for place, mark in enumerate(_marks(self.digests, self.people)):
            places.setdefault(mark, []).append(place)
        at = np.full(len(table), -1, dtype=np.int64)
        for row, mark in enumerate(_marks(digests, people)):
            if places.get(mark):
                at[row] = places[mark].pop(0)
        found = at[at >= 0]
        if len(found) < len(self.digests) / 2:
            raise SchemaError(
                "Fewer than half of the people in the stored groups are found in this table. If columns were added, "
                "dropped or recoded, undo that: grouping the same people anew would intersect with the first groups."
            )
        lost = np.ones(len(self.digests), dtype=bool)
        lost[found] = False
        group = np.full(len(table), -1, dtype=np.int64)
        group[at >= 0] = self.group[found]
        return Placed(group, (at < 0) & ~self._may_be(lost, digests, people, table))

    def _may_be(self, lost: Bools, digests: Digests, people: Digests, table: Table) -> Bools:
        """Which rows may be one of the stored people who were not found."""
        suspect: Bools = np.isin(digests, self.digests[lost])
        for mine, stored in zip(people.T, self.people[lost].T):
            suspect |= (mine != 0) & np.isin(mine, stored)
        quasi = row_digests(table, self.names, self.key)
        told = np.isin(quasi, self.quasi[lost & ~_identified(self.people)])
        suspect |= np.where(_identified(people), told, np.isin(quasi, self.quasi[lost]))
        return suspect

    def _check_columns(self, table: Table) -> None:
        if tuple(table.schema.names("quasi")) != self.names:
            raise SchemaError(
                f"The groups were formed on the quasi-identifiers {list(self.names)}, but the table declares "
                f"{table.schema.names('quasi')}. Groups of other quasi-identifiers would intersect with them."
            )
        if gone := [n for n in self.identifiers if n not in table.schema.names("identifier")]:
            raise SchemaError(
                f"The stored groups recognise people by the identifiers {gone}, which the table does not declare. Add "
                f"them (identifiers=[...]): somebody who has changed could not be told from somebody new."
            )

    def whole(self, group: Ints) -> Bools:
        """Which groups are all there: one that lost a person, or changed, answers no more."""
        stored = np.bincount(self.group, minlength=len(self.regions))
        present = np.bincount(group[group >= 0], minlength=len(self.regions))
        there: Bools = (present == stored) & (stored >= self.k)
        return there

    def extended(self, table: Table, rows: Ints, group: Ints, regions: Regions) -> Self:
        """With new groups for some rows, numbered after the old ones; nothing old changes."""
        if not len(rows):
            return self
        joined = regions if not len(self.regions) else _joined(self.regions, regions)
        return replace(
            self,
            version=self.version + 1,
            regions=joined,
            digests=np.concatenate([self.digests, self.digests_of(table)[rows]]),
            quasi=np.concatenate([self.quasi, row_digests(table, self.names, self.key)[rows]]),
            people=np.concatenate([self.people, self.people_of(table)[rows]]),
            group=np.concatenate([self.group, group + len(self.regions)]),
        )

    def to_json(self) -> str:
        """The groups as JSON; confidential."""
        return json.dumps(
            {
                "kind": "groups",
                "format": _FORMAT,
                "version": self.version,
                "k": self.k,
                "names": list(self.names),
                "key": self.key,
                "regions": regions_to_json(self.regions),
                "digests": [str(d) for d in self.digests.tolist()],
                "group": self.group.tolist(),
                "scale": dict(self.scale),
                "identifiers": list(self.identifiers),
                "quasi": [str(d) for d in self.quasi.tolist()],
                "people": [[str(d) for d in each] for each in self.people.tolist()],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`."""
        return cls._stored(text, "text", "Groups.from_json", "Groups.to_json()")

    @classmethod
    def _stored(cls, text: str, parameter: str, owner: str, writer: str) -> Self:
        data = json_object(text, parameter, owner, writer)
        if data.get("kind") != "groups":
            raise SchemaError("This JSON does not hold groups.")
        if data.get("format", 1) != _FORMAT:
            raise SchemaError(
                f"These groups are stored in format {data.get('format', 1)}; this version reads format {_FORMAT}. "
                f"Format 1 did not keep what tells somebody who has changed from somebody new, so nothing safe can be "
                f"built on it. Form new groups only if no answer from the old ones has left; otherwise go on with the "
                f"version that wrote them, on an unchanged table."
            )
        with whole_json(parameter, owner, writer):
            identifiers = texts(data["identifiers"])
            need(is_count(data["k"], 1) and is_count(data["version"]) and all(map(is_number, data["scale"].values())))
            people = np.array([int(d) for each in data["people"] for d in each], dtype=np.uint64)
            stored = cls(
                data["k"],
                data["version"],
                texts(data["names"]),
                (regions := regions_from_json(data["regions"])),
                data["key"],
                np.array([int(d) for d in data["digests"]], dtype=np.uint64),
                places(data["group"], len(regions)),
                dict(data["scale"]),
                identifiers,
                np.array([int(d) for d in data["quasi"]], dtype=np.uint64),
                people.reshape(len(data["group"]), len(identifiers)),
            )
            if not stored._fits_together():
                raise ValueError
        return stored

    def _fits_together(self) -> bool:
        """Whether everybody has all digests, and there is a key to make such digests."""
        keyed = isinstance(self.key, str) and len(self.key.encode()) == _KEY
        return keyed and len(self.digests) == len(self.quasi) == len(self.group)

    def write(self, path: str | Path) -> None:
        """Store the groups beside the table, whole or not at all, for the owner's eyes only."""
        write_text(self.to_json(), path, confidential=True)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read stored groups."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = ""
        return cls._stored(text, path.name, "Groups.read", "Groups.write() or --groups")


def groups_digest(ledger: Ledger, groups: Groups | None) -> bytes:
    """Stored groups, to be recognised when a later fit builds on them."""
    return b"" if groups is None or not groups.version else ledger.keyed("groups", groups.to_json())


def _joined(a: Regions, b: Regions) -> Regions:
    kinds = Schema(tuple(Column(x.name, "numeric" if isinstance(x, Range) else "categorical") for x in a.axes))
    return Regions.from_cells([dict(r.cells) for part in (a, b) for r in part], kinds)


def _marks(digests: Digests, people: Digests) -> list[bytes]:
    """Digests of features and identifiers together: equal for a person who has not changed."""
    return [row.tobytes() for row in np.column_stack([digests, people])]


def _identified(people: Digests) -> Bools:
    """Who has all identifiers."""
    n, columns = people.shape
    return (people != 0).all(axis=1) if columns else np.zeros(n, dtype=bool)
