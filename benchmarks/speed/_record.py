"""What every result says about its origin (commit, versions, data), and when it may be written down."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from countervail.data.registry import REGISTERED, find

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("countervail", "numpy", "pandas", "scikit-learn", "numba")
# What is measured, and what measures. Results do not count: the scripts of one session write them one by one.
_MEASURED = ("src", "benchmarks", ":!benchmarks/results")


def parse(parser: argparse.ArgumentParser, output: Path, *, quick: str | None = None) -> argparse.Namespace:
    """The arguments of a run, which is refused before it starts where its record would belong to no commit.

    `quick` says what the smallest setting is, where a script has one: a run that only shows that it works.
    """
    parser.add_argument("--output", type=Path, default=output, help="where the results go as JSON")
    parser.add_argument(
        "--allow-uncommitted", action="store_true", help="run whatever the state of the code: print, write nothing"
    )
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help=f"{quick}: print, write nothing")
    given = parser.parse_args()
    if writes(given) and (changed := uncommitted()):
        raise SystemExit(
            f"{parser.prog} records figures of a commit, but {len(changed)} file(s) of src or benchmarks have "
            f"uncommitted changes, {changed[0]} among them. Commit them, or pass --allow-uncommitted to print the "
            f"figures and write nothing."
        )
    return given


def writes(given: argparse.Namespace) -> bool:
    """Whether a run leaves anything behind."""
    return not (given.allow_uncommitted or getattr(given, "quick", False))


def write(given: argparse.Namespace, found: dict[str, Any]) -> None:
    """The record of a run, in its file or nowhere."""
    if not writes(given):
        print("Nothing written: the figures above belong to no record.")
        return
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    print(f"Written: {given.output.name}")


def uncommitted() -> list[str]:
    """Files of the code and of the benchmarks that differ from the commit."""
    return [line[3:] for line in _git("status", "--porcelain", "--", *_MEASURED).splitlines()]


def code() -> dict[str, Any]:
    """Which state of the code is measured; ask before the run, which takes minutes."""
    return {"commit": _git("rev-parse", "HEAD").strip(), "uncommitted_changes": bool(uncommitted())}


def versions(*more: str) -> dict[str, str]:
    """Versions of what did the work."""
    return {"python": platform.python_version(), **{name: version(name) for name in (*PACKAGES, *more)}}


def data_hash(name: str) -> str:
    """The hash of a data set's file."""
    if name in REGISTERED:
        return hashlib.sha256(find(name).read_bytes()).hexdigest()
    bundled = files("countervail.data") / "bundled" / f"{name}.csv.gz"
    return hashlib.sha256(bundled.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def provenance(sets: Iterable[str], seed: int | None, *packages: str) -> dict[str, Any]:
    """All of it at once."""
    hashes = {name: data_hash(name) for name in sets}
    return {**code(), "seed": seed, "data_sha256": hashes, "versions": versions(*packages)}
