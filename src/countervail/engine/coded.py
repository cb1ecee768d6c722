"""Distinct rows as codes that stay in the engine, in nodes that are cut level by level, until few enough come out.

Only whole numbers leave: sums, least and greatest codes, numbers of different codes. What is done with them is done
once, elsewhere, so that no engine's arithmetic is seen in a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from countervail.core.arrays import Ints
from countervail.engine.interface import CODE as CODE
from countervail.engine.interface import COUNT, LABEL
from countervail.engine.sql import SqlRelation

NODE: Final = "__node"
SIDE: Final = "__side"
CELL: Final = "__cell"
TUPLES: Final = "__tuples"
SECRET: Final = "__secret"
PART: Final = "__part"


def code(j: int) -> str:
    """The name of a coded column."""
    return f"__c{j}"


class CodedRows:
    """The distinct coded rows of a relation, each with a count and the node that it is in.

    `dictionaries` holds, for each column, its distinct values (under their own name) and the code of each (`CODE`);
    `extra` the same for columns that tell parts (`PART`) and sensitive values (`SECRET`) apart.
    """

    def __init__(self, relation: SqlRelation, dictionaries: Mapping[str, Any], extra: Mapping[str, tuple[str, Any]]):
        self._relation, self._dialect = relation, relation.dialect
        self._names = list(dictionaries)
        self._codes = [code(j) for j in range(len(self._names))]
        self._lent = {n: self._dialect.lend(table) for n, table in dictionaries.items()}
        self._parts = {role: name for role, (name, _) in extra.items()}
        for role, (_, table) in extra.items():
            self._lent[role] = self._dialect.lend(table)
        self._pieces: list[str] = []
        self._rows = self._dialect.keep(self._coded(extra))

    def _coded(self, extra: Mapping[str, tuple[str, Any]]) -> str:
        """The query for all distinct coded rows."""
        q = self._dialect.quote
        joins, picked = [], []
        for name, alias in zip(self._names, self._codes):
            joins.append(f"JOIN {self._lent[name]} AS d{alias} ON r.{q(name)} IS NOT DISTINCT FROM d{alias}.{q(name)}")
            picked.append(f"d{alias}.{CODE} AS {alias}")
        for role, (name, _) in extra.items():
            joins.append(f"JOIN {self._lent[role]} AS d{role} ON r.{q(name)} IS NOT DISTINCT FROM d{role}.{q(name)}")
            picked.append(f"d{role}.{CODE} AS {role}")
        wanted = list(dict.fromkeys([*self._names, *(name for name, _ in extra.values())]))
        rows = f"SELECT {', '.join(picked)}, r.{COUNT} FROM ({self._relation.counted(wanted)}) AS r {' '.join(joins)}"
        node = PART if PART in extra else "0"
        secret = SECRET if SECRET in extra else "0"
        held = [f"{node} AS {NODE}", *self._codes, f"{secret} AS {SECRET}"]
        by = [*([PART] if PART in extra else []), *self._codes, *([SECRET] if SECRET in extra else [])]
        return f"SELECT {', '.join(held)}, sum({COUNT}) AS {COUNT} FROM ({rows}) AS coded GROUP BY {', '.join(by)}"

    def sizes(self) -> Any:
        """Of each node: its distinct rows and its rows."""
        query = f"SELECT {NODE}, count(*) AS {TUPLES}, sum({COUNT}) AS {COUNT} FROM {self._rows} GROUP BY {NODE}"
        return self._whole(query)

    def secrets(self) -> Any:
        """Of each node: how often each sensitive value occurs."""
        query = f"SELECT {NODE}, {SECRET}, sum({COUNT}) AS {COUNT} FROM {self._rows} GROUP BY {NODE}, {SECRET}"
        return self._whole(query)

    def histogram(self, j: int) -> Any:
        """Of each node: how often each code of a column occurs with each sensitive value."""
        by = f"{NODE}, {code(j)}, {SECRET}"
        return self._whole(f"SELECT {by}, sum({COUNT}) AS {COUNT} FROM {self._rows} GROUP BY {by}")

    def halves(self, j: int, sides: Any, ordered: Sequence[int], others: Sequence[int]) -> Any:
        """Of both halves of a cut on one column, given as node, code and side: rows, and what other columns hold."""
        lent = self._dialect.lend(sides)
        try:
            found = [f"count(*) AS {TUPLES}"]
            found += [f"min(t.{code(i)}) AS low{i}, max(t.{code(i)}) AS high{i}" for i in ordered]
            found += [f"count(DISTINCT t.{code(i)}) AS kinds{i}" for i in others]
            return self._whole(
                f"SELECT t.{NODE}, s.{SIDE}, {', '.join(found)} FROM {self._rows} AS t JOIN {lent} AS s "
                f"ON t.{NODE} = s.{NODE} AND t.{code(j)} = s.{CODE} GROUP BY t.{NODE}, s.{SIDE}"
            )
        finally:
            self._dialect.take_back(lent)

    def split(self, chosen: Mapping[int, int], sides: Any) -> None:
        """Send rows to the children of their nodes: `chosen` is the column of each node that is cut, `sides` say the
        child (`SIDE`) of each node and code. Nodes that are not cut are gone."""
        import pyarrow as pa

        pick = pa.table({NODE: list(chosen), "__on": list(chosen.values())})
        on, lent = self._dialect.lend(pick), self._dialect.lend(sides)
        value = " ".join(f"WHEN {j} THEN t.{c}" for j, c in enumerate(self._codes))
        held = ", ".join(f"t.{c} AS {c}" for c in (*self._codes, SECRET, COUNT))
        query = (
            f"SELECT s.{SIDE} AS {NODE}, {held} FROM {self._rows} AS t JOIN {on} AS p ON t.{NODE} = p.{NODE} "
            f"JOIN {lent} AS s ON t.{NODE} = s.{NODE} AND (CASE p.__on {value} END) = s.{CODE}"
        )
        before, self._rows = self._rows, self._dialect.keep(query)
        for name in (on, lent):
            self._dialect.take_back(name)
        self._dialect.drop(before)

    def take(self, nodes: Sequence[int]) -> tuple[Ints, Ints, Ints, Ints]:
        """The rows of some nodes: node, codes (row x column), sensitive values and counts."""
        which = ", ".join(map(str, nodes))
        found = self._whole(f"SELECT * FROM {self._rows} WHERE {NODE} IN ({which})")
        codes = np.column_stack([found[c].to_numpy() for c in self._codes])
        return found[NODE].to_numpy(), codes, found[SECRET].to_numpy(), found[COUNT].to_numpy()

    def assign(self, codes: Ints, part: Ints, cell: Ints) -> None:
        """Keep the cells of some distinct rows in the engine."""
        import pyarrow as pa

        columns = {c: pa.array(codes[:, j].astype(np.int32)) for j, c in enumerate(self._codes)}
        columns |= {PART: pa.array(part.astype(np.int32)), CELL: pa.array(cell.astype(np.int64))}
        lent = self._dialect.lend(pa.table(columns))
        self._pieces.append(self._dialect.keep(f"SELECT DISTINCT * FROM {lent}"))
        self._dialect.take_back(lent)

    def assign_node(self, node: int, part: int, cell: int) -> None:
        """Keep one cell for all rows of a node."""
        held = ", ".join(self._codes)
        query = f"SELECT DISTINCT {held}, {part} AS {PART}, {cell} AS {CELL} FROM {self._rows} WHERE {NODE} = {node}"
        self._pieces.append(self._dialect.keep(query))

    def lookup(self, labels: Any) -> str:
        """The engine's own lookup: settled keys and the label of their cell, which `labels` gives (`CELL`, `LABEL`)."""
        q = self._dialect.quote
        pieces = " UNION ALL ".join(f"SELECT * FROM {p}" for p in self._pieces)
        lent = self._dialect.lend(labels)
        joins, picked = [f"JOIN {lent} AS m ON c.{CELL} = m.{CELL}"], []
        for name, alias in zip(self._names, self._codes):
            joins.append(f"JOIN {self._lent[name]} AS d{alias} ON c.{alias} = d{alias}.{CODE}")
            picked.append(f"d{alias}.{q(name)} AS {q(name)}")
        if PART in self._parts and self._parts[PART] not in self._names:
            joins.append(f"JOIN {self._lent[PART]} AS dpart ON c.{PART} = dpart.{CODE}")
            picked.append(f"dpart.{q(self._parts[PART])} AS {q(self._parts[PART])}")
        return f"(SELECT {', '.join(picked)}, m.{LABEL} AS {LABEL} FROM ({pieces}) AS c {' '.join(joins)})"

    def _whole(self, query: str) -> Any:
        """An answer in whole numbers of 64 bits."""
        import pyarrow as pa

        found = self._dialect.table(query)
        return found.cast(pa.schema([(n, pa.int64()) for n in found.column_names]))
