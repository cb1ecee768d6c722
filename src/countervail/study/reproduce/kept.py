"""Finished pieces on disk, so that a run which was stopped goes on; never those of another version of the code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.files.frames import write_text
from countervail.core.release import package_version
from countervail.data.registry import REGISTERED, find
from countervail.study.reproduce.values import Piece

_FORMAT = 1
_HEAD = "reproduce.json"
_PACKAGE = Path(__file__).resolve().parents[2]
# What cannot take part in a figure: studies lie below these rooms (the import contracts keep it so).
_ABOVE = ("auditing", "cli", "report", "service", "testing")


@cache
def code_digest() -> str:
    """A digest of the code that figures depend on."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        inside = path.relative_to(_PACKAGE)
        if path.suffix in (".py", ".csv", ".toml") and inside.parts[0] not in _ABOVE:
            digest.update(inside.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def data_digest(name: str) -> str:
    """The hash of a data set's file; of iris and the toys, that of nothing but their name and our version."""
    if name in REGISTERED:
        return hashlib.sha256(find(name).read_bytes()).hexdigest()
    bundled = files("countervail.data") / "bundled" / f"{name}.csv.gz"
    if bundled.is_file():
        return hashlib.sha256(bundled.read_bytes()).hexdigest()
    return f"in the code of version {package_version()}"


def usual_folder() -> Path:
    """Where finished pieces are kept unless told otherwise: one folder per version of the code."""
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache_folder / "countervail" / "reproduce" / code_digest()[:16]


@dataclass(frozen=True, slots=True)
class KeptPieces:
    """A folder of finished pieces of one version of the code."""

    folder: Path

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the folder, or make it; one that another version of the code began is refused."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise bad_parameter("reproduce", "store", "a folder", f"the file '{folder.name}'")
        folder.mkdir(parents=True, exist_ok=True)
        head = folder / _HEAD
        if not head.is_file():
            write_text(json.dumps({"format": _FORMAT, "code": code_digest(), "version": package_version()}), head)
        found = _read(head)
        if found.get("format") != _FORMAT or found.get("code") != code_digest():
            raise SchemaError(
                f"The folder '{folder.name}' holds pieces of another version of the code (version "
                f"{found.get('version', 'unknown')}): figures of two versions are never mixed. Give another folder as "
                f"--store, or delete this one."
            )
        return cls(folder)

    def path(self, piece: Piece, seed: int, data: Iterable[str]) -> Path:
        """The file of a piece: its name changes with the work, its settings, the seed and the data."""
        parts = [piece.work, piece.settings, seed, {n: data_digest(n) for n in sorted(data)}]
        text = json.dumps(parts, sort_keys=True, default=str).encode()
        return self.folder / f"{piece.work}-{hashlib.sha256(text).hexdigest()[:20]}.json"

    def read(self, path: Path) -> dict[str, Any] | None:
        """What a piece found, if it is finished."""
        return _read(path) if path.is_file() else None

    def keep(self, path: Path, found: dict[str, Any]) -> None:
        """Keep what a piece found, whole or not at all."""
        write_text(json.dumps(found, allow_nan=False) + "\n", path)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SchemaError(f"'{path.name}' in the folder of finished pieces is damaged. Delete it, and run again.")
    return data
