"""Where a reproduction comes from (commit, seed, data, versions), and its record on disk."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from countervail.core.errors import ParameterError, SchemaError
from countervail.core.files.frames import text_writer, write_files
from countervail.core.release import package_version
from countervail.study.reproduce.kept import code_digest, data_digest
from countervail.study.reproduce.result import Reproduction

PACKAGES = ("countervail", "numpy", "pandas", "scikit-learn", "scipy", "numba")
_ROOT = Path(__file__).resolve().parents[4]
_MEASURED = ("src",)


def provenance(sets: Iterable[str], seed: int) -> dict[str, Any]:
    """Which state of the code, which data and which versions; asked before the run."""
    return {
        **code_state(),
        "code_sha256": code_digest(),
        "seed": seed,
        "data_sha256": {n: data_digest(n) for n in sets},
        "versions": {"python": platform.python_version(), **{n: version(n) for n in PACKAGES}},
    }


@cache
def checkout() -> Path | None:
    """The checkout that this package is in; None where it is installed."""
    inside = (_ROOT / "pyproject.toml").is_file() and (_ROOT / ".git").exists()
    return _ROOT if inside else None


def code_state() -> dict[str, Any]:
    """The commit of a checkout, or the released version."""
    if checkout() is None:
        return {"commit": f"released version {package_version()}", "uncommitted_changes": False}
    return {"commit": _git("rev-parse", "HEAD").strip(), "uncommitted_changes": bool(uncommitted())}


def uncommitted() -> list[str]:
    """Files of the code that differ from the commit."""
    return [line[3:] for line in _git("status", "--porcelain", "--", *_MEASURED).splitlines()]


def records_folder() -> Path:
    """Where the records of this checkout lie."""
    root = checkout()
    if root is None:
        raise ParameterError("--record needs a folder where the package is installed: name one with --output.")
    return root / "benchmarks" / "results" / "reproduce"


def check_recordable() -> None:
    """Refuse to record before a run where the record would belong to no commit."""
    if checkout() is not None and (changed := uncommitted()):
        raise ParameterError(
            f"--record writes figures of a commit, but {len(changed)} file(s) of src have uncommitted changes, "
            f"{changed[0]} among them. Commit them, or leave --record out to see the figures."
        )


def record_path(folder: Path, paper: str, exhibit: str, size: str) -> Path:
    """The file of a record: full ones have the plain name."""
    return folder / f"{paper}-{exhibit}{'' if size == 'full' else f'-{size}'}.json"


def write_record(found: Reproduction, folder: Path, *, replace: bool, picture: bool = True) -> Path:
    """Write the record, and its picture beside it; what is there is replaced only when told."""
    path = record_path(folder, found.paper, found.id, found.size)
    if path.exists() and not replace:
        raise ParameterError(
            f"'{path.name}' is recorded already, and a recorded result is never written over unless --record says so. "
            f"Nothing was written."
        )
    folder.mkdir(parents=True, exist_ok=True)
    writers = {path: text_writer(found.to_json())}
    if picture:
        writers[path.with_suffix(".svg")] = text_writer(found.plot() + "\n")
    write_files(writers)
    return path


def read_record(path: Path) -> Reproduction:
    """A record from its file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SchemaError(f"'{path.name}' is no record of a reproduction. Record it anew.")
    return Reproduction.from_dict(data)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=True).stdout
