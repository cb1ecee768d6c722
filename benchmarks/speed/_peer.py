"""Environments for the packages we compare with: outside the repository, built once, by version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def peer_python(name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment that holds `requirements`; built when missing or when they have changed."""
    folder = _cache() / "countervail" / "peers" / name
    python = folder / "bin" / "python"
    ready = folder / "requirements.json"
    wanted = json.dumps([sys.version_info[:2], list(requirements)])
    if python.exists() and ready.is_file() and ready.read_text(encoding="utf-8") == wanted:
        return python
    print(f"Building an environment with {', '.join(requirements)} ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
    subprocess.run(install, check=True)
    ready.write_text(wanted, encoding="utf-8")
    return python


def run_peer(python: Path, script: Path, *arguments: str) -> None:
    """Run a script apart from us (-I: neither our folders nor PYTHONPATH are seen), on one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    subprocess.run([str(python), "-I", str(script), *arguments], check=True, env={**os.environ, **one})


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
