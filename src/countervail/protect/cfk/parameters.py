"""The parameters of CF-K: which go together."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from countervail.core.errors import bad_parameter
from countervail.ledger.ledger import check_ledger

Search = Literal["groups", "exact", "grasp"]
SEARCHES: tuple[Search, ...] = ("groups", "exact", "grasp")


def check_parameters(cfk: Any) -> None:
    """What is wrong with the parameters, if anything is."""
    if not isinstance(cfk.k, (int, np.integer)) or isinstance(cfk.k, bool) or cfk.k < 2:
        raise bad_parameter("CFK", "k", "a whole number of at least 2", cfk.k)
    if cfk.search not in SEARCHES:
        raise bad_parameter("CFK", "search", f"one of {SEARCHES}", cfk.search)
    if cfk.grouping not in ("clusters", "mondrian"):
        raise bad_parameter("CFK", "grouping", "'clusters' or 'mondrian'", cfk.grouping)
    if cfk.profile not in (None, "published"):
        raise bad_parameter("CFK", "profile", "None or 'published'", cfk.profile)
    if cfk.profile and cfk.search != "grasp":
        raise bad_parameter("CFK", "profile", "None unless search='grasp'", cfk.profile)
    check_ledger(cfk.ledger, "CFK")
    for name in ("l", "t", "groups", "ledger"):
        if getattr(cfk, name) is not None and cfk.search != "groups":
            raise bad_parameter("CFK", name, "None unless search='groups'", getattr(cfk, name))
    if (cfk.l is not None or cfk.t is not None) and cfk.sensitive is None:
        raise bad_parameter("CFK", "sensitive", "the column that l and t speak of", None)
    if cfk.l is not None and cfk.l < 1:
        raise bad_parameter("CFK", "l", "at least 1", cfk.l)
    if cfk.t is not None and not 0 <= cfk.t <= 1:
        raise bad_parameter("CFK", "t", "between 0 and 1", cfk.t)
    if cfk.groups is not None and cfk.groups.k < cfk.k:
        raise bad_parameter("CFK", "groups", f"formed with a k of at least {cfk.k}", cfk.groups.k)
    if not 0 <= cfk.min_pureness <= 1:
        raise bad_parameter("CFK", "min_pureness", "between 0 and 1", cfk.min_pureness)
    for name in ("neighbours", "node_budget", "cell_budget", "alpha", "iterations"):
        value = getattr(cfk, name)
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise bad_parameter("CFK", name, "a whole number of at least 1", value)
