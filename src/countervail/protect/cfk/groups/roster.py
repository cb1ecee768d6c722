"""Who hides with whom, kept for a later fit to the same people: groups stay as they are, or answer no more."""

from __future__ import annotations

import json
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
from countervail.protect._recognised import KEY, everybody, find_again, identify, member_digests, new_key
from countervail.protect._recorded import Digests
from countervail.protect.cfk.groups.group_table import GroupTable, kind_of

_FORMAT = 3  # of stored rosters: 1 and 2 held digests of people's features


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
        key = new_key() if previous is None else previous.key
        now = identify(table, identifiers, key)
        people, groups, there = everybody(now, group, None if previous is None else previous.people)
        version = 1 if previous is None else previous.version + 1
        members = tuple(member_digests(table, now, group, len(made), key))
        return cls(k, version, made, identifiers, key, people, groups, there, members, merged)

    def match(self, table: Table, clean: Table) -> Matched:
        """Which groups of the last fit may answer on: all of their people are there, with the same values as a group.

        People are recognised by their identifiers alone. Whoever was ever in a group is never new.
        """
        self._check_columns(table)
        now = identify(table, self.identifiers, self.key)
        known, group = find_again(now, self.people, self.group, self.there)
        stay = np.array(member_digests(table, now, group, len(self.table), self.key)) == np.array(self.members)
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
            if now.type != old.type or (not old.numeric and kind_of(values, now) != made.kinds[name]):
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
            need(isinstance(data["key"], str) and len(data["key"].encode()) == KEY)
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


def _private_codes(made: GroupTable, frame: pd.DataFrame) -> Matrix:
    """Private values in the codes of a sealed table; -1 for a label that it does not have."""
    out = np.zeros((len(frame), len(made.encoder.codings)))
    for j, coding in enumerate(made.encoder.codings):
        if coding.name in made.sealed.others.columns:
            out[:, j] = coding.encode(frame[coding.name])
    return out
