"""A test that was stopped goes on where it was: distances on file, no values of any row, no row numbers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.errors import bad_parameter
from countervail.core.files.frames import write_text
from countervail.core.table import Table


@dataclass(eq=False, slots=True)
class Progressed:
    """What has been found so far, in the order in which people are tested; `found` is person x figure x repetition."""

    found: NDArray[np.float64]
    done: NDArray[np.bool_]


class Checkpoint:
    """The file of one run; whoever asks something else of the same file is told so.

    Tested people stand in the order drawn for the run, which the file does not tell. It is still as private as the
    table: whoever has both can join them.
    """

    def __init__(self, path: str | Path | None, digest: str, owner: str) -> None:
        self.path = None if path is None else Path(path)
        self.digest, self.owner = digest, owner

    def load(self, people: int, repeats: int) -> Progressed:
        """What an earlier run left, or an empty start."""
        fresh = Progressed(np.full((people, 3, repeats), np.nan), np.zeros(people, dtype=bool))
        if self.path is None or not self.path.is_file():
            return fresh
        must = "the file of this very run, or a new one"
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            same = data["digest"] == self.digest and len(data["done"]) == people
        except (ValueError, KeyError, TypeError):
            raise bad_parameter(self.owner, "checkpoint", must, "a file of another kind", "Name another.") from None
        if not same:
            hint = "Another table, anonymiser, learner or setting wrote it. Delete it, or name another."
            raise bad_parameter(self.owner, "checkpoint", must, "the file of another run", hint)
        done = np.array(data["done"], dtype=bool)
        fresh.done[:] = done
        fresh.found[done] = np.array(data["found"], dtype=float).reshape(-1, 3, repeats)
        return fresh

    def save(self, progressed: Progressed) -> None:
        """Write what has been found so far, whole or not at all."""
        if self.path is not None:
            done = progressed.done
            data = {"digest": self.digest, "done": done.tolist(), "found": progressed.found[done].tolist()}
            write_text(json.dumps(data), self.path)


def digest_of(table: Table, rows: NDArray[np.int64], settings: dict[str, Any]) -> str:
    """A fingerprint of everything that the figures depend on."""
    total = hashlib.sha256()
    for name in table.frame.columns:
        column = table.frame[name].astype(object).where(table.frame[name].notna(), None)
        total.update(pd.util.hash_pandas_object(column.map(repr), index=False).to_numpy().tobytes())
    total.update(table.schema.digest().encode())
    total.update(rows.tobytes())
    total.update(repr(sorted((k, str(v)) for k, v in settings.items())).encode())
    return total.hexdigest()
