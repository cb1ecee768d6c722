"""A schema proposed from rows in an engine: column by column, from distinct values and how often each is there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countervail.core.errors import SchemaError, bad_parameter
from countervail.data.header import check_header
from countervail.data.propose import Proposal, propose_columns
from countervail.engine.files.sources import Sources
from countervail.engine.interface import COUNT
from countervail.engine.scan import as_frame, open_relation, room_for


def propose_scan(
    sources: Sources,
    target: str | None = None,
    *,
    engine: str = "memory",
    memory: int | str = "2 GB",
    threads: int | None = None,
    master: str | None = None,
) -> Proposal:
    """What `propose_schema` guesses of a frame with the same rows.

    A column of texts or whole numbers that has more values than the memory holds is taken for an identifier.
    """
    import pyarrow as pa

    relation, room = open_relation(sources, engine, memory, threads, None, master)
    limit, held, many = room_for(room, 1), {}, {}
    try:
        if not relation.count():
            raise SchemaError("The table is empty: at least one row is needed to propose a schema.")
        for name, kind in relation.kinds.items():
            found = relation.grouped([name], limit=None if relation.here else limit)
            if found is None and pa.types.is_floating(kind):
                must = f"enough for the different values of '{name}', of which there are more than {limit:,}"
                raise bad_parameter("propose_scan", "memory", must, f"{room:,} bytes", "Give more (--memory).")
            if found is None:
                many[name] = pa.types.is_integer(kind), limit
                held[name] = pd.Series([], dtype=object), np.zeros(0, np.int64)
                continue
            found = found.sort_by(name)  # engines have no order
            held[name] = as_frame(found.select([name]))[name], found[COUNT].to_numpy()
    finally:
        relation.close()
    check_header({n: values for n, (values, _) in held.items()})
    return propose_columns(held, target, many)
