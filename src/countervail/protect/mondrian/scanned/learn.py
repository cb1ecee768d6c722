"""Mondrian of rows that stay in an engine: their distinct quasi-identifiers come out, with counts, and are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from countervail.core.canonical import code_values
from countervail.core.errors import bad_parameter
from countervail.core.loss import ncp
from countervail.core.people import rows_remark
from countervail.engine.coded import CODE, NODE, PART, SECRET, CodedRows
from countervail.engine.columns import known_schema, lookup_once, one_column, side_by_side
from countervail.engine.interface import COUNT, LABEL, Labelling
from countervail.engine.scan import Distinct, Scan
from countervail.engine.sql import SqlRelation
from countervail.protect._scanned import ScannedClasses
from countervail.protect.mondrian.columns import Attributes, class_column, describe, encode
from countervail.protect.mondrian.constraints import CutConstraints, Ints, Longs, Requirements, first_broken
from countervail.protect.mondrian.cut_tree import CutTree
from countervail.protect.mondrian.grow import Branch
from countervail.protect.mondrian.labels import label_regions, set_names
from countervail.protect.mondrian.scanned.levels import all_labels, check_levels, cut_levels, put_together
from countervail.protect.mondrian.scanned.ties import SPLIT, SharedRows, draw_lots, narrow_counted

if TYPE_CHECKING:
    from countervail.protect.mondrian.mondrian import Mondrian


@dataclass(eq=False, slots=True)
class CountedRows:
    """How many rows each distinct row stands for, and how many one person has at most, by some columns.

    `shared`: where rows were shared out or left out, how.
    """

    counts: Longs
    most: int
    names: tuple[str, ...]
    shared: SharedRows | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def narrow(
        self,
        codes: Ints,
        secret: Ints,
        cell_of: Ints,
        n_cells: int,
        data: Attributes,
        constraints: CutConstraints,
        budget: int,
        share: bool,
        gain: bool,
    ) -> SharedRows:
        """Share rows out and leave rows out, and remember how."""
        self.shared = narrow_counted(
            codes, self.counts, secret, cell_of, n_cells, data, constraints, budget, share=share, gain=gain
        )
        return self.shared

    def remarks(self, k: int) -> tuple[str, ...]:
        """What is said where people have several rows."""
        return rows_remark(self.most, self.names, k)


def learn_scan(protector: Mondrian, scan: Scan, required: Requirements) -> ScannedClasses:
    """The classes of a scan's distinct quasi-identifiers: the same as those of a table with the same rows."""
    required.check()
    _check_possible(protector)
    by = class_column(scan, by_class=protector.by_class, owner="Mondrian")
    keys = list(dict.fromkeys([*scan.schema.names("quasi"), *([by] if by else [])]))
    asked = [required.sensitive] if required.looks_at_secrets and required.sensitive else []
    columns = [*keys, *(n for n in asked if n not in keys)]
    limit = scan.budget(len(columns))
    scan.relation.expect([c.name for c in scan.schema if c.role != "identifier"])
    found = scan.distinct(columns, limit=None if scan.relation.here else limit)
    most, names = scan.rows_per_person()
    if found is None:
        return learn_levels(protector, scan, required, keys, most, names, limit)
    counted = CountedRows(found.counts, most, names)
    classes = protector._learn(found.table, counted)
    schema = known_schema(scan, found.table.schema)
    raw, of = found.raw.select(keys), classes.of.astype(np.int64)
    lines = None if counted.shared is None else _lots(protector, scan, keys, raw, of, counted.shared)
    if len(keys) < len(columns):
        raw, of = lookup_once(raw, of)
    losses = ncp(classes.regions, found.table)
    rest = (tuple(keys), raw, classes.regions, schema, classes.remarks, classes.words, losses, lines)
    return ScannedClasses(of, counted.rows - protector.suppressed_, protector.suppressed_, *rest)


def _lots(protector: Mondrian, scan: Scan, keys: list[str], raw: Any, of: Longs, shared: SharedRows) -> Any:
    """Rows whose equals are in several classes: who is in which, drawn by lot; None where there are none."""
    import pyarrow as pa

    parted = np.flatnonzero(of == SPLIT)
    if not len(parted):
        return None
    others = tuple(c.name for c in scan.schema if c.role not in ("identifier", "quasi"))
    lookup = raw.take(parted).append_column(LABEL, pa.array(shared.which[parted].astype(np.int32)))
    limit = scan.budget(len(others) + 1)
    contents = scan.relation.labelled(Labelling(tuple(keys), lookup, None, others, ()), limit=limit)
    if contents is None:
        must = f"enough for what rows hold whose equals are in several classes: more than {limit:,} different ones"
        raise bad_parameter(
            "Table.scan", "memory", must, f"{scan.memory:,} bytes", "Give more (--memory), or use strict."
        )
    return draw_lots(contents, shared, others, protector.random_state)


def learn_levels(
    protector: Mondrian,
    scan: Scan,
    required: Requirements,
    keys: list[str],
    most: int,
    names: tuple[str, ...],
    limit: int,
) -> ScannedClasses:
    """The same, where the distinct rows do not fit the budget: they are cut where they are, level by level."""
    if protector.mode != "strict" or protector.suppress > 0:
        hint = "Give more (--memory), or leave mode and suppress as they are."
        must = "enough for all distinct rows where rows move or are left out"
        raise bad_parameter("Table.scan", "memory", must, f"{scan.memory:,} bytes", hint)
    if not isinstance(scan.relation, SqlRelation):
        raise bad_parameter("Table.scan", "engine", "one that keeps rows of its own", scan.engine)
    protector._check_cuts()
    by = class_column(scan, by_class=protector.by_class, owner="Mondrian")
    protector.by_, protector.suppressed_ = by, 0
    protector.hierarchies_ = required.read_hierarchies(scan, protector.hierarchies)
    held = {n: one_column(scan, n) for n in scan.schema.names("quasi")}
    coded = {n: encode(d.table, protector.hierarchies_) for n, d in held.items()}
    quasi = protector.quasi_ = [q for (q,), _ in coded.values()]
    data = describe(quasi, tree_loss=protector.labels == "hierarchy")
    check_levels(data)
    asked = one_column(scan, required.sensitive or "") if required.looks_at_secrets else next(iter(held.values()))
    secret, constraints = required.read(asked.table, protector.hierarchies_, asked.counts, most)
    extra: dict[str, tuple[str, Any]] = {}
    if required.looks_at_secrets and required.sensitive:
        extra[SECRET] = (required.sensitive, _dictionary(asked, secret))
    values: list[Any] = [None]
    parts = {}
    if by is not None:
        parts[by] = one_column(scan, by)
        at, values = code_values(parts[by].table.frame[by], parts[by].table.schema[by].values)
        extra[PART] = (by, _dictionary(parts[by], at))
    rows = CodedRows(scan.relation, {n: _dictionary(held[n], codes[:, 0]) for n, (_, codes) in coded.items()}, extra)
    _check_parts(rows, required, constraints, asked, by, most, len(values))
    gain = protector.choose == "gain"
    cut = cut_levels(rows, len(values), data, constraints, gain=gain, limit=limit)
    branches: list[Branch] = []
    cells: list[Longs] = []
    for value, root in zip(values, cut.roots):
        tree, mine = put_together(root)
        branches.append(Branch(value, sum(len(c) for c in cells), tree))
        cells.append(mine)
    order = np.concatenate(cells)
    groups = protector.labels == "hierarchy"
    regions = label_regions(quasi, all_labels(cut, order), len(order), groups=groups)
    protector.regions_ = protector.strict_regions_ = regions
    protector.tree_ = CutTree.of(quasi, branches, regions, by)
    protector.words_ = set_names(quasi, groups=groups)
    of = np.empty(len(order), np.int64)
    of[order] = np.arange(len(order))
    total = int(asked.counts.sum())
    remarks = protector._remarks(CountedRows(asked.counts, most, names).remarks(protector.k), total)
    found = {**held, **parts, **({required.sensitive or "": asked} if required.looks_at_secrets else {})}
    schema = known_schema(scan, *(d.table.schema for d in found.values()))
    losses = ncp(regions, side_by_side(scan, {n: d.table for n, d in held.items()}))
    return ScannedClasses(of, total, 0, tuple(keys), rows, regions, schema, remarks, protector.words_, losses)


def _dictionary(found: Distinct, codes: Any) -> Any:
    """Values as the engine gave them, and the code of each."""
    import pyarrow as pa

    return found.raw.append_column(CODE, pa.array(np.asarray(codes).astype(np.int32)))


def _check_parts(
    rows: CodedRows,
    required: Requirements,
    constraints: CutConstraints,
    asked: Distinct,
    by: str | None,
    most: int,
    parts: int,
) -> None:
    """Every part must keep the promise as one class."""
    found = rows.secrets()
    node, secret, counts = (found[n].to_numpy() for n in (NODE, SECRET, COUNT))
    for part in range(parts):
        mine = node == part
        failed = first_broken(secret[mine].astype(np.int32), counts[mine], constraints)
        required.check_part(failed, int(counts[mine].sum()), asked.table, by, most)


def _check_possible(protector: Mondrian) -> None:
    """Refuse what needs rows one by one."""
    if protector.ledger is not None:
        hint = "A ledger records who is with whom, row by row: fit a Table."
        raise bad_parameter("Mondrian", "ledger", "left out for a scan", "a ledger", hint)
    if protector.mode == "relaxed" and (protector.l is not None or protector.t is not None):
        hint = "There a lot decides what a class holds, row by row: use 'strict', or fit a Table."
        raise bad_parameter("Mondrian", "mode", "'strict' for a scan with l or t", protector.mode, hint)
