"""Protectors in files: the sealed table and what was settled about it, no rows, no pickle.

docs/guide/saving.md has the format.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from countervail.core.errors import SchemaError
from countervail.core.files.frames import write_text
from countervail.core.files.json_data import is_count, need, texts
from countervail.core.guarantee import Guarantee
from countervail.core.hierarchy import Hierarchy
from countervail.core.release import Release, package_version
from countervail.core.sealed import SealedTable
from countervail.core.stats import plain_value
from countervail.protect._fitted import WithoutRows, snapshot, verify_unchanged

FORMAT = 1
_GONE = ("ledger", "previous", "explainer", "rules")  # objects that belong to whoever fitted it


class Savable(WithoutRows):
    """A protector that can be saved. A subclass writes `_saved` and `_restore`."""

    name: ClassVar[str]

    def save(self, path: str | Path) -> None:
        """Write all that answers are made from to a JSON file that its owner alone may read.

        It holds the k-anonymous table and no rows. It is confidential all the same: private values stand in it, each
        among k people. A ledger is told before; it does not come along.
        """
        now = snapshot(self)
        verify_unchanged(now)
        maker: Any = now
        data = {
            "kind": "protector",
            "format": FORMAT,
            "protector": self.name,
            "countervail": package_version(),
            "parameters": parameters_to_json(maker.get_params(deep=False)),
            **now._saved(),
        }
        write_text(json.dumps(data, allow_nan=False), path, confidential=True)

    @abstractmethod
    def _saved(self) -> dict[str, Any]:
        """What fit found, as plain JSON data."""

    @abstractmethod
    def _restore(self, data: dict[str, Any], model: Any) -> None:
        """Be as after fit; called inside `whole_json`."""


def release_to_json(release: Release) -> dict[str, Any]:
    """A release in order of content as plain JSON data; its promise follows from the parameters."""
    sealed = SealedTable(release.schema, release.regions, release.groups, release.others)
    return {
        "sealed": sealed.to_dict(),
        "provenance": plain_value(release.provenance),
        "caveats": list(release.caveats),
        "suppressed": int(release.suppressed),
        "words": {name: dict(words) for name, words in release.words.items()},
    }


def release_from_json(data: dict[str, Any], promise: Guarantee) -> Release:
    """The inverse of :func:`release_to_json`, if the promise holds of it; to be called inside `whole_json`."""
    sealed = SealedTable.from_dict(data["sealed"])
    need(is_count(data["suppressed"]) and isinstance(data["provenance"], dict))
    words = {name: dict(zip(given, texts(list(given.values())))) for name, given in data["words"].items()}
    release = Release(
        sealed.regions,
        sealed.groups,
        sealed.others,
        sealed.schema,
        promise,
        data["provenance"],
        texts(data["caveats"]),
        data["suppressed"],
        words,
    )
    need(promise.recount(release) is None)
    return release


def parameters_to_json(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as plain JSON data; without objects that belong to whoever fitted.

    Of a generator it stays that chance was seeded, by whatever number: what was drawn is kept, and promises nothing.
    """
    plain = {n: 0 if isinstance(v, np.random.Generator) else v for n, v in given.items() if n not in _GONE}
    return {n: _to_json(v) for n, v in plain.items()}


def _to_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Hierarchy):
        return {"rows": [list(row) for row in value.rows], "name": value.name}
    if isinstance(value, BaseEstimator):
        return {"made": type(value).__name__, "parameters": parameters_to_json(value.get_params(deep=False))}
    if isinstance(value, tuple):
        return {"tuple": [_to_json(v) for v in value]}
    if isinstance(value, (list, set, frozenset, np.ndarray)):
        return [_to_json(v) for v in value]
    if isinstance(value, Mapping) and all(isinstance(n, str) for n in value):
        return {n: _to_json(v) for n, v in value.items()}
    raise SchemaError(f"A parameter of the type {type(value).__name__} cannot be saved.")
