"""Rows in an engine are counted, cut and written as those of a table are."""

import json

import numpy as np
import pandas as pd
import pytest
from rows_in_files import ROLES, people

import countervail as cv
from countervail.engine.interface import COUNT

ENGINES = ["memory", "duckdb"]


def lines(frame):
    """The rows as texts, in an order of their own."""
    return sorted(map(tuple, frame.astype(object).where(frame.notna(), None).astype(str).itertuples(index=False)))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    people().to_parquet(path)
    return path


@pytest.mark.parametrize("engine", ENGINES)
def test_values_are_settled_before_rows_are_counted(engine, tmp_path):
    rows = pd.DataFrame({"x": [0.0, -0.0, np.nan, np.nan, 2.0], "y": ["a", "a", None, None, "b"], "w": [2**62 + 1] * 5})
    rows.to_parquet(tmp_path / "rows.parquet")
    relation = cv.Table.scan(tmp_path / "rows.parquet", engine=engine).relation
    found = {tuple(line.values()) for line in relation.grouped(["x", "y", "w"]).to_pylist()}
    assert found == {(0.0, "a", 2**62 + 1, 2), (None, None, 2**62 + 1, 2), (2.0, "b", 2**62 + 1, 1)}
    assert relation.grouped(["x", "y"], limit=2) is None
    assert relation.count() == 5
    assert relation.extremes("x") == (0.0, 2.0)
    assert [relation.quantile("x", r) for r in range(4)] == [0.0, 0.0, 2.0, None]
    assert relation.most_equal("y") == 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "options",
    [{}, {"l": 2, "sensitive": "illness"}, {"t": 0.3, "sensitive": "illness"}, {"by_class": True, "choose": "span"}],
)
def test_a_scan_is_released_as_its_table_is(engine, options, file, tmp_path):
    table = cv.Table.read(file, **ROLES)
    wanted = cv.Mondrian(k=7, **options).fit(table).protect(table)
    scan = cv.Table.scan(file, engine=engine, **ROLES)
    fitted = cv.Mondrian(k=7, **options).fit(scan)
    written = fitted.write(tmp_path / "out")
    assert lines(pd.read_parquet(tmp_path / "out")) == lines(wanted.to_text_frame())
    assert (written.rows, written.guarantee) == (600, wanted.guarantee)
    assert np.isclose(written.ncp, cv.measure.ncp(wanted).mean(), rtol=1e-12)
    about = json.loads((tmp_path / "out" / "_release.json").read_text())
    assert about["guarantee"] == wanted.guarantee.to_dict()
    assert sorted(about["schema"]["columns"]) == ["age", "city", "granted", "illness", "income"]
    assert len(scan.relation.grouped(["age"])[COUNT]) == people()["age"].nunique()
    scan.close()
