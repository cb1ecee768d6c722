"""Classes of rows that stay in an engine: what is published, how it is written, and the count that must confirm it."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints
from countervail.core.cells import cell_text
from countervail.core.errors import RefusedError, SchemaError
from countervail.core.guarantee import Guarantee
from countervail.core.guarantee.promises import class_sizes
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Schema
from countervail.core.stats import plain_value
from countervail.engine.coded import CELL, CodedRows
from countervail.engine.codes import order_lines
from countervail.engine.files.folder import check_new, whole_folder
from countervail.engine.interface import LABEL, Labelling, Relation
from countervail.engine.published import PublishedCounts
from countervail.engine.scan import Scan

ABOUT = "_release.json"  # readers of folders leave such names out


@dataclass(frozen=True, eq=False, slots=True)
class ScannedClasses:
    """The class (-1: none) of each distinct combination of `keys`, which stand in `raw` as the engine gave them.

    `lines`: rows whose equals are in several classes, as their class (`LABEL`), other columns and a count. Where there
    are too many combinations, they stay in the engine, in cells: `raw` keeps them, `of` is the class of a cell.
    """

    of: Ints
    rows: int
    suppressed: int
    keys: tuple[str, ...]
    raw: Any
    regions: Regions
    schema: Schema
    remarks: tuple[str, ...]
    words: Mapping[str, Mapping[str, str]]
    losses: Floats
    lines: Any = None

    def _held(self) -> Bools:
        """Which classes are published."""
        held = np.bincount(self.of[self.of >= 0], minlength=len(self.regions)) > 0
        if self.lines is not None:
            held |= np.bincount(self.lines[LABEL].to_numpy(), minlength=len(self.regions)) > 0
        return held

    def labelling(self) -> tuple[Labelling, Floats]:
        """What every row is published with, in the words of a release that is written, and the NCP of each label."""
        import pyarrow as pa

        kept = np.flatnonzero(self.of >= 0)
        held = self._held()
        used = np.flatnonzero(held)
        place, labels = order_lines(published_cells(self.regions[used], self.schema, self.words))
        losses = np.zeros(labels.num_rows)
        losses[place] = self.losses[used]
        label = place[(np.cumsum(held) - 1)[self.of[kept]]]
        if isinstance(self.raw, CodedRows):
            lookup = self.raw.lookup(pa.table({CELL: kept, LABEL: label.astype(np.int32)}))
        else:
            lookup = self.raw.take(kept).append_column(LABEL, pa.array(label.astype(np.int32)))
        others = tuple(c.name for c in self.schema if c.role not in ("identifier", "quasi"))
        names = tuple(c.name for c in self.schema if c.role != "identifier")
        lines = self.lines
        if lines is not None:
            drawn = place[(np.cumsum(held) - 1)[lines[LABEL].to_numpy()]]
            lines = lines.set_column(0, LABEL, pa.array(drawn.astype(np.int32)))
        return Labelling(self.keys, lookup, labels, others, names, lines), losses


def published_cells(regions: Regions, schema: Schema, words: Mapping[str, Mapping[str, str]]) -> Any:
    """The cells of each region as a written release has them, as an Arrow table."""
    import pyarrow as pa

    clear = regions.canonical(schema)
    at = np.arange(len(clear), dtype=np.int64)
    release = Release(clear, at, pd.DataFrame(index=pd.RangeIndex(len(at))), schema, Guarantee(), words=words)
    frame = release.to_text_frame()
    columns = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype == object and not all(v is None or isinstance(v, str) for v in values):
            values = values.map(lambda v: None if v is None else cell_text(v))
        found = pa.array(values, from_pandas=True)
        columns[str(name)] = found.cast(pa.string()) if pa.types.is_large_string(found.type) else found
    return pa.table(columns)


@dataclass(frozen=True, eq=False, slots=True)
class WrittenRelease:
    """What was written: how many rows and classes, the promise that was counted anew, and where."""

    folder: Path
    rows: int
    suppressed: int
    classes: int
    smallest: int
    ncp: float
    guarantee: Guarantee
    caveats: tuple[str, ...]
    as_they_are: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"WrittenRelease({self.rows:,} rows in {self.classes:,} classes; {self.guarantee})"

    @property
    def average(self) -> float:
        """Rows of a class, on average."""
        return self.rows / max(self.classes, 1)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        found: dict[str, Any] = plain_value(
            {
                "rows": self.rows,
                "suppressed": self.suppressed,
                "classes": self.classes,
                "smallest": self.smallest,
                "average": self.average,
                "ncp": self.ncp,
                "guarantee": self.guarantee.to_dict(),
                "promise": str(self.guarantee),
                "caveats": list(self.caveats),
                "as_they_are": list(self.as_they_are),
            }
        )
        return found


def write_scan(
    owner: str,
    scan: Scan,
    found: ScannedClasses,
    folder: str | Path,
    promise: Guarantee,
    caveats: tuple[str, ...],
    provenance: Mapping[str, Any],
    random_state: RandomState,
) -> WrittenRelease:
    """Write a scan's release whole or not at all: it gets its name once the engine has counted the promise on it."""
    folder = Path(folder)
    check_new(folder, f"{owner}.write")
    labelling, losses = found.labelling()
    key = secrets.token_bytes(16) if random_state is None else generator(random_state).bytes(16)
    with whole_folder(folder, f"{owner}.write") as place:
        scan.relation.write(labelling, place, key=key)
        sizes = recounted(owner, scan.relation.reopened(place), found, labelling, promise)
        facts = (found.rows, found.suppressed, len(sizes), int(sizes.min()), float(sizes @ losses / found.rows))
        written = WrittenRelease(folder, *facts, promise, caveats, labelling.others)
        about = _about(written, found.schema, provenance, place)
        (place / ABOUT).write_text(json.dumps(about, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return written


def recounted(owner: str, relation: Relation, found: ScannedClasses, labelling: Labelling, promise: Guarantee) -> Ints:
    """How many rows were written with each label; refused where the files are not what is promised."""
    try:
        if tuple(relation.kinds) != labelling.names:
            raise RefusedError(f"{owner} refused the release: it has other columns than those that may leave.")
        if (rows := relation.count()) != found.rows:
            raise RefusedError(f"{owner} refused the release: {rows:,} of {found.rows:,} rows were written.")
        asked = {getattr(part, "sensitive", None) for part in getattr(promise, "parts", (promise,))}
        lines = PublishedCounts.read(relation, found.schema, sorted(n for n in asked if n))
    except SchemaError as error:
        raise RefusedError(f"{owner} refused the release: what was written cannot be read. {error}") from None
    broken = promise.recount(lines)
    if broken is not None:
        raise RefusedError(f"{owner} refused to release the table: {broken}. Nothing has left.")
    sizes = class_sizes(lines)
    if len(sizes) != labelling.labels.num_rows:
        raise RefusedError(f"{owner} refused the release: it has other classes than those that were found.")
    return sizes


def _about(written: WrittenRelease, schema: Schema, provenance: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """What stands beside the files: the promise, how they were made, and a digest of each."""
    files = {}
    for path in sorted(place.glob("*.parquet")):
        with path.open("rb") as file:
            files[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "kind": "written release",
        "version": 1,
        **written.to_dict(),
        "provenance": json.loads(json.dumps(dict(provenance), default=str)),
        "schema": schema.without_identifiers().declared().to_dict(),
        "files": files,
    }
