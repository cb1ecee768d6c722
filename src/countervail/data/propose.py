"""Proposing a schema from a file: guesses with their reasons, for a person to edit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.conform import check_hashable
from countervail.core.errors import SchemaError
from countervail.core.schema import Column, Role, Schema, Type
from countervail.core.table import to_pandas

_DIRECT = re.compile(
    r"(^|[_\W])(id|uuid|guid|ssn|name|surname|forename|first.?name|last.?name|e?mail|phone|tel|mobile|iban|passport|"
    r"account|card.?no|licen[cs]e.?plate|patient.?no|customer.?no|record.?no)([_\W]|$)",
    re.IGNORECASE,
)
_QUASI = re.compile(
    r"(^|[_\W])(age|birth|dob|sex|gender|race|ethnic\w*|nationality|native|country|city|town|domicile|zip|zip.?code|"
    r"post.?code|postal|region|county|state|address|marital\w*|marry|civil|personal.?status|relationship|education|"
    r"educ\w*|occupation|job|profession|employment|housing|property|residence|foreign\w*|religion|language|children|"
    r"dependents)([_\W]|$)",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"(^|[_\W])(disease|diagnosis|hiv|health|illness|drug|crime|conviction|debt|wage|salary|income|"
    r"sexual\w*|politic\w*|union)([_\W]|$)",
    re.IGNORECASE,
)
_TARGET = re.compile(r"^(class|target|label|outcome|decision|approved|default|y|income|risk)$", re.IGNORECASE)
_MANY = 50  # categorical columns with more values get no proposed domain


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schema to edit, and why each column was guessed as it was."""

    schema: Schema
    reasons: dict[str, str]


def propose_schema(frame: Any, target: str | None = None) -> Proposal:
    """Guess types, domains and roles of a frame's columns."""
    frame = to_pandas(frame, "propose_schema", "frame")
    if len(frame) == 0:
        raise SchemaError("The table is empty: at least one row is needed to propose a schema.")
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    if twice := sorted(set(frame.columns[frame.columns.duplicated()])):
        raise SchemaError(f"Column names must be unique. Repeated in the data: {twice}. Rename them.")
    for name in frame.columns:
        check_hashable(frame[name])
    if target is not None and target not in frame.columns:
        raise SchemaError(f"The target {target!r} is not a column of the data. Columns: {list(frame.columns)}.")
    goal = target if target is not None else _guess_target(frame)
    columns, reasons = [], {}
    for name in frame.columns:
        column, why = _propose(name, frame[name], name == goal, told=target is not None)
        columns.append(column)
        reasons[name] = why
    return Proposal(Schema(tuple(columns)), reasons)


def _propose(name: str, values: pd.Series, is_target: bool, told: bool) -> tuple[Column, str]:
    kind, why_kind = _type(values)
    role, why_role = _role(name, values, kind)
    if is_target:
        role, kind = "target", "categorical"
        why_kind = f"{values.nunique()} labels"
        why_role = "target: as told" if told else "target: by its name; say which labels are favourable, above"
    domain, why_domain = (None, "") if role in ("identifier", "target") else _domain(values, kind)
    levels = (
        tuple(values.dtype.categories) if isinstance(values.dtype, pd.CategoricalDtype) and kind == "ordinal" else None
    )
    why = "\n".join(filter(None, [f"{kind}: {why_kind}", why_role, why_domain]))
    known = levels if levels is not None else domain
    return Column(name, kind, role, None if levels else domain, levels, read=known is not None), why


def _type(values: pd.Series) -> tuple[Type, str]:
    distinct = values.nunique()
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        return "ordinal", "an ordered category"
    if pd.api.types.is_bool_dtype(values) or not pd.api.types.is_numeric_dtype(values):
        return (
            "categorical",
            f'text with {distinct} distinct values; if they have an order: type = "ordinal", levels = [...]',
        )
    if distinct <= 2:
        return "categorical", f"numbers, but only {distinct} distinct ones"
    return "numeric", f"numbers, {distinct} distinct"


def _role(name: str, values: pd.Series, kind: Type) -> tuple[Role, str]:
    share = values.nunique() / len(values)
    spoken = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    whole = kind != "numeric" or pd.api.types.is_integer_dtype(values)
    if _DIRECT.search(spoken):
        return "identifier", "identifier: its name suggests that it points at one person; it never leaves"
    if share > 0.95 and len(values) >= 20 and whole:
        return (
            "identifier",
            f"identifier: {share:.0%} of its values are different; if it only varies a lot, change the role",
        )
    if _QUASI.search(spoken):
        return "quasi", "quasi-identifier: its name suggests something that others may know about a person"
    if _SENSITIVE.search(spoken):
        return "sensitive", "sensitive: its name suggests something that people would not want known"
    return "attribute", "attribute: nothing suggests that outsiders know it"


def _domain(values: pd.Series, kind: Type) -> tuple[tuple[object, ...] | None, str]:
    caution = "from this file, so not public knowledge yet: check it before a differentially private release"
    if not values.notna().any():
        return None, "no domain proposed: every value is missing"
    if kind == "numeric" and np.isinf(values.to_numpy(dtype=float, na_value=np.nan)).any():
        return None, "no domain proposed: it holds infinite values; replace them, or mark them missing"
    if kind == "numeric":
        low, high = _outward(float(values.min()), float(values.max()))
        whole = pd.api.types.is_integer_dtype(values)
        return ((int(low), int(high)) if whole else (low, high)), f"domain: rounded outward {caution}"
    if kind == "categorical" and values.nunique() <= _MANY:
        known = sorted(pd.unique(values.dropna()).tolist(), key=lambda v: (type(v).__name__, v))
        return tuple(v.item() if isinstance(v, np.generic) else v for v in known), f"domain: {caution}"
    return None, "no domain proposed: too many values" if kind == "categorical" else ""


def _outward(low: float, high: float) -> tuple[float, float]:
    """The range widened to round numbers, so that nobody's exact value marks its end."""
    spread = high - low or abs(high) or 1.0
    unit = 10.0 ** math.floor(math.log10(spread))
    bottom, top = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    digits = max(0, -math.floor(math.log10(unit)))
    return round(bottom, digits), round(top, digits)


def _guess_target(frame: pd.DataFrame) -> str | None:
    few = [str(n) for n in frame.columns if 2 <= frame[n].nunique() <= 20]
    named = [n for n in few if _TARGET.match(n)]
    return named[-1] if named else None
