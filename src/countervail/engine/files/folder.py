"""A folder that comes into being whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countervail.core.errors import DataNotFoundError, bad_parameter


def check_new(folder: Path, owner: str) -> None:
    """Raise unless a folder can come into being under this name."""
    if folder.exists() or folder.is_symlink():
        hint = "Name another one, or remove it."
        raise bad_parameter(owner, "folder", "a folder that does not exist yet", folder.name, hint)
    if not folder.parent.is_dir():
        raise DataNotFoundError(f"No folder '{folder.parent}' to write '{folder.name}' into. Create it first.")


@contextmanager
def whole_folder(folder: Path, owner: str) -> Iterator[Path]:
    """A temporary folder beside `folder`, which gets its name once everything in it is on the disk.

    Whoever is killed before that leaves a folder `.countervail-...`, and none of the name.
    """
    check_new(folder, owner)
    place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".countervail-"))
    try:
        yield place
        for file in sorted(place.iterdir()):
            os.chmod(file, 0o644)
            _sync(file)
        os.chmod(place, 0o755)
        _sync(place)
        check_new(folder, owner)
        os.rename(place, folder)
        _sync(folder.parent)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
