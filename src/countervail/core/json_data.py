"""Taking JSON apart: whatever is wrong with it is said in one line, without showing what it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from countervail.core.errors import CountervailError, SchemaError


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
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, CountervailError):
            raise
        raise SchemaError(
            f"The '{parameter}' given to {owner} is damaged: a part is missing or of another shape. Give what {writer} "
            f"wrote, unchanged."
        ) from None
