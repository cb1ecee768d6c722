"""What is publicly known about a table's columns: type, role and domain, declared once."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import pandas as pd

from countervail.core.canonical import canonical_value
from countervail.core.errors import SchemaError, listed, shown
from countervail.core.words.dates import ORDERS, Order, day_number, iso
from countervail.core.words.phrases import Phrases

Type = Literal["numeric", "date", "ordinal", "categorical"]
_DATES = ("date", "datetime", "datetime64")  # what pandas calls such columns
Role = Literal["identifier", "quasi", "sensitive", "attribute", "target"]
Actionable = Literal["no", "up", "down", "any"]
TYPES: tuple[Type, ...] = get_args(Type)
ROLES: tuple[Role, ...] = get_args(Role)
ACTIONABLE: tuple[Actionable, ...] = get_args(Actionable)
_PLACES = 5
_LARGEST = sys.float_info.max
UNASKED: dict[str, Any] = {"actionable": "any", "range": None, "forbidden": (), "step": None, "until": None}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, its role and its public domain (declared, never learnt from the rows).

    Parameters
    ----------
    name : str
    type : {"numeric", "date", "ordinal", "categorical"}
        Dates are kept as whole days since 1970-01-01, and shown as dates.
    role : {"identifier", "quasi", "sensitive", "attribute", "target"}
    domain : tuple, optional
        Numeric: `(low, high)` or `(low, high, grid levels)`; dates likewise. Categorical: the public values.
    levels : tuple, optional
        Ordinal: the public values from lowest to highest.
    unit : str
        "years", or a pattern such as "${}K".
    phrases : Phrases
        Words for explanations, e.g. `Phrases(more="{} year|years older")`.
    read : bool
        Whether domain or levels were read off the rows and nobody has confirmed them: they are then not public.
    inferred : bool
        Whether the type was read off the rows: one row can make numbers labels.
    actionable : {"no", "up", "down", "any"}
        Whether an explanation may ask a person to change it, and which way.
    range : tuple, optional
        The values that an explanation may ask for: `(low, high)` of a numeric column, a list of values otherwise.
    forbidden : tuple
        Steps that an explanation may not ask for, as `(from, to)` pairs; "*" is every other value.
    cuts : tuple, optional
        Numeric, with a domain: the values that private protectors tell apart, rising, such as round amounts that grow
        farther apart; all others go to the nearest. Public like the domain.
    order : {"", "ymd", "dmy", "mdy"}
        Of a date: the order in which texts say day, month and year; by default as the texts themselves tell.
    step : number, optional
        Numeric: what is worth asking for. Round amounts are multiples of it, and at least half of it away.
    until : number, optional
        Numeric, with `actionable` up or down: no answer leads beyond it. Whoever is there already keeps her value.
    """

    name: str
    type: Type = "categorical"
    role: Role = "attribute"
    domain: tuple[Any, ...] | None = None
    levels: tuple[Any, ...] | None = None
    unit: str = ""
    phrases: Phrases = field(default=Phrases())
    read: bool = field(default=False, compare=False, repr=False)
    inferred: bool = field(default=False, compare=False, repr=False)
    actionable: Actionable = "any"
    range: tuple[Any, ...] | None = None
    forbidden: tuple[tuple[Any, Any], ...] = ()
    cuts: tuple[Any, ...] | None = None
    order: Order = ""
    step: float | None = None
    until: float | None = None

    def __repr__(self) -> str:
        said = [f for f in fields(self)[3:] if f.repr and f.name != "phrases" and getattr(self, f.name) != f.default]
        more = "".join(f", {f.name}={getattr(self, f.name)!r}" for f in said)
        return f"Column({self.name!r}, {self.type!r}, {self.role!r}{more})"

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise SchemaError(
                f"The type of column '{self.name}' must be one of {TYPES}. Got {shown(self.type)} instead."
            )
        if self.role not in ROLES:
            raise SchemaError(
                f"The role of column '{self.name}' must be one of {ROLES}. Got {shown(self.role)} instead."
            )
        for label in ("domain", "levels", "range", "cuts"):
            object.__setattr__(self, label, _plain_values(self.name, label, getattr(self, label)))
        if self.type == "ordinal" and self.levels is None and self.domain is not None:
            object.__setattr__(self, "levels", self.domain)
            object.__setattr__(self, "domain", None)
        if self.order not in ORDERS or (self.order and self.type != "date"):
            raise SchemaError(f"The order of column '{self.name}' must be one of {ORDERS[1:]}, and the column a date.")
        if self.type == "date":
            self._read_days()
        if self.numeric:
            self._check_range()
        for label, values in (("domain", self.domain), ("levels", self.levels)):
            if values is None or self.numeric:
                continue
            _check_labels(f"The {label} of column '{self.name}'", values)
            if len(set(values)) != len(values):
                raise SchemaError(f"The {label} of column '{self.name}' must not repeat a value.")
        if self.levels is not None and self.type != "ordinal":
            raise SchemaError(f"Column '{self.name}' has levels but is {self.type}: only ordinal columns have levels.")
        self._check_actionable()
        self._check_cuts()

    def _check_cuts(self) -> None:
        c, d = self.cuts, self.domain
        if c is None:
            return
        if self.type != "numeric" or d is None:
            raise SchemaError(f"Column '{self.name}' has cuts: these belong to numeric columns with a domain.")
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in c)
        rising = numbers and len(c) >= 1 and all(a < b for a, b in pairwise(c))
        if not rising or not d[0] <= c[0] <= c[-1] <= d[1]:
            raise SchemaError(f"The cuts of column '{self.name}' must be rising numbers within its domain.")

    def _read_days(self) -> None:
        """Declared dates as days."""
        for label in ("domain", "range"):
            given = getattr(self, label)
            days = None if given is None else tuple(map(day_number, given))
            if days is not None and None in days:
                raise SchemaError(f"The {label} of date column '{self.name}' must hold dates such as \"1984-05-31\".")
            object.__setattr__(self, label, days)

    def _check_range(self) -> None:
        d = self.domain
        if d is None:
            return
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) <= _LARGEST for v in d)
        ordered = numbers and len(d) in (2, 3) and d[0] <= d[1]
        if not ordered or (len(d) == 3 and (d[2] < 1 or not float(d[2]).is_integer())):
            raise SchemaError(
                f"The domain of numeric column '{self.name}' must be (low, high) or (low, high, grid levels) "
                f"with low <= high and at least one level."
            )

    def _check_actionable(self) -> None:
        who = f"The {{}} of column '{self.name}' must"
        if self.actionable not in ACTIONABLE:
            raise SchemaError(
                f"{who.format('actionable')} be one of {ACTIONABLE}. Got {shown(self.actionable)} instead."
            )
        if self.actionable in ("up", "down") and self.type == "categorical":
            raise SchemaError(f"{who.format('actionable')} be 'no' or 'any': a categorical column has no order.")
        self._check_forbidden()
        for label in ("step", "until"):
            self._check_amount(label, getattr(self, label))
        if self.until is not None and self.actionable not in ("up", "down"):
            raise SchemaError(f"{who.format('until')} go with actionable 'up' or 'down': it is the end of that way.")
        r = self.range
        if r is None:
            return
        if self.numeric:
            numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) <= _LARGEST for v in r)
            if not numbers or len(r) != 2 or not r[0] <= r[1]:
                raise SchemaError(f"{who.format('range')} be [low, high], two numbers with low <= high.")
            return
        _check_labels(f"The range of column '{self.name}'", r)
        if not r or not (self.read or self.values is None or set(r) <= set(self.values)):
            raise SchemaError(f"{who.format('range')} be a list of its declared values, at least one.")

    def _check_amount(self, label: str, value: Any) -> None:
        if value is None:
            return
        if self.type != "numeric":
            raise SchemaError(f"Column '{self.name}' has '{label}': it belongs to numeric columns.")
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST
        if not number or (label == "step" and value <= 0):
            must = "a number above 0" if label == "step" else "a finite number"
            raise SchemaError(f"The {label} of column '{self.name}' must be {must}.")

    def _check_forbidden(self) -> None:
        who = f"The forbidden steps of column '{self.name}' must be"
        if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in self.forbidden):
            raise SchemaError(f"{who} a list of [from, to] pairs.")
        steps = tuple(tuple(_plain_values(self.name, "forbidden", pair) or ()) for pair in self.forbidden)
        ends = tuple(v for pair in steps for v in pair if v != "*")
        if self.numeric:
            if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in ends):
                raise SchemaError(f"{who} made of numbers, or '*' for all others.")
        elif not (self.read or self.values is None or set(ends) <= {None, *self.values}):
            raise SchemaError(f"{who} made of its declared values, or '*' for all others.")
        if any(start == end for start, end in steps):
            raise SchemaError(f"{who} from one value to another.")
        _check_labels(f"The forbidden steps of column '{self.name}'", ends)
        object.__setattr__(self, "forbidden", steps)

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers with distances: amounts, or dates as days."""
        return self.type in ("numeric", "date")

    @property
    def public(self) -> tuple[Any, ...] | None:
        """The domain or levels as declared; None where there are none, or where they came from the rows."""
        return None if self.read else self.levels if self.type == "ordinal" else self.domain

    @property
    def values(self) -> tuple[Any, ...] | None:
        """Values of an ordinal or categorical column: declared, or an ordinal column's levels as its dtype has them."""
        return self.levels if self.type == "ordinal" else self.domain if self.type == "categorical" else None


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, its target and the favourable decisions.

    Examples
    --------
    >>> s = Schema((Column("age", "numeric", "quasi"), Column("ok", role="target")), favourable=("yes",))
    >>> s.names("quasi"), s.target, s.features
    (['age'], 'ok', ['age'])
    """

    columns: tuple[Column, ...]
    favourable: tuple[Any, ...] = ()
    _by_name: Mapping[Any, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_labels("The schema's 'favourable'", self.favourable)
        object.__setattr__(self, "_by_name", {c.name: c for c in self.columns})
        if len(self._by_name) < len(self.columns):
            times = Counter(c.name for c in self.columns)
            twice = sorted(n for n, count in times.items() if count > 1)
            raise SchemaError(f"Column names must be unique. Repeated: {listed(twice)}. Rename them.")
        if len(self.names("target")) > 1:
            raise SchemaError(f"At most one column can be the target. Got {self.names('target')}.")

    def __repr__(self) -> str:
        lines = "".join(f"\n  {c!r}," for c in self.columns)
        return f"Schema({lines}\n  favourable={self.favourable!r})"

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, Hashable) and name in self._by_name

    def __getitem__(self, name: str) -> Column:
        if name not in self:
            raise SchemaError(f"No column named {shown(name)} in the schema. Columns: {listed(self.names())}.")
        return self._by_name[name]

    def names(self, *roles: Role) -> list[str]:
        """Names of the columns with one of these roles; all of them when none is given."""
        return [c.name for c in self.columns if not roles or c.role in roles]

    def dates(self, columns: Iterable[Any]) -> list[str]:
        """Which of these columns hold dates."""
        return [str(n) for n in columns if n in self and self[str(n)].type == "date"]

    def undeclared(self, columns: Iterable[Any]) -> str:
        """Which of a file's columns are not declared, in words: without a header, the "names" are somebody's values."""
        names = list(columns)
        extra = {i: n for i, n in enumerate(names, 1) if n not in self}
        if 2 * (len(names) - len(extra)) >= len(self):
            return f"{listed(list(extra.values()))}"
        places = ", ".join(map(str, list(extra)[:_PLACES])) + (", ..." if len(extra) > _PLACES else "")
        return f"{len(extra)} of {len(names)} (number {places}). Does the file begin with a line of column names?"

    @property
    def target(self) -> str | None:
        """Name of the target column, if there is one."""
        return next(iter(self.names("target")), None)

    @property
    def features(self) -> list[str]:
        """Names of the columns a model sees, in order."""
        return self.names("quasi", "sensitive", "attribute")

    def require_quasi(self, owner: str) -> None:
        """A table that is to be protected says what others may know about people."""
        if not self.names("quasi"):
            raise SchemaError(
                f"{owner} protects quasi-identifiers, but the table declares none. "
                f"Pass quasi_identifiers=[...] to Table.from_frame, or give columns the role 'quasi' in the schema."
            )

    def without_identifiers(self) -> Self:
        """What may be said of the table outside: identifiers are not even named."""
        left = tuple(c for c in self.columns if c.role != "identifier")
        return self if len(left) == len(self.columns) else replace(self, columns=left)

    def declared(self) -> Self:
        """The schema without what was read off the rows; the types of quasi-identifiers are known outside."""
        plain = (replace(c, domain=None, levels=None, cuts=None, read=False) if c.read else c for c in self.columns)
        open_ = (_retyped(c, "categorical") if c.inferred and c.role != "quasi" else c for c in plain)
        return replace(self, columns=tuple(open_))

    def typed_by(self, frame: pd.DataFrame) -> Self:
        """The schema where types that were read off all rows are those of these."""
        columns = (
            _retyped(c, infer_type(frame[c.name])) if c.inferred and c.type != "ordinal" and c.name in frame else c
            for c in self.columns
        )
        return replace(self, columns=tuple(columns))

    def kept_for(self, frame: Any) -> Self:
        """The schema as it may stay with these rows of the table.

        Domains read off all rows are left out, and levels that none of these rows has: they may be those of people who
        are not among them. Quasi-identifiers keep theirs, which are known outside.
        """
        columns = []
        for c in self.columns:
            if c.read and c.role != "quasi":
                there = set(frame[c.name].dropna().map(canonical_value)) if c.name in frame else set()
                held = tuple(v for v in map(canonical_value, c.levels or ()) if v in there)
                c = replace(c, domain=None, levels=held or None, cuts=None)
            columns.append(c)
        return replace(self, columns=tuple(columns))

    def beside(self, frame: Any) -> Self:
        """What may be said of the table beside these rows of it: identifiers are not even named."""
        return self.kept_for(frame).without_identifiers()

    def without_actions(self) -> Self:
        """The schema where anything may be asked of people, any way."""
        free = (replace(c, **UNASKED) for c in self.columns)
        return replace(self, columns=tuple(free))

    def with_inferred(self, names: Iterable[str]) -> Self:
        """The same schema where the types of these columns were read off rows."""
        marked = set(names)
        return replace(self, columns=tuple(replace(c, inferred=c.name in marked) for c in self.columns))

    def with_column(self, name: str, **changes: Any) -> Self:
        """The same schema with fields of one column changed."""
        old = self[name]
        if changes.get("type", old.type) != old.type:
            changes = {"domain": None, "levels": None, "cuts": None, **_without_order(old), **changes}
        elif "domain" in changes and "cuts" not in changes:
            changes = {"cuts": None, **changes}
        if "levels" in changes or "domain" in changes:
            changes = {"read": False, "inferred": False, **changes}
        if "type" in changes:
            changes = {"inferred": False, **changes}
        return replace(self, columns=tuple(replace(c, **changes) if c is old else c for c in self.columns))

    def with_roles(self, **roles: Iterable[str]) -> Self:
        """The same schema where exactly the named columns hold each given role, e.g. `quasi=["age"]`."""
        wanted: dict[str, Role] = {}
        for role, names in roles.items():
            if role not in ROLES:
                raise SchemaError(f"A role must be one of {ROLES}. Got {role!r} instead.")
            for name in names:
                if self[name].name in wanted:
                    raise SchemaError(f"Column {name!r} was given two roles; each column has one.")
                wanted[name] = role
        given = set(roles)
        columns = tuple(
            replace(c, role=wanted.get(c.name, "attribute" if c.role in given else c.role)) for c in self.columns
        )
        # What was read off an identifier would be people's names.
        named = (c.role == "identifier" and c.read and not c.numeric for c in columns)
        return replace(
            self,
            columns=tuple(replace(c, levels=None, domain=None, read=False) if n else c for c, n in zip(columns, named)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain JSON data."""
        columns: dict[str, Any] = {}
        for c in self.columns:
            entry: dict[str, Any] = {"type": c.type, "role": c.role}
            if c.order:
                entry["order"] = c.order
            if c.actionable != "any":
                entry["actionable"] = c.actionable
            if c.range is not None:
                entry["range"] = _written(c, c.range)
            if c.forbidden:
                entry["forbidden"] = [list(pair) for pair in c.forbidden]
            if c.domain is not None:
                entry["domain"] = _written(c, c.domain)
            if c.levels is not None:
                entry["levels"] = list(c.levels)
            for label in ("step", "until"):
                if getattr(c, label) is not None:
                    entry[label] = getattr(c, label)
            if c.cuts is not None:
                entry["cuts"] = list(c.cuts)
            if c.read:
                entry["read"] = True
            if c.unit:
                entry["unit"] = c.unit
            columns[c.name] = {**entry, **c.phrases.to_dict()}
        return {"version": 1, "favourable": list(self.favourable), "columns": columns}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`."""
        if data.get("version") != 1:
            raise SchemaError(f"The schema's version must be 1. Got {shown(data.get('version'))} instead.")
        if unknown := sorted(set(data) - {"version", "favourable", "columns"}):
            raise SchemaError(f"Unknown keys in the schema: {unknown}. Known: version, favourable, columns.")
        favourable = data.get("favourable", [])
        entries = data.get("columns", {})
        if not isinstance(entries, Mapping):
            raise SchemaError("The schema's 'columns' must be a table: one [columns.NAME] entry per column.")
        columns = tuple(_column(str(name), entry) for name, entry in entries.items())
        return cls(columns, tuple(favourable) if isinstance(favourable, (list, tuple)) else (favourable,))

    def digest(self) -> str:
        """A short hash that changes when anything declared changes."""
        text = json.dumps(self.to_dict(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _written(column: Column, values: Iterable[Any]) -> list[Any]:
    """Declared values as a file holds them: dates by their names; a third number is a count of grid levels."""
    if column.type != "date":
        return list(values)
    return [iso(v) if i < 2 else v for i, v in enumerate(values)]


def infer_type(values: pd.Series) -> Type:
    """The type that a column's dtype speaks for."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "ordinal" if values.dtype.ordered else "categorical"
    numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return "numeric" if numbers else "categorical"


def holds_dates(values: pd.Series) -> bool:
    """Whether a column holds dates or times, as dtypes or as Python's objects."""
    return pd.api.types.infer_dtype(values, skipna=True) in _DATES


def _retyped(column: Column, new: Type) -> Column:
    return column if new == column.type else replace(column, type=new, **_without_order(column))


def _without_order(column: Column) -> dict[str, Any]:
    """What is left of how a column may change when its values are no longer what they were."""
    return {
        "range": None,
        "forbidden": (),
        "cuts": None,
        "order": "",
        "step": None,
        "until": None,
        "actionable": "no" if column.actionable == "no" else "any",
    }


def _plain_values(name: str, label: str, values: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """Declared values as a tuple of plain Python ones (numpy's would be hashed and written differently)."""
    if values is None:
        return None
    plain = tuple(v.item() if hasattr(v, "item") else v for v in values)
    if not all(isinstance(v, Hashable) for v in plain):
        raise SchemaError(f"The {label} of column '{name}' must hold plain values, not lists or tables.")
    return plain


def _check_labels(what: str, values: tuple[Any, ...]) -> None:
    """Labels that can be told apart, counted and written: no lists, no numbers that are none or too large."""
    for v in values:
        if not isinstance(v, Hashable):
            raise SchemaError(f"{what} must hold plain values, not lists or tables.")
        if isinstance(v, float) and not math.isfinite(v):
            raise SchemaError(f"{what} must hold finite numbers. Leave nan and inf out: missing needs no declaration.")
        if isinstance(v, int) and not -(2**63) <= v < 2**64:
            raise SchemaError(f"{what} must hold numbers of at most 64 bits. Declare larger ones as text.")


def _column(name: str, entry: Any) -> Column:
    known = {
        "type",
        "role",
        "actionable",
        "range",
        "forbidden",
        "domain",
        "levels",
        "cuts",
        "order",
        "step",
        "until",
        "read",
        "unit",
        "phrases",
        "labels",
        "languages",
    }
    if not isinstance(entry, Mapping):
        raise SchemaError(f"The entry of column '{name}' must be a table with {sorted(known)}.")
    if unknown := sorted(set(entry) - known):
        raise SchemaError(f"Unknown keys for column '{name}': {unknown}. Known: {sorted(known)}.")
    for key in ("domain", "levels", "range", "forbidden", "cuts"):
        if entry.get(key) is not None and not isinstance(entry[key], (list, tuple)):
            raise SchemaError(f"The {key} of column '{name}' must be a list. Got a single value instead.")
    if not isinstance(entry.get("read", False), bool):
        raise SchemaError(f"The 'read' of column '{name}' must be true or false.")
    if not isinstance(entry.get("unit", ""), str):
        raise SchemaError(f"The unit of column '{name}' must be text.")
    return Column(
        name,
        entry.get("type", "categorical"),
        entry.get("role", "attribute"),
        tuple(entry["domain"]) if entry.get("domain") is not None else None,
        tuple(entry["levels"]) if entry.get("levels") is not None else None,
        entry.get("unit", ""),
        Phrases.from_dict(name, entry),
        entry.get("read", False),
        actionable=entry.get("actionable", "any"),
        range=tuple(entry["range"]) if entry.get("range") is not None else None,
        forbidden=tuple(entry.get("forbidden") or ()),
        cuts=tuple(entry["cuts"]) if entry.get("cuts") is not None else None,
        order=entry.get("order", ""),
        step=entry.get("step"),
        until=entry.get("until"),
    )
