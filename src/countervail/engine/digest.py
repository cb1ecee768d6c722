"""What tells one release from another, whatever engine wrote it and however its rows are spread over files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from countervail.core.canonical import canonical_value
from countervail.core.conform import plain
from countervail.engine.interface import COUNT, Relation

_MODULUS = 1 << 128


def relation_digest(relation: Relation) -> str:
    """The digest of all rows of a relation."""
    names = sorted(relation.kinds)
    found = relation.grouped(names)
    return _digest({n: found[n].to_pylist() for n in names}, found[COUNT].to_pylist())


def frame_digest(frame: pd.DataFrame) -> str:
    """The digest of all rows of a frame, as a release shows them."""
    return _digest({str(n): frame[n].astype(object).tolist() for n in sorted(frame.columns)}, [1] * len(frame))


def _digest(columns: Mapping[str, Sequence[Any]], counts: Sequence[int]) -> str:
    """The sum of a hash of each row: the same for the same multiset of rows.

    Examples
    --------
    >>> _digest({"x": [1, 2]}, [2, 1]) == _digest({"x": [2.0, 1, 1]}, [1, 1, 1])
    True
    """
    total = 0
    for *cells, count in zip(*columns.values(), counts):
        text = json.dumps([_text(cell) for cell in cells])
        total += count * int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
    head = json.dumps([list(columns), sum(counts)])
    return f"{hashlib.sha256(head.encode()).hexdigest()[:16]}{total % _MODULUS:032x}"


def _text(cell: Any) -> str | None:
    value = canonical_value(cell)
    return None if value is None else plain(value)
