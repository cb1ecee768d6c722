"""Who hides with whom, kept for a later fit to the same people: groups stay as they are, or answer no more."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Ints, Matrix, distinct_rows
from countervail.core.errors import SchemaError
from countervail.core.files.frames import write_text
from countervail.core.files.json_data import is_count, is_number, json_object, need, texts, whole_json
from countervail.core.table import Table
from countervail.protect._recorded import Digests, row_digests
from countervail.protect.cfk.groups.group_table import GroupTable, kind_of

_FORMAT = 3  # of stored rosters: 1 and 2 held digests of people's features
_KEY = 16  # characters


@dataclass(frozen=True, eq=False, slots=True)
class Matched:
    """A table beside a roster: the group of each row (-1: none), which groups stay, and whose rows are new."""

    group: Ints
    stay: Bools
    new: Bools


Merged = tuple[float | None, float | None, str | None]


@dataclass(frozen=True, eq=False, slots=True)
class Roster:
    """Everybody who was ever in a group, by a keyed digest of their identifiers, and the sealed table of the last fit.

    `group` is each person's group in that table, -1 where it answers no more; `there` says who was in it; `members` is
    one keyed digest per group of its people and their quasi-identifiers; `merged` are `l`, `t` and the column that
    groups were merged for. It is as confidential as the table. Give it to the next fit to a table of
    the same people, `CFK(previous=...)`: see docs/decisions/growing-tables.md for what is promised then.
    """

    k: int
    version: int
    table: GroupTable
    identifiers: tuple[str, ...]
    key: str
    people: Digests
    group: Ints
    there: Bools
    members: tuple[str, ...]
    merged: Merged = (None, None, None)

    def __repr__(self) -> str:
        return f"Roster(k={self.k}, version={self.version}, {len(self.table)} groups)"

    @classmethod
    def of(
        cls,
        k: int,
        made: GroupTable,
        table: Table,
        group: Ints,
        previous: Roster | None = None,
        merged: Merged = (None, None, None),
    ) -> Self:
        """The roster after a fit that put each row of `table` into `group` (-1: none)."""
        identifiers = tuple(table.schema.names("identifier")) if previous is None else previous.identifiers
        key = secrets.token_hex(_KEY // 2) if previous is None else previous.key
        now = identify(table, identifiers, key)
        inside = group >= 0
        people, groups = now[inside], group[inside]
        if previous is not None:
            gone = ~np.isin(previous.people, people)
            people = np.concatenate([people, previous.people[gone]])
            groups = np.concatenate([groups, np.full(int(gone.sum()), -1, dtype=np.int64)])
        order = np.argsort(people, kind="stable")
        version = 1 if previous is None else previous.version + 1
        members = tuple(_members(table, now, group, len(made), key))
        people, there = people[order], np.isin(people[order], now)
        return cls(k, version, made, identifiers, key, people, groups[order], there, members, merged)

    def match(self, table: Table, clean: Table) -> Matched:
        """Which groups of the last fit may answer on: all of their people are there, with the same values as a group.

        People are recognised by their identifiers alone. Whoever was ever in a group is never new.
        """
        self._check_columns(table)
        now = identify(table, self.identifiers, self.key)
        at = np.searchsorted(self.people, now)
        at = np.where(at < len(self.people), at, 0)
        known = self.people[at] == now if len(self.people) else np.zeros(len(now), dtype=bool)
        group = np.where(known, self.group[at], -1) if len(self.people) else np.full(len(now), -1, dtype=np.int64)
        if int(self.there[at[known]].sum()) < self.there.sum() / 2:
            raise SchemaError(
                "Fewer than half of the people of the table before are found in this one. If identifiers were recoded "
                "or issued anew, undo that: the same people would be grouped a second time."
            )
        stay = np.array(_members(table, now, group, len(self.table), self.key)) == np.array(self.members)
        stay = stay & self._own_the_same(clean, group)
        return Matched(np.where(np.append(stay, False)[group], group, -1), stay, ~known)

    def _own_the_same(self, clean: Table, group: Ints) -> Bools:
        """Which groups hold the same private rows as before, whoever of a group has which."""
        made = self.table
        rows = _private_codes(made, clean.frame)
        inside = group >= 0
        before = np.column_stack([made.sealed.groups, made.private])
        after = np.column_stack([group[inside], rows[inside]])
        _, which = distinct_rows(np.concatenate([before, after]))
        kinds = int(which.max(initial=-1)) + 1
        then, now = (np.bincount(part, minlength=kinds) for part in np.split(which, [len(before)]))
        differs = then != now
        stay = np.ones(len(made), dtype=bool)
        owner = np.concatenate([before[:, 0], after[:, 0]]).astype(np.int64)
        stay[owner[differs[which]]] = False
        return stay

    def _check_columns(self, table: Table) -> None:
        made, quasi = self.table, table.schema.names("quasi")
        if quasi != made.schema.names("quasi"):
            raise SchemaError(
                f"The groups of 'previous' were formed on the quasi-identifiers {made.schema.names('quasi')}, but the "
                f"table declares {quasi}. Groups of other quasi-identifiers would intersect with them."
            )
        if gone := [n for n in self.identifiers if n not in table.schema.names("identifier")]:
            raise SchemaError(
                f"The roster recognises people by the identifiers {gone}, which the table does not declare. Add them "
                f"(identifiers=[...]): the same people would be grouped a second time."
            )
        if table.schema.features != made.schema.features:
            raise SchemaError(
                f"The groups of 'previous' have the features {made.schema.features}, but the table has "
                f"{table.schema.features}. The columns of a table that is fitted again must stay."
            )
        for name in table.schema.features:
            old, now, values = made.schema[name], table.schema[name], table.frame[name]
            if old.public != now.public:
                raise SchemaError(
                    f"The declared domain of column '{name}' is another one than when the groups of 'previous' were "
                    f"formed. Declare it as before: it takes part in distances and cells."
                )
            if now.type != old.type or (old.type != "numeric" and kind_of(values, now) != made.kinds[name]):
                raise SchemaError(
                    f"Column '{name}' was {old.type} ({made.kinds[name]}) when the groups of 'previous' were formed, "
                    f"and is {table.schema[name].type} ({kind_of(values, now)}) now. Declare and store it as before."
                )

    def to_json(self) -> str:
        """The roster as JSON; confidential."""
        return json.dumps(
            {
                "kind": "roster",
                "format": _FORMAT,
                "version": self.version,
                "k": self.k,
                "table": self.table.to_dict(),
                "identifiers": list(self.identifiers),
                "key": self.key,
                "people": [str(d) for d in self.people.tolist()],
                "group": self.group.tolist(),
                "there": self.there.tolist(),
                "merged": list(self.merged),
                "members": list(self.members),
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`."""
        return cls._stored(text, "text", "Roster.from_json", "Roster.to_json()")

    def write(self, path: str | Path) -> None:
        """Store the roster beside the table, whole or not at all, for the owner's eyes only."""
        write_text(self.to_json(), path, confidential=True)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a stored roster."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = ""
        return cls._stored(text, path.name, "Roster.read", "Roster.write() or --roster")

    @classmethod
    def _stored(cls, text: str, parameter: str, owner: str, writer: str) -> Self:
        data = json_object(text, parameter, owner, writer)
        if data.get("kind") == "groups":
            raise SchemaError(
                "These are groups of formats 1 or 2, which recognised people by what they own. Nothing safe can be "
                "built on them: form new groups only if no answer from the old ones has left; otherwise go on with the "
                "version that wrote them, on an unchanged table."
            )
        if data.get("kind") != "roster":
            raise SchemaError("This JSON does not hold a roster.")
        if data.get("format") != _FORMAT:
            raise SchemaError(
                f"This roster is stored in another format; this version reads format {_FORMAT}. Read it with the "
                f"version that wrote it."
            )
        with whole_json(parameter, owner, writer):
            table = GroupTable.from_dict(data["table"])
            need(is_count(data["k"], 1) and is_count(data["version"], 1))
            need(isinstance(data["key"], str) and len(data["key"].encode()) == _KEY)
            people = np.array([int(d) for d in data["people"]], dtype=np.uint64)
            group, groups = data["group"], len(table)
            need(isinstance(group, list) and len(group) == len(people) and bool((np.diff(people) > 0).all()))
            need(all(v == -1 or (is_count(v) and v < groups) for v in group))
            members = texts(data["members"])
            need(len(members) == groups)
            at = np.array(group, dtype=np.int64)
            sizes = np.bincount(table.sealed.groups, minlength=groups)
            need(bool((np.bincount(at[at >= 0], minlength=groups) == sizes).all()))
            need(isinstance(data["there"], list) and len(data["there"]) == len(people))
            need(all(isinstance(v, bool) for v in data["there"]))
            l, t, sensitive = data["merged"]  # noqa: E741 -- the name the literature uses
            need(all(v is None or is_number(v) for v in (l, t)) and (sensitive is None or isinstance(sensitive, str)))
            identifiers, there = texts(data["identifiers"]), np.array(data["there"], dtype=bool)
            key, merged = data["key"], (l, t, sensitive)
            return cls(data["k"], data["version"], table, identifiers, key, people, at, there, members, merged)


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


def _members(table: Table, people: Digests, group: Ints, groups: int, key: str) -> list[str]:
    """Of each group, a digest of its people and their quasi-identifiers."""
    quasi = row_digests(table, table.schema.names("quasi"), key)
    inside = np.flatnonzero(group >= 0)
    order = inside[np.lexsort((people[inside], group[inside]))]
    both = np.column_stack([people[order], quasi[order]])
    cuts = np.searchsorted(group[order], np.arange(1, groups))
    parts = np.split(both, cuts) if groups else []
    return [hashlib.blake2b(part.tobytes(), key=key.encode(), digest_size=16).hexdigest() for part in parts]


def _private_codes(made: GroupTable, frame: pd.DataFrame) -> Matrix:
    """Private values in the codes of a sealed table; -1 for a label that it does not have."""
    out = np.zeros((len(frame), len(made.encoder.codings)))
    for j, coding in enumerate(made.encoder.codings):
        if coding.name in made.sealed.others.columns:
            out[:, j] = coding.encode(frame[coding.name])
    return out
