"""Finished cells on disk: one small file each, written whole or not at all, so that a study can be taken up again."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.files.frames import write_text
from countervail.core.files.json_data import DAMAGED
from countervail.core.table import Table
from countervail.study.plan import Cell, StudyPlan
from countervail.study.result import CellResult

_VERSION = 1
_HEAD = "study.json"
_SALT = re.compile(r"(?:[0-9a-f]{2}){1,64}")


@dataclass(frozen=True, slots=True)
class CellFolder:
    """A folder of finished cells. Names of files are keyed with a salt of the folder: they tell nothing of the rows."""

    folder: Path
    salt: bytes

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the folder, or make it."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise bad_parameter("run", "store", "a folder", f"the file '{folder.name}'")
        folder.mkdir(parents=True, exist_ok=True)
        head = folder / _HEAD
        if not head.is_file():
            write_text(json.dumps({"version": _VERSION, "salt": secrets.token_hex(16)}) + "\n", head)
        data = _read(head)
        if data.get("version") != _VERSION or "salt" not in data:
            raise SchemaError(f"'{_HEAD}' in '{folder.name}' is of another version. Use another folder.")
        salt = data["salt"]
        if not isinstance(salt, str) or not _SALT.fullmatch(salt):
            raise SchemaError(
                f"'{_HEAD}' in '{folder.name}' is damaged: the cells cannot be found. Use another folder."
            )
        return cls(folder, bytes.fromhex(salt))

    def key(self, *parts: Any) -> str:
        """A name for anything that can be written as JSON."""
        text = json.dumps(parts, sort_keys=True, default=str).encode()
        return hashlib.blake2b(text, key=self.salt, digest_size=16).hexdigest()

    def read(self, key: str) -> dict[str, Any] | None:
        """What is kept under a name."""
        path = self.folder / f"{key}.json"
        return _read(path) if path.is_file() else None

    def write(self, key: str, data: dict[str, Any]) -> None:
        """Keep it."""
        write_text(json.dumps(data) + "\n", self.folder / f"{key}.json")

    def result(self, key: str) -> CellResult | None:
        """The finished cell of this name."""
        data = self.read(key)
        try:
            return None if data is None else CellResult.from_dict(data["result"])
        except DAMAGED:
            raise _damaged(f"{key}.json") from None

    def audited(self, key: str) -> dict[str, Any] | None:
        """The measured epsilon of this name, or that none could be measured."""
        data = self.read(key)
        figure = None if data is None else data.get("audited")
        if data is not None and ("audited" not in data or not (figure is None or type(figure) in (int, float))):
            raise _damaged(f"{key}.json")
        return data

    def keep(self, key: str, cell: Cell, result: CellResult) -> None:
        """Keep a finished cell."""
        self.write(key, {"cell": cell.to_dict(), "result": result.to_dict()})


def cell_keys(store: CellFolder, plan: StudyPlan) -> dict[Cell, str]:
    """The name of each cell: it changes with the rows, the schema, the model, all settings, and what mechanisms do."""
    prints = {name: _print_of(table, plan) for name, table in plan.tables.items()}
    common = {n: getattr(plan, n) for n in ("people", "runs", "target")}
    return {c: store.key(c.to_dict(), common, prints[c.table], _made(c, plan)) for c in plan.cells()}


def _made(cell: Cell, plan: StudyPlan) -> dict[str, Any]:
    """The parameters of a cell's mechanism, those by default included: a later version may have others."""
    made = plan.made(cell)
    params: dict[str, Any] = made.get_params(deep=False) if hasattr(made, "get_params") else dict(vars(made))
    return {"version": version("countervail"), "kind": type(made).__name__, **params}


def _print_of(table: Table, plan: StudyPlan) -> str:
    """A digest of the rows, the schema and a given model's decisions; it is only ever used under the store's key."""
    digest = hashlib.sha256(json.dumps(table.schema.to_dict(), default=str).encode())
    digest.update(np.asarray(pd.util.hash_pandas_object(table.frame, index=False)).tobytes())
    if plan.model is not None:
        said = plan.model.predict(table.features) if hasattr(plan.model, "predict") else plan.model(table.features)
        digest.update(repr(np.asarray(said).tolist()).encode())
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise _damaged(path.name)
    return data


def _damaged(name: str) -> SchemaError:
    return SchemaError(f"'{name}' in the folder of the study is damaged. Delete it, and run again.")
