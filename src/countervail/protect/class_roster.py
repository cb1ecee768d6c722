"""Who was published with whom, kept for the next release of a table: classes stay as they are, or leave no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from countervail.core.arrays import Bools, Ints
from countervail.core.errors import DataNotFoundError, SchemaError, bad_parameter
from countervail.core.files.frames import write_text
from countervail.core.files.json_data import is_count, json_object, need, texts, whole_json
from countervail.core.people import person_columns
from countervail.core.region import Regions
from countervail.core.sealed import named_regions, read_regions
from countervail.core.table import Table
from countervail.protect._recognised import (
    KEY,
    everybody,
    find_again,
    identify,
    member_digests,
    new_key,
    private_digests,
)
from countervail.protect._recorded import Digests

FORMAT = 1
Changed = Literal["withdraw", "publish"]


@dataclass(frozen=True, eq=False, slots=True)
class Continued:
    """A table beside a roster: the class of each row (-1: none), which classes stay, and whose rows are new."""

    group: Ints
    stay: Bools
    new: Bools


@dataclass(frozen=True, eq=False, slots=True)
class ClassRoster:
    """Everybody who was ever published in a class, by a keyed digest of an identifier, and the last release's classes.

    `group` is each person's class, -1 where it leaves no more; `there` says who was in the last table; `members` holds
    a keyed digest per class of its people and their quasi-identifiers, `private` one of the multiset of their other
    columns. It is as confidential as the table. Give it to the next fit, `fit(table, previous=roster)`: see
    docs/decisions/growing-tables.md for what is promised then.
    """

    protector: str
    k: int
    version: int
    identifiers: tuple[str, ...]
    columns: Mapping[str, str]
    key: str
    people: Digests
    group: Ints
    there: Bools
    members: tuple[str, ...]
    private: tuple[str, ...]
    regions: Regions
    held: Regions | None
    words: Mapping[str, Mapping[str, str]]

    def __repr__(self) -> str:
        return f"ClassRoster(k={self.k}, version={self.version}, {len(self.members)} classes)"

    @classmethod
    def of(
        cls,
        protector: str,
        k: int,
        table: Table,
        group: Ints,
        regions: Regions,
        held: Regions | None,
        words: Mapping[str, Mapping[str, str]],
        previous: ClassRoster | None,
    ) -> Self:
        """The roster after a release that put each row of `table` into `group` (-1: none)."""
        identifiers = last_columns(table) if previous is None else previous.identifiers
        key = new_key() if previous is None else previous.key
        now, n, group = identify(table, identifiers, key), len(regions), group.astype(np.int64)
        people, groups, there = everybody(now, group, None if previous is None else previous.people)
        return cls(
            protector,
            k,
            1 if previous is None else previous.version + 1,
            identifiers,
            _columns(table),
            key,
            people,
            groups,
            there,
            tuple(member_digests(table, now, group, n, key)),
            tuple(private_digests(table, group, n, key)),
            regions,
            held,
            words,
        )

    def match(self, table: Table, protector: str, k: int, changed: Changed) -> Continued:
        """Which classes of the last release may leave again, and who was never in one.

        A class stays if all of its people are there with the quasi-identifiers that they had and, unless `changed` is
        "publish", if the multiset of their other values is what it was. Whoever was ever in a class is never new.
        """
        self._check(table, protector, k)
        now, n = identify(table, self.identifiers, self.key), len(self.members)
        known, group = find_again(now, self.people, self.group, self.there)
        stay = np.array(member_digests(table, now, group, n, self.key), dtype=object) == np.array(self.members, object)
        if changed == "withdraw":
            stay &= np.array(private_digests(table, group, n, self.key), object) == np.array(self.private, object)
        stay = stay.astype(bool)
        return Continued(np.where(np.append(stay, False)[group], group, -1), stay, ~known)

    def _check(self, table: Table, protector: str, k: int) -> None:
        if protector != self.protector:
            raise SchemaError(
                f"The roster is of releases by '{self.protector}', not by '{protector}'. Go on with the method that "
                f"the table was published by: two methods group the same people in two ways."
            )
        if k > self.k:
            must = f"at most that of the releases before, {self.k}: classes that were published stay as they are"
            raise bad_parameter(protector, "k", must, k)
        if gone := [n for n in self.identifiers if n not in table.schema.names("identifier")]:
            raise SchemaError(
                f"The roster recognises people by the identifier {gone}, which the table does not declare. Give it the "
                f"role 'identifier': the same people would be published in a second class."
            )
        if (now := _columns(table)) != dict(self.columns):
            differ = sorted(n for n in {*now, *self.columns} if now.get(n) != self.columns.get(n))
            raise SchemaError(
                f"The columns {differ} differ in role or type from those of the releases before, or are on one side "
                f"only. Declare them as before: other columns would publish the same people in another way."
            )

    def to_json(self) -> str:
        """The roster as JSON; confidential."""
        return json.dumps(
            {
                "kind": "class roster",
                "format": FORMAT,
                "protector": self.protector,
                "k": self.k,
                "version": self.version,
                "identifiers": list(self.identifiers),
                "columns": dict(self.columns),
                "key": self.key,
                "people": [str(d) for d in self.people.tolist()],
                "group": self.group.tolist(),
                "there": self.there.tolist(),
                "members": list(self.members),
                "private": list(self.private),
                "regions": named_regions(self.regions),
                "held": None if self.held is None else named_regions(self.held),
                "words": {name: dict(words) for name, words in self.words.items()},
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`."""
        return cls._stored(text, "text", "ClassRoster.from_json", "ClassRoster.to_json()")

    def write(self, path: str | Path) -> None:
        """Store the roster beside the table, whole or not at all, for the owner's eyes only."""
        write_text(self.to_json(), path, confidential=True)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a stored roster."""
        path = Path(path)
        if not path.is_file():
            raise DataNotFoundError(f"There is no roster at '{path.name}'.")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = ""
        return cls._stored(text, path.name, "ClassRoster.read", "ClassRoster.write() or anonymize --previous")

    @classmethod
    def _stored(cls, text: str, parameter: str, owner: str, writer: str) -> Self:
        data = json_object(text, parameter, owner, writer)
        if data.get("kind") != "class roster" or data.get("format") != FORMAT:
            raise SchemaError(
                f"'{parameter}' holds no roster of releases (format {FORMAT}). A release itself is "
                f"none: it names nobody. Give the file that {writer} wrote, or, for a first release, a new one."
            )
        with whole_json(parameter, owner, writer):
            regions, held = read_regions(data["regions"]), data["held"]
            held = None if held is None else read_regions(held)
            n, people = len(regions), np.array([int(d) for d in data["people"]], dtype=np.uint64)
            group, there = data["group"], data["there"]
            need(is_count(data["k"], 1) and is_count(data["version"], 1))
            need(isinstance(data["key"], str) and len(data["key"].encode()) == KEY)
            need(isinstance(group, list) and len(group) == len(people) and bool((np.diff(people) > 0).all()))
            need(all(v == -1 or (is_count(v) and v < n) for v in group))
            need(isinstance(there, list) and len(there) == len(people) and all(isinstance(v, bool) for v in there))
            members, private = texts(data["members"]), texts(data["private"])
            need(len(members) == len(private) == n and (held is None or len(held) == n))
            at = np.array(group, dtype=np.int64)
            sizes = np.bincount(at[at >= 0], minlength=n)
            need(bool(((sizes >= data["k"]) | (sizes == 0)).all()))
            columns = dict(zip(data["columns"], texts(list(data["columns"].values()))))
            words = {name: dict(zip(given, texts(list(given.values())))) for name, given in data["words"].items()}
            (protector,) = texts([data["protector"]])
            return cls(
                protector,
                data["k"],
                data["version"],
                texts(data["identifiers"]),
                columns,
                data["key"],
                people,
                at,
                np.array(there, dtype=bool),
                members,
                private,
                regions,
                held,
                words,
            )


def last_columns(table: Table) -> tuple[str, ...]:
    """The one identifier by which people are recognised next time."""
    names = person_columns(table)
    if len(names) > 1:
        raise SchemaError(
            f"People are recognised by one identifier in a later release, and {names} could all be it. Name the one "
            f"that lasts (--person on the command line), or leave it the only identifier: whoever changed another one "
            f"would be taken for new, and published in a second class."
        )
    return tuple(names)


def _columns(table: Table) -> dict[str, str]:
    """Role and type of each column that leaves."""
    return {c.name: f"{c.role} {c.type}" for c in table.schema if c.role != "identifier"}
