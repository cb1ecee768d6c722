"""What Mondrian's parameters must be, whatever the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from countervail.core.errors import bad_parameter
from countervail.core.guarantee.diversity import DIVERSITIES, GROUNDS

WORDS: Final[dict[str, tuple[str | None, ...]]] = {
    "mode": ("strict", "relaxed"),
    "choose": ("gain", "span"),
    "labels": ("tight", "hierarchy"),
    "profile": (None, "basic"),
    "halves": (None, "equal"),
    "diversity": DIVERSITIES,
    "closeness": GROUNDS,
}


def check_parameters(given: Mapping[str, Any]) -> None:
    """Raise for the first parameter that no table could be protected with."""
    k = given["k"]
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise bad_parameter("Mondrian", "k", "a whole number of at least 1", k)
    for name, allowed in WORDS.items():
        if given[name] not in allowed:
            raise bad_parameter("Mondrian", name, f"one of {allowed}", given[name])
    if given["l"] is not None:
        _check_diversity(given["l"], given["diversity"], given["c"])
    t = given["t"]
    if t is not None and not (_is_number(t) and 0 <= t <= 1):
        raise bad_parameter("Mondrian", "t", "between 0 and 1", t)
    secrets = given["l"] is not None or t is not None
    if given["halves"] is not None and (secrets or given["profile"] is not None):
        raise bad_parameter("Mondrian", "halves", "None with l, t or a profile", given["halves"])
    _check_mode(given)


def _check_mode(given: Mapping[str, Any]) -> None:
    """Ties and suppression belong to cuts that keep a promise."""
    fixed = given["halves"] is not None or given["profile"] is not None
    if given["mode"] == "relaxed" and fixed:
        raise bad_parameter("Mondrian", "mode", "'strict' with halves or a profile", given["mode"])
    share = given["suppress"]
    if not (_is_number(share) and 0 <= share < 1):
        raise bad_parameter("Mondrian", "suppress", "a share of rows, at least 0 and below 1", share)
    if share > 0 and given["profile"] is not None:
        raise bad_parameter("Mondrian", "suppress", "0 with a profile", share)
    if share > 0 and given["t"] is not None:
        hint = "The yardstick of t is the table; rows that are left out would bend it."
        raise bad_parameter("Mondrian", "suppress", "0 with t", share, hint)


def _check_diversity(l: Any, kind: str, c: Any) -> None:  # noqa: E741 -- the name the literature uses
    fractions = kind in ("entropy", "frequency")
    if not _is_number(l) or l < 1 or (not fractions and l != int(l)):
        raise bad_parameter("Mondrian", "l", f"a {'' if fractions else 'whole '}number of at least 1", l)
    if kind == "recursive" and not (_is_number(c) and c > 0):
        raise bad_parameter("Mondrian", "c", "a number above 0", c)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))
