"""Protectors that answer, fitted to rows on a cluster of Spark: they hold what they hold of a table in memory."""

import numpy as np
import pandas as pd
import pytest
from rows_in_files import people, spread

import countervail as cv

ROLES = {
    "identifiers": ["id"],
    "quasi_identifiers": ["age", "city"],
    "sensitive": ["illness"],
    "target": "granted",
    "favourable": "yes",
}
DOMAINS = {
    "age": (18, 90),
    "income": (0.0, 20000.0, 21),
    "city": ["Ghent", "Bruges", "Liège", "Ostend"],
    "illness": ["none", "flu", "gout"],
    "granted": ["yes", "no"],
}


def model(rows):
    """Whoever earns enough."""
    return np.where(rows["income"].fillna(0).to_numpy(dtype=float) > 2000, "yes", "no")


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_groups_are_sealed_and_answer_as_in_memory(kind, sessions, tmp_path):
    frame = people(300, 4)
    frame["income"] = (frame["income"] // 500 * 500).fillna(1500.0)
    source, asked = spread(frame, tmp_path / "in", 4), frame.drop(columns=["id", "granted"]).head(10)
    scan = cv.Table.scan(source, engine="spark", session=sessions[kind], **ROLES)
    settings = {"l": 2, "sensitive": "illness"} if kind == "connect" else {}
    found = cv.CFK(5, **settings).fit(scan, model)
    scan.close()
    table = cv.Table.from_frame(frame, **ROLES)
    wanted = cv.CFK(5, **settings).fit(table, model)
    assert found.search_.sealed_.digest == wanted.search_.sealed_.digest
    pd.testing.assert_frame_equal(found.explain(asked).to_frame(), wanted.explain(asked).to_frame())


def test_noisy_counts_are_drawn_as_in_memory(sessions, tmp_path):
    frame = people(300, 5)
    scan = cv.Table.scan(
        spread(frame, tmp_path / "in", 2), engine="spark", session=sessions["classic"], domains=DOMAINS, **ROLES
    )
    table = cv.Table.from_frame(frame, domains=DOMAINS, **ROLES)
    drawn = [cv.PrivateSynthetic(50.0, random_state=1).fit(rows, model).draw_.to_dict() for rows in (scan, table)]
    assert drawn[0] == drawn[1]
    scan.close()
