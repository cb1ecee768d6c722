"""Taking JSON apart: whatever is wrong with it is said in one line, without showing what it holds."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.errors import CountervailError, SchemaError

# What taking data of another shape apart may raise.
DAMAGED: Final = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


class DamagedJsonError(SchemaError):
    """JSON data lack a part, or have one of another shape."""


def json_object(text: str, parameter: str, owner: str, writer: str) -> dict[str, Any]:
    """A text that must hold one JSON object."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SchemaError(f"The '{parameter}' given to {owner} is no JSON object. Give what {writer} wrote.")
    return data


@contextmanager
def whole_json(parameter: str, owner: str, writer: str) -> Iterator[None]:
    """Whatever breaks while JSON data is taken apart means that some of it is missing or of another shape."""
    try:
        yield
    except DAMAGED as error:
        # Of several readers inside one another, the outermost knows what was given.
        if isinstance(error, CountervailError) and not isinstance(error, DamagedJsonError):
            raise
        raise DamagedJsonError(
            f"The '{parameter}' given to {owner} is damaged: a part is missing or of another shape. Give what {writer} "
            f"wrote, unchanged."
        ) from None


def need(holds: bool) -> None:
    """Something that JSON data must be; inside :func:`whole_json`, what it is not is said there."""
    if not holds:
        raise ValueError


def texts(data: Any) -> tuple[str, ...]:
    """A list of texts."""
    need(isinstance(data, list) and all(isinstance(t, str) for t in data))
    return tuple(data)


def is_scalar(value: Any) -> bool:
    """A single value of JSON: no list, no object, no number beyond 64 bits."""
    return value is None or isinstance(value, (str, float)) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def is_text(value: Any) -> bool:
    """A text."""
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """A number that is one, and that an array can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_count(value: Any, least: int = 0) -> bool:
    """A whole number from `least` on, of at most 63 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def places(data: Any, size: int) -> Ints:
    """A list of whole numbers that count something from 0 to below `size`."""
    need(isinstance(data, list) and all(is_count(v) and v < size for v in data))
    return np.array(data, dtype=np.int64)
