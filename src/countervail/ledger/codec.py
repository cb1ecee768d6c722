"""Arrays as bytes and back: what a ledger stores is data, never code to run."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countervail.core.errors import LedgerError


def pack(arrays: Sequence[NDArray[Any]]) -> bytes:
    """Whole-number arrays as bytes."""
    head = json.dumps([[str(a.dtype.newbyteorder("<").str), list(a.shape)] for a in arrays]).encode()
    body = b"".join(np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")).tobytes() for a in arrays)
    return len(head).to_bytes(4, "little") + head + zlib.compress(body, 1)


def unpack(data: bytes) -> list[NDArray[Any]]:
    """The inverse of :func:`pack`."""
    size = int.from_bytes(data[:4], "little")
    body, at, arrays = zlib.decompress(data[4 + size :]), 0, []
    for dtype, shape in json.loads(data[4 : 4 + size]):
        if np.dtype(dtype).kind not in "iu":
            raise LedgerError("A stored answer is damaged: it does not hold whole numbers. No answer was given.")
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(body, dtype, count, at).reshape(shape).astype(np.dtype(dtype).newbyteorder("=")))
        at += count * np.dtype(dtype).itemsize
    return arrays
