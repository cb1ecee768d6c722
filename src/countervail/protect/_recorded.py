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
    """The same for the same rows in the same groups under the same labels, however rows and groups are numbered.

    Rows count with all that is known of them but identifiers, and equal ones by their place among each other: two lots
    that share them out differently are two groupings. Roles count too: what one release blurs another may show. A
    label of -1 is in no group.
    """
    names = sorted(c.name for c in table.schema if c.role != "identifier")
    roles = json.dumps([names, sorted(table.schema.names("quasi")), table.schema.target])
    rows = pd.Series(row_digests(table, names, ledger.keyed("rows").hex()[:16]))
    kind = np.dtype([("row", "<u8"), ("place", "<u8")])
    keyed = np.empty(len(rows), kind)
    keyed["row"], keyed["place"] = rows, rows.groupby(rows).cumcount()
    grouped = np.flatnonzero(label >= 0)
    order = grouped[np.lexsort((keyed["place"][grouped], keyed["row"][grouped], label[grouped]))]
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    texts = regions.text()
    groups = sorted(
        hashlib.sha256(texts[label[part[0]]].encode() + b"\0" + keyed[part].tobytes()).digest()
        for part in np.split(order, cuts)
        if len(part)
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
