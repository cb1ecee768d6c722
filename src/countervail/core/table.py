"""Table: a frame together with what is publicly known about its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.conform import conform_column, plain
from countervail.core.errors import SchemaError, bad_parameter, listed, shown
from countervail.core.files.csv_text import PLAIN, Reading
from countervail.core.files.frames import read_frame
from countervail.core.files.schema_file import read_schema
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Column, Role, Schema, Type, holds_dates, infer_type
from countervail.core.words.dates import iso_column

_FEW = 10
Rows = Any  # a Table, a frame of pandas, polars or pyarrow, one Series, or a mapping of column to value


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Table:
    """Rows and their schema. The rows are copied, checked against the schema, and never shown in a repr.

    Examples
    --------
    >>> import pandas as pd, countervail as cv
    >>> df = pd.DataFrame({"age": [30, 41], "city": ["Ghent", "Bruges"], "ok": ["no", "yes"]})
    >>> t = cv.Table.from_frame(df, target="ok", favourable="yes", quasi_identifiers=["age", "city"])
    >>> t
    Table(2 rows; quasi: age, city; target: ok)
    """

    frame: pd.DataFrame
    schema: Schema

    def __post_init__(self) -> None:
        frame, schema = _conform(self.frame, self.schema)
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "schema", schema)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        target: str | None = None,
        favourable: Any = None,
        identifiers: Sequence[str] = (),
        quasi_identifiers: Sequence[str] = (),
        sensitive: Sequence[str] = (),
        domains: Mapping[str, Any] | None = None,
        schema: Schema | str | Path | None = None,
    ) -> Self:
        """Take a frame (pandas, polars, pyarrow); types follow its dtypes unless a schema says otherwise.

        Parameters
        ----------
        df : DataFrame
        target : str, optional
            The column a model predicts.
        favourable : label or collection of labels, optional
            The decisions people hope for.
        identifiers, quasi_identifiers, sensitive : sequence of str
            Roles; the other columns are plain attributes. Quasi-identifiers that hold dates are of the type `date`:
            models get them as days since 1970-01-01, releases show ranges of dates.
        domains : mapping, optional
            Public domains: `(low, high)` or `(low, high, grid levels)` for numbers, a list of values otherwise.
        schema : Schema or path, optional
            Types, roles and domains declared elsewhere; roles given here override it.
        """
        frame = to_pandas(df)
        known = declared_schema(
            frame,
            schema,
            target=target,
            favourable=favourable,
            identifiers=identifiers,
            quasi_identifiers=quasi_identifiers,
            sensitive=sensitive,
            domains=domains,
        )
        return cls(frame, known)

    @classmethod
    def read(
        cls, path: str | Path, schema: Schema | str | Path | None = None, *, reading: Reading = PLAIN, **roles: Any
    ) -> Self:
        """Read a .csv, .csv.gz, .parquet or .xlsx file, or a folder of Parquet files; an empty field is missing."""
        known = _read(schema) if schema is not None else None
        return cls.from_frame(read_frame(path, known, reading=reading), schema=known, **roles)

    @staticmethod
    def scan(
        sources: Any,
        schema: Schema | str | Path | None = None,
        *,
        engine: str = "memory",
        memory: int | str = "2 GB",
        threads: int | None = None,
        session: Any = None,
        master: str | None = None,
        **roles: Any,
    ) -> Any:
        """Look at a table of any size where it is: a Scan, whose rows are counted by an engine and never held here.

        Parameters
        ----------
        sources : path, pattern, folder, URL, or several
            Parquet files with the same columns.
        schema : Schema or path, optional
            As of :meth:`from_frame`, whose other parameters this takes too.
        engine : str
            Who counts: "memory" (this process), "duckdb" (files larger than memory; the extra `scale`).
        memory : int or str
            What the engine and the distinct rows that come out of it may take together.
        threads : int, optional
            How many the engine may use.
        session, master : optional
            Of the engine "spark": a session of Spark 4 (classic or Connect), or the address of a master.
        """
        from importlib import import_module  # engines stand above this room, which must not know them

        return import_module("countervail.engine").scan(
            sources,
            schema,
            engine=engine,
            memory=memory,
            threads=threads,
            session=session,
            master=master,
            **roles,
        )

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        roles: tuple[Role, ...] = ("identifier", "quasi", "sensitive", "target")
        held = [f"{role}: {', '.join(self.schema.names(role))}" for role in roles if self.schema.names(role)]
        return f"Table({'; '.join([f'{len(self):,} rows', *held])})"

    @property
    def features(self) -> pd.DataFrame:
        """The columns a model sees, in order."""
        return self.frame[self.schema.features]

    @property
    def target(self) -> pd.Series:
        """The target column."""
        if self.schema.target is None:
            raise SchemaError("This table has no target column. Declare one with target='...' or in the schema.")
        column: pd.Series = self.frame[self.schema.target]
        return column

    def select(self, *roles: Role) -> pd.DataFrame:
        """The columns with one of these roles."""
        return self.frame[self.schema.names(*roles)]

    def take(self, rows: Any) -> Self:
        """The table with only these row positions (or this boolean mask), renumbered."""
        picked = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows, dtype=np.intp)
        if not len(picked):
            raise bad_parameter("Table.take", "rows", "at least one row", "none")
        return self.with_frame(self.frame.iloc[picked].reset_index(drop=True), self.schema)

    def with_frame(self, frame: pd.DataFrame, schema: Schema) -> Self:
        """Rows of this table in another form, unchecked: a part of them may lack a favourable label."""
        part = object.__new__(type(self))
        object.__setattr__(part, "frame", frame)
        object.__setattr__(part, "schema", schema)
        return part

    def with_roles(self, **roles: Iterable[str]) -> Self:
        """The table where exactly the named columns hold each given role, e.g. `quasi=["age"]`."""
        return replace(self, schema=self.schema.with_roles(**roles))

    def with_types(self, **types: Type | Sequence[Any]) -> Self:
        """The table with some columns typed anew; a list of levels makes a column ordinal, dates become their texts."""
        schema, frame = self.schema, self.frame
        for name, kind in types.items():
            if schema[name].type == "date" and kind != "date":
                frame = frame.assign(**{name: iso_column(frame[name])})
            change = {"type": kind} if isinstance(kind, str) else {"type": "ordinal", "levels": tuple(kind)}
            schema = schema.with_column(name, **change)
        return replace(self, frame=frame, schema=schema)

    def split(self, *, test_size: float | int = 0.25, random_state: RandomState = None) -> tuple[Self, Self]:
        """Train and test tables, drawn at random (the same rows as scikit-learn's `train_test_split`).

        Where identifiers say that some people have several rows, people are drawn: nobody is in both tables.
        """
        from sklearn.model_selection import train_test_split

        from countervail.core.people import people_of, person_columns

        if len(self) < 2:
            raise bad_parameter("Table.split", "table", "at least two rows long", f"{len(self)} rows")
        who = people_of(self.frame, person_columns(self))
        people = int(who.max()) + 1
        if people < 2:
            raise bad_parameter("Table.split", "table", "about at least two people", "one, by its identifiers")
        # Without a seed the split comes from the system's entropy, through our one door.
        seed = random_state
        if seed is None or isinstance(seed, np.random.Generator):
            seed = int(generator(seed).integers(2**32))
        if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
            must = "a whole number from 0 to 2**32 - 1, a numpy Generator, or None"
            raise bad_parameter("Table.split", "random_state", must, random_state)
        try:
            train, test = train_test_split(np.arange(people), test_size=test_size, random_state=seed)
        except ValueError:
            what = "rows" if people == len(self) else "people"
            must = f"a share or count that splits {people} {what}"
            raise bad_parameter("Table.split", "test_size", must, test_size) from None
        if people == len(self):
            return self.take(train), self.take(test)
        return self.take(np.flatnonzero(np.isin(who, train))), self.take(np.flatnonzero(np.isin(who, test)))


def declared_schema(
    frame: pd.DataFrame,
    schema: Schema | str | Path | None,
    *,
    target: str | None = None,
    favourable: Any = None,
    identifiers: Sequence[str] = (),
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    domains: Mapping[str, Any] | None = None,
    owner: str = "Table.from_frame",
) -> Schema:
    """What is said of the columns of a frame, in a schema and beside it; types that nobody says follow the dtypes."""
    known = _read(schema) if schema is not None else _infer(frame)
    roles: dict[str, Iterable[str]] = {
        "identifier": _names(identifiers, "identifiers", owner),
        "quasi": _names(quasi_identifiers, "quasi_identifiers", owner),
        "sensitive": _names(sensitive, "sensitive", owner),
        "target": [target] if target is not None else [],
    }
    given = [("target", roles["target"]), ("identifiers", identifiers), ("quasi_identifiers", quasi_identifiers)]
    given = [*given, ("sensitive", sensitive), ("domains", domains or {})]
    for parameter, names in given:
        if unknown := [n for n in names if n not in known]:
            said = [n in known for _, each in given for n in each]
            # Where hardly anything fits, the first line of a file may have been somebody's row.
            named = schema is not None or 2 * sum(said) >= len(said)
            hint = f"The columns are {listed(known.names())}." if named else f"The data has {len(known)} columns."
            raise bad_parameter(owner, parameter, "about columns of the data", unknown, hint)
    known = known.with_roles(**{role: names for role, names in roles.items() if names})
    if schema is None:  # classes of people are ranges of dates, never lists of them
        for name in (n for n in roles["quasi"] if known[n].type == "categorical" and holds_dates(frame[n])):
            known = known.with_column(name, type="date")
    for name, domain in (domains or {}).items():
        known = known.with_column(name, **_domain(known[name], domain, owner))
    return known if favourable is None else replace(known, favourable=_labels(favourable))


def to_pandas(df: Any, owner: str = "Table", parameter: str = "df") -> pd.DataFrame:
    """Any frame as a pandas one, without copying when it is pandas already."""
    if isinstance(df, pd.DataFrame):
        return df
    if isinstance(df, Table):
        return df.frame
    if isinstance(df, pd.Series):
        return df.to_frame().T.infer_objects()
    if isinstance(df, Mapping) and not any(isinstance(v, (list, tuple, np.ndarray, pd.Series)) for v in df.values()):
        return pd.DataFrame([dict(df)])
    import narwhals as nw

    try:
        given = nw.from_native(df, eager_only=True)
    except TypeError:
        must = "a DataFrame (pandas, polars or pyarrow), a Table, or one row as Series or mapping"
        raise bad_parameter(owner, parameter, must, type(df).__name__) from None
    frame = pd.DataFrame(given.to_pandas())
    # Whole numbers with missing values would come as fractions.
    holes = [n for n, kind in given.schema.items() if kind.is_integer() and frame[n].dtype == float]
    return frame.assign(**{n: pd.array(given[n].to_list(), dtype="Int64") for n in holes})


def to_labels(y: Any) -> Any:
    """Labels of any frame library as something pandas reads; what it reads already is left as it is."""
    if isinstance(y, (pd.Series, np.ndarray, list, tuple)) or y is None:
        return y
    import narwhals as nw

    given = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(given, nw.Series):
        return pd.Series(given.to_list(), name=given.name or None)
    return y.to_pylist() if hasattr(y, "to_pylist") else y  # an array of pyarrow outside a table


def _conform(frame: pd.DataFrame, schema: Schema) -> tuple[pd.DataFrame, Schema]:
    if not isinstance(frame, pd.DataFrame):
        frame = to_pandas(frame)
    twice = sorted({str(c) for c in frame.columns[frame.columns.duplicated()]})
    if twice:
        known = [n for n in twice if n in schema]
        which = listed(known) if known else f"{len(twice)} that the schema does not declare"
        raise SchemaError(f"Column names must be unique. Repeated in the data: {which}. Rename them.")
    names = [c.name for c in schema]
    if missing := [n for n in names if n not in frame.columns]:
        raise SchemaError(
            f"The data lacks columns that the schema names: {listed(missing)}. "
            f"Columns that the schema does not declare: {schema.undeclared(frame.columns)}"
        )
    if any(c not in schema for c in frame.columns):
        extra = schema.undeclared(frame.columns)
        raise SchemaError(f"The schema does not declare these columns of the data: {extra}. Declare or drop them.")
    if frame.empty:
        raise SchemaError("The table is empty: at least one row and one column are needed.")
    columns, data = [], {}
    for column in schema:
        values, column = conform_column(frame[column.name], column)
        columns.append(column)
        data[column.name] = values
    out = pd.DataFrame(data).reset_index(drop=True).copy()
    schema = replace(schema, columns=tuple(columns))
    return out, _match_favourable(out, schema)


def _match_favourable(frame: pd.DataFrame, schema: Schema) -> Schema:
    if not schema.favourable:
        return schema
    if schema.target is None:
        raise SchemaError("Favourable labels are declared but no target column is. Declare the target.")
    counts = frame[schema.target].value_counts()
    declared = schema[schema.target].values or ()
    present = {plain(v): v for v in [*declared, *counts.index[counts > 0]]}
    if unknown := [v for v in schema.favourable if plain(v) not in present]:
        common = {*declared, *counts.index[counts > 1]}  # a label of one row only may be that person's secret
        if len(common) > max(_FEW, len(declared)):  # and very many labels may be names, or sums
            there = f"It has {len(common)} labels that several rows share; declare a domain to have them named"
        else:
            there = f"Labels that are declared or that several rows share: {sorted(map(plain, common))}"
        raise SchemaError(
            f"Favourable label(s) {shown(unknown)} do not occur in the target column '{schema.target}'. {there}."
        )
    labels = [_item(v) for v in dict.fromkeys([*declared, *counts.index[counts > 0]])]
    return replace(schema, favourable=tuple(_meant(v, labels, schema.target) for v in schema.favourable))


def _meant(favourable: Any, labels: list[Any], target: str) -> Any:
    """The label that is meant: the very one, or the only one that is spelt so."""
    exact = [v for v in labels if type(v) is type(favourable) and v == favourable]
    spelt = [v for v in labels if plain(v) == plain(favourable)]
    if not exact and len(spelt) > 1:
        raise SchemaError(f"The target column '{target}' spells a favourable label in several types. Use one type.")
    return (exact or spelt)[0]


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _infer(frame: pd.DataFrame) -> Schema:
    twice = set(frame.columns[frame.columns.duplicated()])  # reported when the frame is checked
    types: list[Type] = ["categorical" if n in twice else infer_type(frame[n]) for n in frame.columns.unique()]
    return Schema(tuple(Column(str(n), t, inferred=True) for n, t in zip(frame.columns.unique(), types)))


def _read(schema: Schema | str | Path) -> Schema:
    return schema if isinstance(schema, Schema) else read_schema(schema)


def _names(names: Sequence[str], parameter: str, owner: str) -> list[str]:
    if isinstance(names, str):
        raise bad_parameter(owner, parameter, "a list of column names", names, f"Write ['{names}'].")
    return list(names)


def _labels(favourable: Any) -> tuple[Any, ...]:
    return tuple(favourable) if isinstance(favourable, (list, tuple, set, frozenset, np.ndarray)) else (favourable,)


def _domain(column: Column, domain: Any, owner: str) -> dict[str, Any]:
    if isinstance(domain, str) or not isinstance(domain, Iterable):
        must = f"a mapping of column to range or list of values; that of '{column.name}' is not"
        raise bad_parameter(owner, "domains", must, type(domain).__name__)
    values = tuple(domain)
    return {"levels": values} if column.type == "ordinal" else {"domain": values}
