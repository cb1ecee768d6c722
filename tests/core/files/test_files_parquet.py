"""Parquet files that are damaged, in their bytes or in what pandas keeps beside the columns."""

import json
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from countervail.core.errors import SchemaError
from countervail.core.files.frames import read_frame
from countervail.core.files.unpacked import LIMIT

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


BOMBS = {
    "rows": dict.fromkeys("abcdefgh", pa.DictionaryArray.from_arrays(np.zeros(1 << 20, np.int8), [7.5])),
    "a long text": {"a": pa.DictionaryArray.from_arrays(np.zeros(1 << 13, np.int8), ["x" * (1 << 13)])},
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_read(kind, tmp_path, monkeypatch):
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table(BOMBS[kind]), path, compression="zstd")
    assert path.stat().st_size < 50_000
    monkeypatch.setenv(LIMIT, str(60_000_000))
    monkeypatch.setattr(pd, "read_parquet", lambda *_: pytest.fail("nothing is to be unpacked"))
    with pytest.raises(SchemaError) as caught:
        read_frame(path)
    assert "unpacks to more than 60,000,000 bytes" in str(caught.value) and LIMIT in str(caught.value)


def test_gigabytes_are_refused_unless_they_are_asked_for(tmp_path):
    texts = pa.DictionaryArray.from_arrays(np.zeros(1 << 15, np.int8), ["x" * (1 << 17)])
    pq.write_table(pa.table({"a": texts}), tmp_path / "bomb.parquet", compression="zstd")
    with pytest.raises(SchemaError, match="unpacks to more than 2,147,483,648 bytes"):
        read_frame(tmp_path / "bomb.parquet")


@pytest.mark.parametrize("column", [np.arange(3000), ["a long text " * 30] * 3000, [[1, 2, 3]] * 3000])
def test_the_limit_holds_for_every_kind_of_column_and_can_be_raised(column, tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"a": pd.Series(list(column))}).to_parquet(path)
    monkeypatch.setenv(LIMIT, "20000")
    with pytest.raises(SchemaError, match="unpacks to more than 20,000 bytes"):
        read_frame(path)
    monkeypatch.setenv(LIMIT, "2000000")
    assert len(read_frame(path)) == 3000


def test_a_text_that_occurs_often_counts_as_often_as_it_occurs(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"a": ["x" * 1000] * 500 + [None] * 500, "b": range(1000)}).to_parquet(path)
    monkeypatch.setenv(LIMIT, "500000")
    assert len(read_frame(path)) == 1000
    monkeypatch.setenv(LIMIT, "499999")
    with pytest.raises(SchemaError, match="unpacks to more"):
        read_frame(path)
