"""Everything that compiles something, used once on bundled data: what `countervail warm` runs, and what is timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from countervail import registry
from countervail.attack import DifferentialInferenceTest, OracleAttack
from countervail.core.hierarchy import Hierarchy
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.data.load import load
from countervail.explain import NICE
from countervail.model import train_forest
from countervail.protect import CFK, Microaggregation, Mondrian, TableProtector
from countervail.protect.published import BasicMondrian
from countervail.rules import LERS, MLEM2

ROWS = 300
ASKED = 40
_MANY = 40_000  # rows and values above what small tables are spared

# What the demo needs, as `make demo` asks for it.
DEMO = ("nice", "cfk", "cfk-exact")


def first_uses() -> dict[str, Callable[[], object]]:
    """Each exported explainer, protector and attack by name, and the cases that have kernels of their own.

    A class that needs an optional dependency is left out.
    """
    kinds = [
        *registry.explainers().values(),
        *registry.explanation_protectors().values(),
        *registry.table_protectors().values(),
        *registry.published().values(),
    ]
    out: dict[str, Callable[[], object]] = {}
    for kind in kinds:
        if registry.fact(kind, "extra") is None:
            table = issubclass(kind, TableProtector)
            name = f"{kind.name}-release" if kind.name in out else kind.name
            out[name] = partial(_protect if table else _explain, kind)
    out.update({f"attack-{n}": partial(_attack, kind) for n, kind in registry.attacks().items()})
    return {**out, **_CASES}


def bundled_rows(n: int = ROWS) -> Table:
    """Some of the bundled rows, with a domain for every column (these people's data are public)."""
    table = load("german_credit").take(np.arange(n)).with_roles(sensitive=["job"])
    schema = table.schema
    for column in table.schema:
        values = table.frame[column.name].dropna()
        if column.domain is None and column.levels is None:
            found = sorted(values.unique(), key=None if column.type == "numeric" else str)
            ends = (found[0], found[-1])
            schema = schema.with_column(column.name, domain=ends if column.type == "numeric" else tuple(found))
    return table.with_frame(table.frame, schema)


def _protect(kind: type[Any], **settings: Any) -> object:
    table = bundled_rows()
    return kind(**settings).fit(table).protect(table)


def _explain(kind: type[Any], asked: int = ASKED, **settings: Any) -> object:
    table = bundled_rows()
    model = train_forest(table, trees=5)
    return kind(**settings).fit(table, model).explain(table.features.iloc[:asked])


def _attack(kind: type[Any]) -> object:
    table, control = bundled_rows().split(test_size=0.4, random_state=0)
    model = train_forest(table, trees=5)
    if issubclass(kind, OracleAttack):
        return kind(n_targets=ASKED).run(CFK(k=5).fit(table, model), table, control)
    few = [*table.schema.names("quasi")[:3], "job"]
    columns = [*few, str(table.schema.target)]
    schema = Schema(tuple(table.schema[n] for n in columns), favourable=table.schema.favourable)
    small, other = (t.with_frame(t.frame[columns], schema) for t in (table, control))
    return kind(n_targets=ASKED).run(Mondrian(k=5).fit(small).protect(small), small, other)


def _many_values() -> object:
    """Numbers that are almost all different, in more rows than numpy sorts for a small table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=_MANY), "b": rng.normal(size=_MANY), "c": rng.integers(0, 9, _MANY)})
    table = Table.from_frame(frame, quasi_identifiers=["a", "b", "c"])
    return Mondrian(k=_MANY // 50).fit(table)


def _hierarchies(**settings: Any) -> object:
    table = bundled_rows()
    name = next(n for n in table.schema.names("quasi") if table.schema[n].type == "categorical")
    values = sorted(map(str, table.frame[name].dropna().unique()))
    tree = Hierarchy(tuple((v, f"group {i // 2}", "*") for i, v in enumerate(values)))
    return Mondrian(k=5, hierarchies={name: tree}, **settings).fit(table).protect(table)


def _test(anonymiser: Any, people: int | None = None) -> object:
    return DifferentialInferenceTest(anonymiser, beside=0, n_records=people).run(bundled_rows())


def _classify(kind: type[Any]) -> object:
    table = bundled_rows()
    return kind().fit(table).predict(table.features.iloc[:ASKED])


_CASES: dict[str, Callable[[], object]] = {
    "cfk-exact": partial(_explain, CFK, search="exact", k=10),
    "cfk-grasp": partial(_explain, CFK, asked=2, search="grasp", k=5),
    "nice-sparsity": partial(_explain, NICE, reward="sparsity"),
    "mondrian-l": partial(_protect, Mondrian, k=5, l=2, sensitive="job"),
    "mondrian-t": partial(_protect, Mondrian, k=5, t=0.5, sensitive="job"),
    "mondrian-span": partial(_protect, Mondrian, k=5, choose="span"),
    "mondrian-relaxed": partial(_protect, Mondrian, k=5, mode="relaxed"),
    "mondrian-local": partial(_protect, Mondrian, k=5, mode="local"),
    "mondrian-suppress": partial(_protect, Mondrian, k=5, suppress=0.02),
    "mondrian-hierarchies": _hierarchies,
    "mondrian-hierarchy-labels": partial(_hierarchies, labels="hierarchy"),
    "mondrian-many-values": _many_values,
    "microaggregation-v": partial(_protect, Microaggregation, k=5, method="v-mdav"),
    "dit-mondrian": lambda: _test(Mondrian(k=5), ASKED),
    "dit-mondrian-everybody": lambda: _test(Mondrian(k=5)),
    "dit-basic": lambda: _test(BasicMondrian(k=5)),
    "lers": partial(_classify, LERS),
    "mlem2": partial(_classify, MLEM2),
}
