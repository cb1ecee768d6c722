"""Whatever is given, as what a tool wrote: files, texts, objects, frames, arrays, lists of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.errors import DataNotFoundError, SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.files.frames import ENDINGS, read_frame
from countervail.core.schema import Schema
from countervail.core.table import Table, to_pandas
from countervail.explain.foreign.alibi import is_alibi, take_alibi
from countervail.explain.foreign.dice import is_dice_json, is_dice_object, take_dice_json, take_dice_object
from countervail.explain.foreign.taken import OWNER, Cells, Taken, as_rows, joined

_FORMATS = (
    "DiCE's JSON, Alibi's JSON, what Explanations.to_json() wrote, or rows (.csv, .parquet, .npy, frame or array) "
    "beside the factuals"
)


def take(source: Any, factuals: Any, schema: Schema) -> Taken | Explanations:
    """What `source` holds, with the factuals that are given beside it."""
    if isinstance(source, tuple):
        if len(source) != 2:
            raise bad_parameter(OWNER, "source", "a pair (factuals, counterfactuals)", f"a tuple of {len(source)}")
        if factuals is not None:
            raise bad_parameter(OWNER, "factuals", "None beside a pair", type(factuals).__name__)
        factuals, source = source
    if isinstance(source, Explanations):
        return source
    taken = _several(source, schema) if _is_list_of_outputs(source) else _one(source, schema)
    if isinstance(taken, Explanations) or factuals is None:
        return taken
    asked = _rows(factuals, schema, "factuals")
    held = taken.factuals if taken.query is not None else None
    if held is not None and len(held) != len(asked):
        raise SchemaError(f"{OWNER} got {len(asked):,} factuals, but {taken.format} holds {len(held):,}.")
    return replace(taken, factuals=asked)


def _is_list_of_outputs(source: Any) -> bool:
    """A list of objects, frames, arrays or JSON; a list of rows is an array."""
    return isinstance(source, list) and not all(np.ndim(v) == 0 and _is_cell(v) for row in source for v in _cells(row))


def _cells(row: Any) -> Sequence[Any]:
    return row if isinstance(row, list) and row else [row]


def _is_cell(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return not (isinstance(value, str) and value.lstrip()[:1] in ("{", "["))
    return isinstance(value, (int, float, np.generic))


def _several(sources: list[Any], schema: Schema) -> Taken:
    parts = [_one(s, schema) for s in sources if s is not None]
    ready = [p for p in parts if isinstance(p, Taken)]
    if len(ready) < len(parts) or not ready:
        raise bad_parameter(OWNER, "source", "a list of one tool's outputs, at least one", f"{len(sources)} items")
    nothing = replace(ready[0], counterfactuals=ready[0].counterfactuals[:0], query=None, before=None, after=None)
    if any(s is None for s in sources) and ready[0].factuals is not None:
        raise bad_parameter(OWNER, "source", "without gaps: these outputs hold their factuals", "None")
    left = iter(ready)
    return joined([nothing if s is None else next(left) for s in sources])


def _one(source: Any, schema: Schema) -> Taken | Explanations:
    if isinstance(source, (str, Path)):
        return _text_or_file(source, schema)
    if is_dice_object(source):
        return take_dice_object(source)
    if isinstance(source, Mapping) and "kind" in source:
        return Explanations.from_json(json.dumps(source))
    if is_dice_json(source):
        return take_dice_json(dict(source))
    if is_alibi(source):
        return take_alibi(source)
    if hasattr(source, "cfs") and hasattr(source, "factual"):
        return _cfnow(source)
    if hasattr(source, "x_cfs") and hasattr(source, "x_origs"):
        return _cel(source)
    return _plain(source, schema)


def _text_or_file(source: str | Path, schema: Schema) -> Taken | Explanations:
    text = source if isinstance(source, str) and source.lstrip()[:1] in ("{", "[") else None
    if text is None:
        path = Path(source)
        if not path.is_file():
            raise DataNotFoundError(f"No file of explanations at '{path}'.")
        if path.name.endswith((*ENDINGS, ".npy")):
            return _plain(path, schema)
        text = _read(path)
    lines = [line for line in text.splitlines() if line.strip()]
    data = _loaded(text)
    if data is None and len(lines) > 1:  # one explanation per line
        data = [_loaded(line) for line in lines]
        data = None if any(d is None for d in data) else data
    if isinstance(data, list) and data:
        return _several(data, schema)
    if not isinstance(data, Mapping) or not ("kind" in data or is_dice_json(data) or is_alibi(data)):
        raise SchemaError(
            f"The file or text given to {OWNER} holds no explanations that it knows. It reads {_FORMATS}."
        )
    return _one(data, schema)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise SchemaError(f"The file '{path.name}' is not readable as text. {OWNER} reads {_FORMATS}.") from None


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(source: Any, schema: Schema) -> Taken:
    """Rows beside their factuals."""
    if isinstance(source, np.ndarray) and source.ndim == 3:  # factual x counterfactual x column
        places = np.repeat(np.arange(source.shape[0], dtype=np.int64), source.shape[1])
        return Taken("arrays", source.reshape(-1, source.shape[2]), query=places)
    rows = _rows(source, schema, "counterfactuals")
    kind = "files" if isinstance(source, (str, Path)) else "frames" if isinstance(rows, pd.DataFrame) else "arrays"
    after = None
    if isinstance(rows, pd.DataFrame) and "decision" in rows.columns and "decision" not in schema:
        after = rows["decision"].tolist()
    return Taken(kind, rows, after=after)


def _rows(source: Any, schema: Schema, what: str) -> Cells:
    """A frame or an array."""
    if isinstance(source, (str, Path)):
        return _file(Path(source), schema)
    if isinstance(source, Table):
        return source.frame
    if isinstance(source, (list, np.ndarray)):
        return as_rows(source, what)
    if isinstance(source, (pd.DataFrame, pd.Series, Mapping)) or hasattr(source, "columns"):
        return to_pandas(source, OWNER, what)
    must = f"{_FORMATS}; or an object of DiCE, Alibi, cfnow or CEL"
    raise bad_parameter(OWNER, "source" if what == "counterfactuals" else what, must, type(source).__name__)


def _file(path: Path, schema: Schema) -> Cells:
    if path.name.endswith(".npy"):
        try:
            return as_rows(np.load(path, allow_pickle=False), "rows")
        except (OSError, ValueError):
            raise SchemaError(f"The file '{path.name}' is no array of numbers or texts that numpy wrote.") from None
    frame = read_frame(path, text=[c.name for c in schema if c.type != "numeric"])
    first = frame.columns[0] if len(frame.columns) else ""
    # How pandas writes an index: a first column without a name.
    return frame.set_index(first).rename_axis(None) if first == "Unnamed: 0" and first not in schema else frame


def _cfnow(source: Any) -> Taken:
    """One factual, and the vectors that cfnow found for it."""
    factual, names = source.factual, getattr(source, "col_names", None)
    asked = (
        to_pandas(factual, OWNER, "source") if isinstance(factual, (pd.Series, pd.DataFrame)) else as_rows(factual, "")
    )
    found = as_rows(np.asarray(list(source.cfs), dtype=object), "counterfactuals") if len(source.cfs) else asked[:0]
    if names is not None and not isinstance(found, pd.DataFrame):
        found = pd.DataFrame(found, columns=list(names)).infer_objects()
    return Taken("cfnow", found, asked, np.zeros(len(found), dtype=np.int64))


def _cel(source: Any) -> Taken:
    """Rows of CEL (an `ExplanationResult`), and the answer to each beside it."""
    found, asked = as_rows(source.x_cfs, "counterfactuals"), as_rows(source.x_origs, "factuals")
    if len(found) != len(asked):
        raise SchemaError(f"The CEL object given to {OWNER} has {len(found):,} answers to {len(asked):,} rows.")
    return Taken("CEL", found, asked, np.arange(len(found), dtype=np.int64))
