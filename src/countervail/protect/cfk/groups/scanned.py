"""People of a scan for answers from groups: their distinct quasi-identifiers, and what each group holds privately.

Who hides with whom is settled on distinct quasi-identifiers and counts. Private vectors are brought together with their
group by the engine, each once with how many people have it, and come out when the groups are sealed; from then on
nothing depends on the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from countervail.core.arrays import Ints, Matrix
from countervail.core.encode import Encoder
from countervail.core.errors import ParameterError, SchemaError, bad_parameter
from countervail.core.region import Regions
from countervail.core.sealed import canonical_table
from countervail.core.table import Table
from countervail.engine.columns import lookup_once, one_column, side_by_side
from countervail.engine.interface import COUNT, LABEL, Labelling
from countervail.engine.scan import Scan, as_table, names_of
from countervail.protect.cfk.groups.group_table import GroupTable
from countervail.protect.cfk.space import Space


@dataclass(frozen=True, eq=False, slots=True)
class ScannedPeople:
    """Distinct quasi-identifiers (with a sensitive value, where it is asked about) and how many people have each.

    `raw` are the quasi-identifiers as the engine gave them, `clean` the same lines in canonical form; `values` has the
    values of every column by itself, in rows that are nobody's.
    """

    scan: Scan
    raw: Any
    clean: Table
    people: Ints
    values: Table

    @classmethod
    def read(cls, scan: Scan, sensitive: str | None) -> Self:
        """Count the people of a scan; `sensitive` is what groups are merged for."""
        quasi = scan.schema.names("quasi")
        asked = names_of([*quasi, sensitive if sensitive in scan.schema else None])
        limit = scan.budget(len(asked))
        found = scan.distinct(asked, limit=None if scan.relation.here else limit)
        if found is None:
            raise _too_many(scan, f"the distinct quasi-identifiers, of which there are more than {limit:,}")
        others = [c.name for c in scan.schema if c.role != "identifier" and c.name not in quasi]
        tables = {**dict.fromkeys(quasi, found.table), **{n: one_column(scan, n).table for n in others}}
        values = canonical_table(side_by_side(scan, tables))
        return cls(scan, found.raw.select(quasi), canonical_table(found.table), found.counts, values)

    def __len__(self) -> int:
        return int(self.people.sum())

    def space(self, weights: Any, owner: str) -> Space:
        """The quasi-identifiers as small whole numbers, with counts."""
        names = self.scan.schema.names("quasi")
        encoder = Encoder.fit(self.clean, names)
        return Space.fit(self.clean, encoder, encoder.encode(self.clean.frame), weights, owner, self.people)

    def sealed(self, group: Ints, regions: Regions) -> tuple[GroupTable, Ints]:
        """Everybody's private vector with the group that she is in; and the new number of each group."""
        import pyarrow as pa

        scan, schema = self.scan, self.values.schema
        private = tuple(n for n in schema.features if n not in self.raw.column_names)
        raw, of = lookup_once(self.raw, group)
        lookup = raw.append_column(LABEL, pa.array(of.astype(np.int32)))
        limit = scan.budget(len(private) + 1)
        asked = Labelling(tuple(raw.column_names), lookup, None, private, ())
        found = scan.relation.labelled(asked, limit=None if scan.relation.here else limit)
        if found is None:
            raise _too_many(scan, f"the private vectors of all groups, of which there are more than {limit:,}")
        groups, times = (found[n].to_numpy().astype(np.int64) for n in (LABEL, COUNT))
        if times.sum() != len(self):
            raise SchemaError("The rows of the scan changed while they were read. Nothing has left. Fit again.")
        lines = as_table(found.select(list(private)), scan.schema)
        frame = canonical_table(lines).frame if private else lines.frame.reindex(range(found.num_rows))
        return GroupTable.first(self.values, groups, regions, (frame, times))

    def coded(self, made: GroupTable) -> Matrix:
        """The quasi-identifiers of each line in the codes of the sealed table; private values are 0."""
        out = np.zeros((len(self.people), len(made.encoder.codings)))
        for j in made.quasi:
            coding = made.encoder.codings[j]
            out[:, j] = coding.encode(self.clean.frame[coding.name])
        return out


def _too_many(scan: Scan, what: str) -> ParameterError:
    hint = "Give more (--memory), or round private values."
    return bad_parameter("Table.scan", "memory", f"enough for {what}", f"{scan.memory:,} bytes", hint)
