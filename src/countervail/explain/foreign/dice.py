"""DiCE (dice-ml): its JSON, versions 1 and 2, and its objects."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.errors import SchemaError
from countervail.core.files.json_data import need, texts, whole_json
from countervail.explain.foreign.taken import OWNER, Taken, joined

_WRITER = "DiCE's to_json()"
WHOLE_ROWS = (
    "A DiCE object also holds its counterfactuals before it reset some of their values, under the numbers of the "
    "training rows that they were; only what it shows was read. Hand out its JSON, not the object."
)


def is_dice_json(data: Any) -> bool:
    """Whether JSON data looks like DiCE's."""
    return isinstance(data, dict) and ("cfs_list" in data or "cf_examples_list" in data)


def is_dice_object(source: Any) -> bool:
    """CounterfactualExplanations, or one CounterfactualExamples."""
    return hasattr(source, "cf_examples_list") or (
        hasattr(source, "final_cfs_df") and hasattr(source, "test_instance_df")
    )


def take_dice_json(data: dict[str, Any]) -> Taken:
    """From JSON of version 1 or 2."""
    with whole_json("source", OWNER, _WRITER):
        version = str(data["metadata"]["version"])
        if version not in ("1.0", "2.0"):
            raise SchemaError(f"{OWNER} reads DiCE's JSON of version 1.0 and 2.0. This file is of another.")
        return _version_1(data) if version == "1.0" else _version_2(data)


def take_dice_object(source: Any) -> Taken:
    """From the object that `generate_counterfactuals` gives, or from one of its examples."""
    examples = getattr(source, "cf_examples_list", [source])
    if not examples:
        raise SchemaError(f"The DiCE object given to {OWNER} holds no examples.")
    parts = []
    for one in examples:
        sparse = getattr(one, "final_cfs_df_sparse", None)
        shown = sparse if sparse is not None else one.final_cfs_df
        outcome = getattr(getattr(one, "data_interface", None), "outcome_name", None)
        remarks = (WHOLE_ROWS,) if one.final_cfs_df is not None else ()
        parts.append(_part("DiCE object", one.test_instance_df, shown, outcome, remarks))
    return joined(parts)


def _version_2(data: dict[str, Any]) -> Taken:
    names, outcome = texts(data["feature_names_including_target"]), data["data_interface"]["outcome_name"]
    asked, answered = data["test_data"], data["cfs_list"]
    need(isinstance(asked, list) and isinstance(answered, list) and len(asked) == len(answered) > 0)
    frames = ((pd.DataFrame(a, columns=names), pd.DataFrame(c or [], columns=names)) for a, c in zip(asked, answered))
    return joined([_part("DiCE JSON 2.0", a, c, outcome) for a, c in frames])


def _version_1(data: dict[str, Any]) -> Taken:
    parts = []
    for text in texts(data["cf_examples_list"]):
        one = json.loads(text)
        asked, shown = (_columns(one[n]) for n in ("test_instance_df", "final_cfs_df"))
        need(asked is not None)
        outcome = one["data_interface"]
        outcome = json.loads(outcome) if isinstance(outcome, str) else outcome
        parts.append(_part("DiCE JSON 1.0", asked, shown, outcome["outcome_name"]))
    need(bool(parts))
    return joined(parts)


def _columns(data: Any) -> pd.DataFrame | None:
    """A frame written by pandas as column -> row -> value, as text or not."""
    data = json.loads(data) if isinstance(data, str) else data
    return None if data is None else pd.DataFrame({n: list(cells.values()) for n, cells in data.items()})


def _part(format_: str, asked: Any, shown: Any, outcome: str | None, remarks: tuple[str, ...] = ()) -> Taken:
    asked = asked.reset_index(drop=True)
    shown = asked.iloc[:0] if shown is None else shown.reset_index(drop=True)
    need(len(asked) == 1)
    before = asked[outcome].tolist() if outcome in asked.columns else None
    after = shown[outcome].tolist() if outcome in shown.columns else None
    rest = [outcome] if outcome is not None else []
    return Taken(
        format_,
        shown.drop(columns=rest, errors="ignore"),
        asked.drop(columns=rest, errors="ignore"),
        np.zeros(len(shown), dtype=np.int64),
        before,
        after,
        remarks,
    )
