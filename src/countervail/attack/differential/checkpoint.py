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

from countervail.core.errors import ParameterError, bad_parameter
from countervail.core.files.frames import write_text
from countervail.core.files.json_data import DAMAGED, need
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
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict) or not isinstance(data.get("digest"), str):
            raise self._refused("a file of another kind", "Name another.")
        if data["digest"] != self.digest:
            hint = "Another table, anonymiser, learner or setting wrote it. Delete it, or name another."
            raise self._refused("the file of another run", hint)
        try:
            fresh.done[:] = _truths(data["done"], people)
            fresh.found[fresh.done] = _figures(data["found"], (int(fresh.done.sum()), 3, repeats))
        except DAMAGED:
            raise self._refused("a damaged file", "Delete it, and start anew.") from None
        return fresh

    def _refused(self, got: str, hint: str) -> ParameterError:
        return bad_parameter(self.owner, "checkpoint", "the file of this very run, or a new one", got, hint)

    def save(self, progressed: Progressed) -> None:
        """Write what has been found so far, whole or not at all."""
        if self.path is not None:
            done = progressed.done
            data = {"digest": self.digest, "done": done.tolist(), "found": progressed.found[done].tolist()}
            write_text(json.dumps(data), self.path)


def _truths(data: Any, n: int) -> NDArray[np.bool_]:
    need(isinstance(data, list) and len(data) == n and all(isinstance(v, bool) for v in data))
    return np.array(data, dtype=bool)


def _figures(data: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Figures of this shape; what is not finite is a figure too."""
    cells = np.array(data, dtype=object) if shape[0] else np.empty(shape, dtype=object)
    need(isinstance(data, list) and (bool(shape[0]) or not data) and cells.shape == shape)
    need(all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in cells.ravel()))
    return cells.astype(np.float64)


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
