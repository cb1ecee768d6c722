"""Parquet files that are damaged, in their bytes or in what pandas keeps beside the columns."""

import json
import random

import pandas as pd
import pyarrow.parquet as pq
import pytest

from countervail.core.errors import SchemaError
from countervail.core.files.frames import read_frame

FRAME = pd.DataFrame(
    {"a": range(30), "b": ["x", "y", None] * 10, "c": pd.Categorical(["u", "v", "w"] * 10), "d": [1.5, None, 2.5] * 10}
)
DAMAGE = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b'{"index_columns": 3, "columns": 4}',
    b'{"index_columns": ["x"], "column_indexes": [], "columns": [{}]}',
    b'{"index_columns": [{"kind": "range"}], "column_indexes": [], "columns": []}',
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet") / "whole.parquet"
    FRAME.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("metadata", DAMAGE)
def test_damaged_metadata_are_said_in_one_line_or_passed_over(metadata, whole, tmp_path):
    table = pq.read_table(whole).replace_schema_metadata({b"pandas": metadata})
    pq.write_table(table, tmp_path / "a.parquet")
    try:
        assert len(read_frame(tmp_path / "a.parquet")) == len(FRAME)
    except SchemaError as error:
        assert str(error) == "The file 'a.parquet' is not a readable Parquet file."


def test_metadata_without_its_columns_are_refused(whole, tmp_path):
    table = pq.read_table(whole)
    about = json.loads(table.schema.metadata[b"pandas"])
    about["columns"] = None
    pq.write_table(table.replace_schema_metadata({b"pandas": json.dumps(about).encode()}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="not a readable Parquet file"):
        read_frame(tmp_path / "a.parquet")


def test_damaged_bytes_raise_nothing_but_our_own_error(whole, tmp_path, seeds):
    content = whole.read_bytes()
    refused = 0
    for seed in seeds(300, 10_000):
        rng = random.Random(seed)
        broken = bytearray(content)
        for _ in range(rng.choice([1, 3, 10])):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if rng.random() < 0.1:
            broken = broken[: rng.randrange(len(broken))]
        (tmp_path / "a.parquet").write_bytes(bytes(broken))
        try:
            read_frame(tmp_path / "a.parquet")
        except SchemaError:
            refused += 1
    assert refused > 50
