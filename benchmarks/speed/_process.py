"""What a process and all that it started have taken, and how a case is run in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def family(pid: int) -> list[int]:
    """A process and all that live below it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents.setdefault(int(stat.read_text().rsplit(")", 1)[1].split()[1]), []).append(int(stat.parent.name))
        except (OSError, IndexError):
            continue
    found, below = [], [pid]
    while below:
        found.append(below.pop())
        below += parents.get(found[-1], [])
    return found


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and of all that live below it."""
    ticks = 0
    for held in family(pid):
        try:
            ticks += sum(map(int, Path(f"/proc/{held}/stat").read_text().rsplit(")", 1)[1].split()[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_gb(pid: int) -> float:
    """The most memory that each of them held (resident), added up."""
    held = 0
    for one in family(pid):
        try:
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
        except OSError:
            continue
        held += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return held * 1024 / 1e9


def in_a_process(script: str, words: list[str], bytecode: Path) -> dict[str, Any]:
    """What a script prints last, as JSON, when it is run with these words.

    Its modules are compiled once, into `bytecode`, as those of an installed package are.
    """
    kept = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-W", "ignore", script, *words, "--allow-uncommitted"]
    settings = kept | {"PYTHONPYCACHEPREFIX": str(bytecode)}
    done = subprocess.run(command, capture_output=True, text=True, env=settings)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
