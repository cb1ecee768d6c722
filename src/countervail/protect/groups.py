"""Groups of people, frozen: who hides with whom is settled once, stored, and only ever added to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.conform import plain
from countervail.core.errors import SchemaError
from countervail.core.files import write_text
from countervail.core.region import Range, Regions
from countervail.core.release import regions_from_json, regions_to_json
from countervail.core.schema import Column, Schema
from countervail.core.table import Table

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """The regions of all groups ever formed for a table, and keyed digests of the rows in each.

    It is as confidential as the table: it links digests of rows to groups. Keep it with the table, and give it to every
    later fit (`CFK(groups=...)`): a second grouping of the same people would intersect with the first.
    """

    k: int
    version: int
    names: tuple[str, ...]
    regions: Regions
    key: str
    digests: NDArray[np.uint64]
    group: Ints
    scale: Mapping[str, float]

    def __repr__(self) -> str:
        return f"Groups(k={self.k}, version={self.version}, {len(self.regions)} groups)"

    @classmethod
    def first(cls, k: int, table: Table) -> Self:
        """Nobody grouped yet."""
        key = secrets.token_hex(8)
        nobody = np.zeros(0, dtype=np.uint64)
        return cls(k, 0, tuple(table.schema.names("quasi")), Regions((), 0), key, nobody, nobody.astype(np.int64), {})

    def digests_of(self, table: Table) -> NDArray[np.uint64]:
        """A keyed digest of each row's features."""
        values = pd.DataFrame({n: spelt(table.frame[n]) for n in table.schema.features})
        digests = pd.util.hash_pandas_object(values, index=False, hash_key=self.key)
        return digests.to_numpy().astype(np.uint64)

    def assign(self, table: Table) -> Ints:
        """The group of each row that is already in one; -1 for rows that are new."""
        if tuple(table.schema.names("quasi")) != self.names:
            raise SchemaError(
                f"The groups were formed on the quasi-identifiers {list(self.names)}, but the table declares "
                f"{table.schema.names('quasi')}. Groups of other quasi-identifiers would intersect with them."
            )
        places: dict[int, list[int]] = {}
        for digest, group in zip(self.digests.tolist(), self.group.tolist()):
            places.setdefault(digest, []).append(group)
        known = len(self.digests) > 0
        out = np.full(len(table), -1, dtype=np.int64)
        for row, digest in enumerate(self.digests_of(table).tolist()):
            if places.get(digest):
                out[row] = places[digest].pop(0)
        if known and (out >= 0).sum() < len(self.digests) / 2:
            raise SchemaError(
                "Fewer than half of the people in the stored groups are found in this table. If columns were added, "
                "dropped or recoded, undo that: grouping the same people anew would intersect with the first groups."
            )
        return out

    def whole(self, group: Ints) -> NDArray[np.bool_]:
        """Which groups are all there: one that lost a person, or changed, answers no more."""
        stored = np.bincount(self.group, minlength=len(self.regions))
        present = np.bincount(group[group >= 0], minlength=len(self.regions))
        there: NDArray[np.bool_] = (present == stored) & (stored >= self.k)
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
            group=np.concatenate([self.group, group + len(self.regions)]),
        )

    def to_json(self) -> str:
        """The groups as JSON; confidential."""
        return json.dumps(
            {
                "kind": "groups",
                "version": self.version,
                "k": self.k,
                "names": list(self.names),
                "key": self.key,
                "regions": regions_to_json(self.regions),
                "digests": [str(d) for d in self.digests.tolist()],
                "group": self.group.tolist(),
                "scale": dict(self.scale),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`."""
        data: dict[str, Any] = json.loads(text)
        if data.get("kind") != "groups":
            raise SchemaError("This JSON does not hold groups.")
        return cls(
            data["k"],
            data["version"],
            tuple(data["names"]),
            regions_from_json(data["regions"]),
            data["key"],
            np.array([int(d) for d in data["digests"]], dtype=np.uint64),
            np.array(data["group"], dtype=np.int64),
            data["scale"],
        )

    def write(self, path: str | Path) -> None:
        """Store the groups beside the table, whole or not at all."""
        write_text(self.to_json(), path)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read stored groups."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def _joined(a: Regions, b: Regions) -> Regions:
    kinds = Schema(tuple(Column(x.name, "numeric" if isinstance(x, Range) else "categorical") for x in a.axes))
    return Regions.from_cells([dict(r.cells) for part in (a, b) for r in part], kinds)


def spelt(values: pd.Series) -> pd.Series:
    """Values in one spelling, whatever the dtype: 1, 1.0 and "1" are written alike."""
    codes, kinds = pd.factorize(values, use_na_sentinel=False)
    words = np.array(["\0" if pd.isna(v) else plain(v) for v in kinds], dtype=object)
    return pd.Series(words[codes], dtype=object)
