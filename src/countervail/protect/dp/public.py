"""All that a private protector knows without looking at the table: domains, the model's decisions, distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints, Matrix, distinct_rows
from countervail.core.canonical import canonical_value
from countervail.core.encode import Encoder, encode_one, encode_queries, require_numbers
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.rng import generator
from countervail.core.schema import Column, Schema
from countervail.core.table import Rows, Table, to_pandas
from countervail.model.decision import Decision, answers_to
from countervail.model.private import PrivateLogistic
from countervail.model.remote import Remote
from countervail.protect.dp.grid import Grid

_BATCH = 1024  # rows of every model call about the table: always as many, whatever the table holds
_MADE_UP = 1 << 14  # rows of every model call about rows that are nobody's
_PROBES = 256
_MIX = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False, slots=True)
class Public:
    """Domains, decisions and distances, computed from the declaration and the model alone.

    `probe` is a made-up table on the grid. Wherever other code asks a table for dtypes, categories, labels or whether
    a model's scores agree with its decisions, it asks this one, so its answers cannot depend on anybody's row.
    """

    grid: Grid
    probe: Table
    decision: Decision
    encoder: Encoder
    identifiers: tuple[str, ...]
    owner: str
    model_promise: DifferentialPrivacy | None = None  # what a model that was trained under one keeps itself
    model_digest: str = ""  # of such a model: a promise about it covers no draw that another one took part in

    @classmethod
    def of(cls, grid: Grid, schema: Schema, model: Any, owner: str) -> Self:
        """From declared domains and a model that is taken as public."""
        probe = _probe(grid, schema, model, owner)
        identifiers = tuple(schema.names("identifier"))
        holes = [a.column.name for a in grid.axes if a.numeric and a.missing]
        if holes and not answers_to(model, probe.features.iloc[:2]):  # the second of them has every missing level
            hint = "Leave them out, and a missing number counts as the middle of its domain."
            raise bad_parameter(owner, "missing", "columns in which the model takes missing numbers", holes, hint)
        own = model.promise if isinstance(model, PrivateLogistic) else None
        named = model.digest if isinstance(model, PrivateLogistic) and own is not None else ""
        public = cls(grid, probe, Decision(model, probe, owner), Encoder.fit(probe), identifiers, owner, own, named)
        public._check_rows_are_judged_alone()
        return public

    def queries(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        """Query rows as a frame and as numbers; what is refused depends on them and the declaration only."""
        known = encode_one(rows, self.probe.schema, self.encoder, self.identifiers)
        if known is not None:
            return self.encoder, self.encoder.decode(known), known
        given = to_pandas(rows, self.owner, "rows")
        given = given.drop(columns=[n for n in self.identifiers if n in given.columns])
        self._check_whole(given)
        holes = [a.column.name for a in self.grid.axes if a.numeric and a.missing]
        schema = self.probe.schema
        found = encode_queries(given, schema, self.encoder, self.owner, holes=bool(holes))
        if holes:
            way = "Impute them first, or name the columns in 'missing'"
            require_numbers(found[1].drop(columns=holes), schema, self.owner, "rows", way)
        return found

    def classes_of(self, codes: Ints) -> Ints:
        """The decision about each coded record, as a function of that record alone.

        Scores can change in their last digits with the size of a batch and with a row's place in it, which other
        records would decide. So batches have one size, and a record's place follows from its content.
        """
        first, inverse = distinct_rows(codes)
        distinct = codes[first]
        place = _places(distinct)
        order = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=_BATCH)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        batch = np.empty(len(distinct), dtype=np.int64)
        batch[order] = np.arange(len(distinct)) - starts[place[order]]
        found = np.empty(len(distinct), dtype=np.int64)
        for b in range(int(counts.max())):
            held = batch == b
            rows = np.tile(self.grid.default, (_BATCH, 1))
            rows[place[held]] = distinct[held]
            found[held] = self.decide(rows)[place[held]]
        if isinstance(self.decision.model, Remote):
            self.decision.model.forget()  # else answers about rows that are somebody's would come sooner
        return found[inverse]

    def classes_of_made_up(self, codes: Ints) -> Ints:
        """The decisions about coded rows that are nobody's, as :meth:`classes_of`, in as few calls as fit memory."""
        first, inverse = distinct_rows(codes)
        starts = range(0, len(first), _MADE_UP)
        found = [np.zeros(0, dtype=np.int64), *(self.decide(codes[first[a : a + _MADE_UP]]) for a in starts)]
        return np.concatenate(found)[inverse]

    def decide(self, codes: Ints) -> Ints:
        """The decision about coded records, in one call."""
        return self.decision.decide(self.grid.frame(codes))

    def _check_whole(self, frame: pd.DataFrame) -> None:
        whole = [a.column.name for a in self.grid.axes if a.numeric and a.dtype.kind == "i"]
        for name in whole:
            if name in frame.columns and pd.api.types.is_float_dtype(frame[name].dtype):
                values = frame[name].to_numpy(dtype=float, na_value=np.nan)
                if (values[np.isfinite(values)] % 1 != 0).any():
                    raise SchemaError(
                        f"Column '{name}' of the 'rows' given to {self.owner} has fractions, but its domain is "
                        f"declared in whole numbers. Write its bounds with decimals, as in (0.0, 99.0), or round."
                    )

    def _check_rows_are_judged_alone(self) -> None:
        """A model that looks at the whole batch would carry one record into the decision about another."""
        some = self.grid.codes(self.probe.features)
        said = []
        for others in (self.grid.default, np.zeros_like(self.grid.default), self.grid.sizes - 1):
            rows = np.tile(others, (_BATCH, 1))
            rows[: len(some)] = some
            said.append(self.decide(rows)[: len(some)])
        if any(not np.array_equal(said[0], other) for other in said[1:]):
            raise SchemaError(
                f"The 'model' of {self.owner} decides about a row by looking at the other rows of the batch. Give it a "
                f"model that judges every row alone: only then is one record's influence bounded."
            )


def _probe(grid: Grid, schema: Schema, model: Any, owner: str) -> Table:
    """A made-up table: random records of the domain, all labels, and every missing level."""
    labels = _labels(schema, model, owner)
    rng = generator(0)  # public: the records are made up, and everybody may know them
    codes = np.column_stack([rng.integers(0, m, _PROBES) for m in grid.sizes])
    codes[0], codes[1] = grid.default, grid.sizes - 1
    frame = grid.frame(codes)
    assert schema.target is not None
    schema = public_target(schema)
    frame[schema.target] = [labels[i % len(labels)] for i in range(_PROBES)]
    kept = tuple(c for c in schema if c.role != "identifier")
    return Table(frame, replace(schema, columns=kept))


def public_target(schema: Schema) -> Schema:
    """The schema without labels of the target that were read off the rows.

    Where none are declared, favourable ones are spelt as rows spell them: 1, or 1.0 where somebody has no label.
    """
    target = schema.target
    if target is None:
        return schema
    schema = schema.with_column(target, type="categorical") if schema[target].read else schema
    if schema[target].values is not None:
        return schema
    return replace(schema, favourable=tuple(canonical_value(v) for v in schema.favourable))


def public_schema(schema: Schema) -> Schema:
    """The declaration without what rows decide; identifiers by name only."""
    schema = public_target(schema)
    bare = (Column(c.name, role="identifier") if c.role == "identifier" else c for c in schema)
    return replace(schema, columns=tuple(bare))


def _labels(schema: Schema, model: Any, owner: str) -> list[Any]:
    if schema.target is None:
        raise SchemaError(f"{owner} needs a target column: declare one with target='...' or in the schema.")
    declared = schema[schema.target].public if not schema[schema.target].numeric else None
    own = getattr(model, "classes_", None)
    if declared is None and (own is None or np.ndim(own) != 1):
        raise SchemaError(
            f"{owner} needs the labels of the target '{schema.target}' from somewhere other than the rows: declare its "
            f"domain, or give a model with classes_."
        )
    return list(declared) if declared is not None else list(np.asarray(own).tolist())


def _places(codes: Ints) -> Ints:
    """A place in a batch for each record, by its content."""
    mixed = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(_BATCH)).astype(np.int64)
