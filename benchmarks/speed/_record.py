"""What every result file says about how it came about."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from countervail.data.registry import REGISTERED, find

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("countervail", "numpy", "pandas", "scikit-learn", "numba")
BUNDLED = ROOT / "src" / "countervail" / "data" / "bundled"


def provenance(sets: Iterable[str], seed: int) -> dict[str, Any]:
    """Commit, seed, data hashes and versions."""
    changed = bool(_git("status", "--porcelain", "--", "src"))
    return {
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": changed,
        "seed": seed,
        "data_sha256": {name: _hash(name) for name in sets},
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
    }


def _hash(name: str) -> str:
    path = find(name) if name in REGISTERED else BUNDLED / f"{name}.csv.gz"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "made by the program"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
