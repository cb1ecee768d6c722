"""Proposing a schema from a file: guesses with their reasons, for a person to edit."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.conform import check_hashable
from countervail.core.errors import SchemaError
from countervail.core.schema import Actionable, Column, Role, Schema, Type
from countervail.core.table import to_pandas
from countervail.core.words.dates import FIRST, LAST, ORDER_WORDS, Order, date_order, read_days
from countervail.data.column_words import suggests
from countervail.data.contents import are_numbered, form_of
from countervail.data.header import check_header
from countervail.data.public_grid import public_grid

_TARGET = re.compile(r"^(class|target|label|outcome|decision|approved|default|y|income|risk)$", re.IGNORECASE)
_NUMBER = re.compile(
    r"[€$£]?\s*[+-]?(\d+|\d{1,3}([ .,'\u2019\u00a0\u202f]\d{3})+)([.,]\d+)?\s*[€$£%]?",
)
_PADDED = re.compile(r"0\d+")
_MARKS = frozenset(
    ("na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "nil", "missing", "unknown", "-", "--", ".", "?")
)
_NAMING = ("e-mail addresses", "accounts (IBAN)", "telephone numbers", "names")
_KNOWN = ("dates", "postcodes")
_MANY = 50  # categorical columns with more values get no proposed domain
_FEW = 5  # labels at most point at nobody
_EACH = 0.05  # of the cells are different where a code stands for a person, who has a score of rows at most
_SOME = 20  # fewer different texts are labels, not free text
_SHORTEST_CODE, _WIDEST = 100, 10**12  # whole numbers between them may be codes of one length
_WORDS, _LETTERS = 5, 30  # a typical cell of at least so many is a sentence
_NOBODY_KNOWN = (
    "No quasi-identifier was recognised in this file: as it stands, the schema protects nobody.\n"
    "Give every column that others may know about a person the role 'quasi'. Names are recognised in English, German, "
    "French, Spanish and Dutch."
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schema to edit, and why each column was guessed as it was; the first reason opens with what concerns all."""

    schema: Schema
    reasons: dict[str, str]


def propose_schema(frame: Any, target: str | None = None) -> Proposal:
    """Guess types, domains and roles of a frame's columns."""
    frame = to_pandas(frame, "propose_schema", "frame")
    if len(frame) == 0:
        raise SchemaError("The table is empty: at least one row is needed to propose a schema.")
    texts = [n for n in frame.columns if isinstance(n, str)]
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    if twice := sorted(set(frame.columns[frame.columns.duplicated()])):
        raise SchemaError(f"Column names must be unique. Repeated in the data: {twice}. Rename them.")
    for name in frame.columns:
        check_hashable(frame[name])
    check_header({n: frame[n] for n in texts})
    once = np.ones(len(frame), dtype=np.int64)
    return propose_columns({n: (frame[n], once) for n in frame.columns}, target)


def propose_columns(
    held: Mapping[str, tuple[pd.Series, Ints]],
    target: str | None = None,
    many: Mapping[str, tuple[bool, int]] | None = None,
) -> Proposal:
    """The same of columns by themselves: the values of each, and how often each of them is there.

    `many` are columns of more values than were looked at: whether they are numbers, and more than how many there are.
    """
    if target is not None and target not in held:
        raise SchemaError(
            f"The target {target!r} is not a column of the data, which has {len(held)}. Without a target, the proposal "
            f"shows them all."
        )
    goal = target if target is not None else _guess_target({n: values for n, (values, _) in held.items()})
    columns, reasons = [], {}
    for name, (values, times) in held.items():
        if name in (many or {}):
            column, why = _named_by_many(name, *(many or {})[name])
        else:
            column, why = _propose(name, values, times, name == goal, told=target is not None)
        columns.append(column)
        reasons[name] = why
    if columns and not any(c.role == "quasi" for c in columns):
        first = columns[0].name  # the comment of the first column is the top of the file
        reasons[first] = f"{_NOBODY_KNOWN}\n{reasons[first]}"
    return Proposal(Schema(tuple(columns)), reasons)


def _propose(name: str, values: pd.Series, times: Ints, is_target: bool, told: bool) -> tuple[Column, str]:
    kind, why_kind = _type(values)
    role, why_role = _role(name, values, times, kind)
    order: Order = ""
    if role != "identifier" and not is_target and (days := _dates(values)) is not None:
        kind, order, why_kind = "date", days[0], days[1]
        values = read_days(values, order, name)
    elif kind == "numeric" and role != "identifier" and _may_be_codes(values, named=suggests(name, "code")):
        if suggests(name, "code"):
            kind = "categorical"
            digits = "whole numbers of one length that look like codes: kept as texts, grouped by their first digits"
            why_kind = f'{values.nunique()} {digits}; if they count something: type = "numeric"'
        else:
            why_kind += ', all of one length; are they codes, of which no sum makes sense? Then: type = "categorical"'
    if is_target:
        role, kind = "target", "categorical"
        why_kind = f"{values.nunique()} labels"
        how = "as told" if told else "by its name"
        why_role = f'target: {how}; which labels are the good ones? At the top of this file: favourable = ["..."]'
    domain, why_domain = (None, "") if role in ("identifier", "target") else _domain(values, kind)
    levels = (
        tuple(values.dtype.categories) if isinstance(values.dtype, pd.CategoricalDtype) and kind == "ordinal" else None
    )
    actionable, why_actionable = _actionable(name, kind, role)
    why_grid = _known_grid(name) if kind == "numeric" and role not in ("identifier", "target") else ""
    why = "\n".join(filter(None, [f"{kind}: {why_kind}", why_role, why_domain, why_grid, why_actionable]))
    known = levels if levels is not None else domain
    read = known is not None
    made = Column(name, kind, role, None if levels else domain, levels, read=read, actionable=actionable, order=order)
    return made, why


def _named_by_many(name: str, numbers: bool, looked: int) -> tuple[Column, str]:
    """A column of so many values that few people share one."""
    kind: Type = "numeric" if numbers else "categorical"
    why = f"identifier: it has more than {looked:,} different values; if they do not point at people, change the role"
    return Column(name, kind, "identifier"), f"{kind}: {'numbers' if numbers else 'text'}\n{why}"


def _known_grid(name: str) -> str:
    """A grid that no row was looked at for, to take the place of what was read off them."""
    known = public_grid(name)
    if known is None:
        return ""
    return (
        f"for differentially private releases, from its name and round numbers alone ({known.why}), if that fits: "
        f"{known.lines}, and no 'read'"
    )


def _dates(values: pd.Series) -> tuple[Order, str] | None:
    """In which order the cells say dates, and what to say about that; None where some cell is no date."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return "", "dates; of times, the day is kept"
    filled = values.dropna()
    if not (pd.api.types.is_string_dtype(filled.dtype) or isinstance(filled.dtype, pd.CategoricalDtype)):
        return None
    texts = [v for v in filled.astype(object).unique() if isinstance(v, str)]
    if len(texts) < _FEW or all(t.strip().isdecimal() for t in texts):
        return None
    found = date_order(texts)
    if found is None:
        return None
    doubt = "" if found else "; nothing tells whether day or month comes first: day first was taken, check it"
    order = found or "dmy"
    return order, f"dates, read as {ORDER_WORDS[order]}{doubt}"


def _may_be_codes(values: pd.Series, *, named: bool) -> bool:
    """Whether whole numbers all have the same number of digits, at least three: many of them, or named as codes."""
    filled = values.dropna()
    whole = pd.api.types.is_integer_dtype(filled.dtype) or bool((filled % 1 == 0).all())
    if not whole or filled.nunique() < (1 if named else _SOME):
        return False
    low, high = float(filled.min()), float(filled.max())
    return low >= _SHORTEST_CODE and high < _WIDEST and len(str(int(low))) == len(str(int(high)))


def _type(values: pd.Series) -> tuple[Type, str]:
    distinct = values.nunique()
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        return "ordinal", "an ordered category"
    if pd.api.types.is_bool_dtype(values) or not pd.api.types.is_numeric_dtype(values):
        order = 'if they have an order: type = "ordinal", levels = [...]'
        return "categorical", f"text with {distinct} distinct values; {_number_words(values) or order}"
    filled = values.dropna()
    if distinct <= 2 and bool((filled % 1 == 0).all() if len(filled) else True):
        return "categorical", f"numbers, but only {distinct} distinct ones"
    return "numeric", f"numbers, {distinct} distinct"


def _role(name: str, values: pd.Series, times: Ints, kind: Type) -> tuple[Role, str]:
    form = _form(values)
    if form == "postcodes" and suggests(name, "direct"):
        form = ""  # numbers of customers have the form of some country's postcodes
    few = int(times.sum()) >= _MANY and values.nunique() <= _FEW  # whether there is a telephone, say
    if form in _NAMING or (suggests(name, "direct") and form not in _KNOWN and not few):
        why = f"its cells are {form}" if form in _NAMING else "its name suggests that it points at one person"
        return "identifier", f"identifier: {why}; it never leaves"
    if form in _KNOWN:
        return "quasi", f"quasi-identifier: its cells are {form}, which others may know about a person"
    by_name = _by_name(name)
    if by_name is not None and (kind == "numeric" or _number_words(values)):
        return by_name
    there = values.notna().to_numpy()
    # Hardly two amounts are alike, and they name nobody; numbers of loans and bills do.
    money = kind == "numeric" and suggests(name, "money") and not suggests(name, "numbered")
    why_one = "" if money else _points_at_one(values[there], times[there], kind, named=by_name is not None)
    if why_one:
        return "identifier", f"identifier: {why_one}; if that is not so, change the role"
    if suggests(name, "remarks") and kind == "categorical" and not few:
        return "identifier", "identifier: its name suggests free text, which may name people or tell about them"
    if by_name is not None:
        return by_name
    return (
        "attribute",
        "attribute: neither its name (in English, German, French, Spanish, Dutch) nor its cells suggest that outsiders "
        "know it, so judge for yourself",
    )


def _form(values: pd.Series) -> str:
    """What the cells are: by their form, or because the column is one of times."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return "dates"
    if not (isinstance(values.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(values.dtype)):
        return ""
    return form_of(values)


def _by_name(name: str) -> tuple[Role, str] | None:
    if suggests(name, "quasi"):
        return "quasi", "quasi-identifier: its name suggests something that others may know about a person"
    if suggests(name, "sensitive"):
        return "sensitive", "sensitive: its name suggests something that people would not want known"
    return None


def _actionable(name: str, kind: Type, role: Role) -> tuple[Actionable, str]:
    """Whether an explanation may ask for a change; a column of which nothing is said may change any way."""
    if role in ("identifier", "target"):
        return "any", ""
    if suggests(name, "fixed"):
        return "no", "actionable no: nobody can be asked to change it, by its name; explanations leave it as it is"
    if suggests(name, "family"):
        return "no", 'actionable no: nobody should be told how to live, by its name; "any" if that may be asked'
    if suggests(name, "past"):
        return "no", 'actionable no: nobody can undo what is past, by its name; "up" or "down" if time mends it'
    if not suggests(name, "older"):
        return "any", ""
    if kind == "categorical":
        return "no", "actionable no: nobody gets younger, by its name, and without an order there is no way up"
    return "up", 'actionable up: nobody gets younger, by its name; "no" if nobody should be told to wait'


def _points_at_one(filled: pd.Series, times: Ints, kind: Type, *, named: bool) -> str:
    """Why the filled cells point at single people, or nothing; a telling name asks for more."""
    distinct, cells = filled.nunique(), int(times.sum())
    share = distinct / max(cells, 1)
    if isinstance(filled.dtype, pd.CategoricalDtype):
        filled = filled.astype(object)
    is_text = kind == "categorical" and pd.api.types.is_string_dtype(filled)
    if is_text and share > (0.5 if named else 0.1) and _long(filled, times):
        return f"free text ({distinct} different long texts), which may name people or tell about them"
    if share > 0.95 and cells >= (_SOME if kind == "numeric" else 5) and _whole(filled, kind):
        return f"{share:.0%} of its filled cells are different, so that most belong to one person only"
    if is_text and distinct >= _SOME and share > 0.5 and not named:
        return f"{share:.0%} of its filled cells are different texts, too many for labels"
    if is_text and not named and distinct >= _SOME and share >= _EACH and are_numbered(map(str, filled.unique())):
        return f"{distinct} codes of one kind, as customers or patients have, each in {1 / share:.1f} rows on average"
    return ""


def _long(filled: pd.Series, times: Ints) -> bool:
    """Whether the typical cell is a sentence, and there are more of them than a list of labels has."""
    if filled.nunique() < (_SOME if int(times.sum()) > 2 * _SOME else 5):
        return False
    words, letters = filled.str.count(r"\S+"), filled.str.len()
    return _median(words, times) >= _WORDS or _median(letters, times) >= _LETTERS


def _median(numbers: pd.Series, times: Ints) -> float:
    """The median of numbers that are there so often; of an even number of them, the middle of two."""
    values = numbers.to_numpy(dtype=float)
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(times[order])
    middle = np.searchsorted(upto, [(upto[-1] - 1) // 2, upto[-1] // 2], side="right")
    return float(values[order][middle].mean())


def _whole(filled: pd.Series, kind: Type) -> bool:
    if kind != "numeric":
        return True
    numbers = filled.to_numpy(dtype=float)
    return bool(np.isfinite(numbers).all() and (numbers % 1 == 0).all())


def _number_words(values: pd.Series) -> str:
    """What keeps texts that look like numbers from being read as numbers, or nothing."""
    texts = {v.strip() for v in values.dropna().unique() if isinstance(v, str)}
    marks = {t for t in texts if t.casefold() in _MARKS}
    numbers = texts - marks
    if not texts or not all(_NUMBER.fullmatch(t) for t in numbers):
        return ""
    if not numbers:
        return "it holds nothing but marks for missing values (such as NA): leave such cells empty"
    if all(t.isdecimal() for t in numbers) and any(_PADDED.fullmatch(t) for t in numbers):
        return 'digits with leading zeros, kept as codes; if they count something: type = "numeric"'
    blank = "marks for missing values (such as NA): leave those cells empty"
    plain = all(re.fullmatch(r"[+-]?\d+(\.\d+)?", t) for t in numbers)
    spelt = (
        "thousands separators, decimal commas or units: write 1234.5, or say how they are written as you read them "
        "(--decimal, --thousands)"
    )
    found = " and ".join(filter(None, [blank if marks else "", "" if plain else spelt]))
    return f"they look like numbers{f' with {found}' if found else ''}, to have them read as numbers"


def _domain(values: pd.Series, kind: Type) -> tuple[tuple[object, ...] | None, str]:
    caution = "from this file, so not public knowledge yet: check it before a differentially private release"
    if not values.notna().any():
        return None, "no domain proposed: every value is missing"
    if kind == "numeric" and np.isinf(values.to_numpy(dtype=float, na_value=np.nan)).any():
        return None, "no domain proposed: it holds infinite values; replace them, or mark them missing"
    if kind == "date":
        first, last = _outward(float(values.min()), float(values.max()), signed=True)
        return _whole_years(int(first), int(last)), f"domain: rounded outward to years, {caution}"
    if kind == "numeric":
        low, high = _outward(float(values.min()), float(values.max()))
        whole = pd.api.types.is_integer_dtype(values)
        return ((int(low), int(high)) if whole else (low, high)), f"domain: rounded outward {caution}"
    if kind == "categorical" and values.nunique() <= _MANY:
        known = sorted(pd.unique(values.dropna()).tolist(), key=lambda v: (type(v).__name__, v))
        return tuple(v.item() if isinstance(v, np.generic) else v for v in known), f"domain: {caution}"
    return None, "no domain proposed: too many values" if kind == "categorical" else ""


def _whole_years(first: int, last: int) -> tuple[int, int]:
    """From the first day of a year to the last of another, so that nothing looks like somebody's date."""
    years = np.array([max(first, FIRST), min(last, LAST)], dtype="datetime64[D]").astype("datetime64[Y]")
    low, high = (years + np.array([0, 1])).astype("datetime64[D]").astype(np.int64)
    return max(int(low), FIRST), min(int(high) - 1, LAST)


def _outward(low: float, high: float, *, signed: bool = False) -> tuple[float, float]:
    """The range widened to round numbers, so that nobody's exact value marks its end."""
    most = sys.float_info.max
    spread = min(high - low or abs(high) or 1.0, most)
    unit = 10.0 ** max(math.floor(math.log10(spread)), sys.float_info.min_10_exp)
    bottom = max((math.ceil(low / unit) - 1) * unit, -most)
    top = min((math.floor(high / unit) + 1) * unit, most)
    if low >= 0 and not signed:  # nobody's value is needed to know that counts start at 0
        bottom = max(bottom, 0.0)
    digits = max(0, -math.floor(math.log10(unit)))
    return round(bottom, digits), round(top, digits)


def _guess_target(columns: Mapping[str, pd.Series]) -> str | None:
    few = [n for n, values in columns.items() if 2 <= values.nunique() <= 20]
    named = [n for n in few if _TARGET.match(n)] or [n for n in few if suggests(n, "target")]
    return named[-1] if named else None
