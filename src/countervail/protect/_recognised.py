"""People recognised in a later table by keyed digests of their identifiers, for rosters of any kind."""

from __future__ import annotations

import hashlib
import secrets

import numpy as np

from countervail.core.arrays import Bools, Ints
from countervail.core.errors import SchemaError
from countervail.core.table import Table
from countervail.protect._recorded import Digests, row_digests

KEY = 16  # characters


def new_key() -> str:
    """A key that nobody else has."""
    return secrets.token_hex(KEY // 2)


def identify(table: Table, identifiers: tuple[str, ...], key: str) -> Digests:
    """A keyed digest of each row's identifiers, which must tell all rows apart."""
    if not identifiers:
        raise SchemaError(
            "People are recognised by identifiers in a later fit, and the table declares none. Pass identifiers=[...] "
            "to Table.from_frame, or give columns the role 'identifier' in the schema: without one that lasts, a "
            "second fit to the same people cannot be made safe."
        )
    holes = [n for n in identifiers if table.frame[n].isna().any()]
    if holes:
        raise SchemaError(f"Identifiers must be complete to recognise people later: {holes} have missing values.")
    found = row_digests(table, identifiers, key)
    if len(np.unique(found)) < len(found):
        raise SchemaError(
            f"Identifiers must tell all rows apart to recognise people in a later fit; {list(identifiers)} do not. "
            f"Declare one that does, or keep one row for each person."
        )
    return found


def find_again(now: Digests, people: Digests, group: Ints, there: Bools) -> tuple[Bools, Ints]:
    """Which rows are people of a roster (sorted digests), and the group of each (-1: none)."""
    if not len(people):
        return np.zeros(len(now), dtype=bool), np.full(len(now), -1, dtype=np.int64)
    at = np.searchsorted(people, now)
    at = np.where(at < len(people), at, 0)
    known = people[at] == now
    if int(there[at[known]].sum()) < there.sum() / 2:
        raise SchemaError(
            "Fewer than half of the people of the table before are found in this one. If identifiers were recoded "
            "or issued anew, undo that: the same people would be grouped a second time."
        )
    return known, np.where(known, group[at], -1)


def everybody(now: Digests, group: Ints, before: Digests | None) -> tuple[Digests, Ints, Bools]:
    """All who were ever in a group, sorted: their digests, groups (-1: none any more), and who is there now."""
    inside = group >= 0
    people, groups = now[inside], group[inside].astype(np.int64)
    if before is not None:
        gone = before[~np.isin(before, people)]
        people = np.concatenate([people, gone])
        groups = np.concatenate([groups, np.full(len(gone), -1, dtype=np.int64)])
    order = np.argsort(people, kind="stable")
    people = people[order]
    return people, groups[order], np.isin(people, now)


def member_digests(table: Table, people: Digests, group: Ints, groups: int, key: str) -> list[str]:
    """Of each group, a digest of its people and their quasi-identifiers."""
    quasi = row_digests(table, table.schema.names("quasi"), key)
    inside = np.flatnonzero(group >= 0)
    order = inside[np.lexsort((people[inside], group[inside]))]
    return _of_groups(np.column_stack([people[order], quasi[order]]), group[order], groups, key)


def private_digests(table: Table, group: Ints, groups: int, key: str) -> list[str]:
    """Of each group, a digest of the multiset of what is released beside the quasi-identifiers."""
    names = [c.name for c in table.schema if c.role not in ("identifier", "quasi")]
    rows = row_digests(table, names, key) if names else np.zeros(len(table), np.uint64)
    inside = np.flatnonzero(group >= 0)
    order = inside[np.lexsort((rows[inside], group[inside]))]
    return _of_groups(rows[order], group[order], groups, key)


def _of_groups(rows: Digests, group: Ints, groups: int, key: str) -> list[str]:
    parts = np.split(rows, np.searchsorted(group, np.arange(1, groups))) if groups else []
    return [hashlib.blake2b(part.tobytes(), key=key.encode(), digest_size=16).hexdigest() for part in parts]
