"""Alibi: what `Explanation.to_json()` writes, and the objects, of its counterfactual explainers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from countervail.core.errors import SchemaError
from countervail.core.files.json_data import need, whole_json
from countervail.explain.foreign.taken import OWNER, Taken, as_rows

_KINDS = {
    "Counterfactual": "Counterfactual",
    "CounterFactual": "Counterfactual",
    "CounterfactualProto": "CounterfactualProto",
    "CounterFactualProto": "CounterfactualProto",
    "CounterfactualRL": "CounterfactualRL",
    "CounterfactualRLTabular": "CounterfactualRLTabular",
}
MORE = (
    "Alibi also writes what its search passed through ('all'): only the counterfactual that it settled on was read. "
    "Whoever gets the file gets the others too."
)


def is_alibi(source: Any) -> bool:
    """Whether JSON data, or an object, is one of Alibi's explanations."""
    meta, data = _parts(source)
    return isinstance(meta, Mapping) and isinstance(data, Mapping) and "name" in meta


def take_alibi(source: Any) -> Taken:
    """One explanation: of a single row (`factuals` are then given beside it), or of a batch that it holds itself."""
    meta, data = _parts(source)
    with whole_json("source", OWNER, "Alibi's Explanation.to_json()"):
        kind = _KINDS.get(str(meta["name"]))
        if kind is None:
            raise SchemaError(
                f"{OWNER} reads Alibi's counterfactuals ({', '.join(dict.fromkeys(_KINDS.values()))}). This "
                f"explanation is of another kind."
            )
        return _batch(kind, data) if kind.startswith("CounterfactualRL") else _single(kind, data)


def _single(kind: str, data: Mapping[str, Any]) -> Taken:
    found, before = data["cf"], [data["orig_class"]]
    remarks = (MORE,) if any(bool(v) for v in dict(data.get("all") or {}).values()) else ()
    if not found:
        return Taken(f"Alibi {kind}", np.empty((0, 0), dtype=object), None, _nobody(0), before, [], remarks)
    rows = _flat(found["X"])
    need(len(rows) == 1)
    return Taken(f"Alibi {kind}", rows, None, _nobody(1), before, [found["class"]], remarks)


def _batch(kind: str, data: Mapping[str, Any]) -> Taken:
    asked, found = _flat(data["orig"]["X"]), _flat(data["cf"]["X"])
    need(len(found) == len(asked) or len(asked) > 0 == len(found))
    return Taken(
        f"Alibi {kind}",
        found,
        asked,
        np.arange(len(found), dtype=np.int64),
        _labels(data["orig"].get("class"), len(asked)),
        _labels(data["cf"].get("class"), len(found)),
    )


def _labels(classes: Any, rows: int) -> list[Any] | None:
    """Decisions about rows: labels, or scores, of which the highest counts."""
    if classes is None:
        return None
    said = np.asarray(classes)
    said = said.argmax(axis=1) if said.ndim == 2 and said.shape[1] > 1 else said.ravel()
    need(len(said) == rows)
    return [v.item() for v in said]


def _flat(rows: Any) -> np.ndarray:
    array = as_rows(rows, "counterfactuals") if not isinstance(rows, np.ndarray) else rows
    return array.reshape(len(array), -1)


def _nobody(n: int) -> Any:
    return np.zeros(n, dtype=np.int64)


def _parts(source: Any) -> tuple[Any, Any]:
    if isinstance(source, Mapping):
        return source.get("meta"), source.get("data")
    return getattr(source, "meta", None), getattr(source, "data", None)
