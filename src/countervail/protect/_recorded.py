"""Groupings that a ledger records: who hides with whom, as a keyed digest that tells nobody."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.table import Table
from countervail.ledger.ledger import Ledger
from countervail.protect.groups import Groups, spelt

Ints = NDArray[np.int64]


def partition_digest(ledger: Ledger, table: Table, label: Ints) -> bytes:
    """The same for the same rows in the same groups, however rows and groups are numbered; -1 is in no group."""
    values = pd.DataFrame({n: spelt(table.frame[n]) for n in table.schema.features})
    key = ledger.keyed("rows").hex()[:16]
    rows = pd.util.hash_pandas_object(values, index=False, hash_key=key).to_numpy().astype("<u8")
    grouped = np.flatnonzero(label >= 0)
    order = grouped[np.lexsort((rows[grouped], label[grouped]))]
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    groups = sorted(hashlib.sha256(part.tobytes()).digest() for part in np.split(rows[order], cuts))
    return ledger.keyed("partition", b"".join(groups))


def groups_digest(ledger: Ledger, groups: Groups | None) -> bytes:
    """Stored groups, to be recognised when a later fit builds on them."""
    return b"" if groups is None or not groups.version else ledger.keyed("groups", groups.to_json())
