"""What every result says about its origin: commit, versions, data."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from countervail.data.registry import REGISTERED, find

ROOT = Path(__file__).resolve().parents[2]


def code() -> dict[str, Any]:
    """Which state of the code is measured; ask before the run, which takes minutes."""
    changed = bool(_git("status", "--porcelain", "--", "src"))
    return {"commit": _git("rev-parse", "HEAD"), "uncommitted_changes": changed}


def versions() -> dict[str, str]:
    """Versions of what did the work."""
    packages = ("countervail", "numpy", "pandas", "scikit-learn", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def data_hash(name: str) -> str:
    """The hash of a data set's file."""
    if name in REGISTERED:
        return hashlib.sha256(find(name).read_bytes()).hexdigest()
    bundled = files("countervail.data") / "bundled" / f"{name}.csv.gz"
    return hashlib.sha256(bundled.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def provenance(sets: Iterable[str], seed: int) -> dict[str, Any]:
    """All of it at once."""
    return {**code(), "seed": seed, "data_sha256": {name: data_hash(name) for name in sets}, "versions": versions()}
