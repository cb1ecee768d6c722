"""Groupings that a ledger records: who hides with whom, as a keyed digest that tells nobody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Ints
from countervail.core.conform import plain
from countervail.core.region import Regions
from countervail.core.table import Table
from countervail.ledger.ledger import Ledger

Digests = NDArray[np.uint64]


def partition_digest(ledger: Ledger, table: Table, label: Ints, regions: Regions) -> bytes:
    """The same for the same groups of people under the same labels, however rows and groups are numbered.

    A group counts with the quasi-identifiers of its people and, apart from these, with all else that is known of them
    but identifiers: who of a group owns what is not looked at. People with equal quasi-identifiers count by their place
    among each other: two lots that share them out differently are two groupings. Roles count too: what one release
    blurs another may show. A label of -1 is in no group.
    """
    quasi = sorted(table.schema.names("quasi"))
    others = sorted(c.name for c in table.schema if c.role not in ("identifier", "quasi"))
    roles = json.dumps([sorted([*quasi, *others]), quasi, table.schema.target])
    key = ledger.keyed("rows").hex()[:16]
    known = pd.Series(row_digests(table, quasi, key))
    people = np.column_stack([known.to_numpy(), known.groupby(known).cumcount().to_numpy().astype(np.uint64)])
    private = row_digests(table, others, key) if others else np.zeros(len(table), np.uint64)
    grouped = np.flatnonzero(label >= 0)
    by_people = grouped[np.lexsort((people[grouped, 1], people[grouped, 0], label[grouped]))]
    by_private = grouped[np.lexsort((private[grouped], label[grouped]))]
    cuts = np.flatnonzero(np.diff(label[by_people])) + 1
    texts = regions.text()
    groups = sorted(
        hashlib.sha256(texts[label[a[0]]].encode() + b"\0" + people[a].tobytes() + private[b].tobytes()).digest()
        for a, b in zip(np.split(by_people, cuts), np.split(by_private, cuts))
        if len(a)
    )
    return ledger.keyed("partition", roles, b"".join(groups))


def row_digests(table: Table, names: Sequence[str], key: str) -> Digests:
    """A keyed digest of each row's values in some columns."""
    values = pd.DataFrame({n: spelt(table.frame[n]) for n in names})
    return pd.util.hash_pandas_object(values, index=False, hash_key=key).to_numpy().astype(np.uint64)


def spelt(values: pd.Series) -> pd.Series:
    """Values in one spelling, whatever the dtype: 1, 1.0 and "1" are written alike."""
    codes, kinds = pd.factorize(values, use_na_sentinel=False)
    words = np.array(["\0" if pd.isna(v) else plain(v) for v in kinds], dtype=object)
    return pd.Series(words[codes], dtype=object)
