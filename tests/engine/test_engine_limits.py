"""Bad files, settings and disks: a word that names them, before work where that can be, and nothing half written."""

import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from rows_in_files import ROLES, people, spread

import countervail as cv
from countervail.engine import Scan

ENGINES = ["memory", "duckdb"]


def scan(source, engine="duckdb", **more):
    return cv.Table.scan(source, engine=engine, **{**ROLES, **more})


@pytest.fixture
def folder(tmp_path):
    return spread(people(300), tmp_path / "in", 3)


def other_file(folder, **columns):
    pd.DataFrame(people(300)).assign(**columns).to_parquet(folder / "1.parquet", index=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_files_of_one_folder_must_have_the_same_columns(engine, folder):
    other_file(folder, more=1)
    with pytest.raises(cv.SchemaError, match=r"'1.parquet' has columns that '0.parquet' lacks: \['more'\]"):
        scan(folder, engine)
    people(300).drop(columns="city").to_parquet(folder / "1.parquet", index=False)
    with pytest.raises(cv.SchemaError, match=r"'1.parquet' lacks columns that '0.parquet' has: \['city'\]"):
        scan(folder, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_files_of_one_folder_must_have_the_same_types(engine, folder):
    other_file(folder, city=7)
    with pytest.raises(cv.SchemaError, match=r"'1.parquet' has columns of another type: 'city' is int64 there"):
        scan(folder, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_that_the_schema_names_must_be_there(engine, folder):
    schema = cv.Table.from_frame(people(), **ROLES).schema.with_roles(sensitive=["illness"])
    for file in folder.iterdir():
        pd.read_parquet(file).drop(columns="city").to_parquet(file, index=False)
    with pytest.raises(cv.SchemaError, match=r"lacks columns that the schema names: \['city'\]"):
        cv.Table.scan(folder, schema, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kept", [0.5, 0.0])
def test_a_truncated_file_is_named_before_any_work(engine, kept, folder):
    whole = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(cv.SchemaError, match=r"'1.parquet' is not a readable Parquet file"):
        scan(folder, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_damaged_in_the_middle_is_named_and_leaves_nothing(engine, folder, tmp_path):
    whole = bytearray((folder / "1.parquet").read_bytes())
    whole[4:400] = bytes(396)
    (folder / "1.parquet").write_bytes(whole)
    with pytest.raises(cv.SchemaError, match=r"'1.parquet' is damaged"):
        cv.Mondrian(5).fit(scan(folder, engine)).write(tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_output_folder_that_exists_is_left_alone(engine, folder, tmp_path):
    (tmp_path / "out").mkdir()
    fitted = cv.Mondrian(5).fit(scan(folder, engine))
    with pytest.raises(cv.ParameterError, match=r"'folder' parameter of Mondrian.write must be a folder that does not"):
        fitted.write(tmp_path / "out")
    with pytest.raises(cv.DataNotFoundError, match=r"No folder"):
        fitted.write(tmp_path / "none" / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_disk_leaves_nothing(engine, tmp_path):
    source = spread(people(20_000).assign(note=np.arange(20_000)), tmp_path / "in", 1)
    fitted = cv.Mondrian(5).fit(scan(source, engine))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(cv.CountervailError, match=r"cannot be written \(.*\). Nothing has left."):
            fitted.write(tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_too_little_memory_is_said_with_the_setting(folder):
    for memory in ("1 MB", "many", 5, True, "2 pounds"):
        with pytest.raises(cv.ParameterError, match=r"'memory' parameter of Table.scan must be a size such as '2 GB'"):
            scan(folder, memory=memory)


def test_memory_below_what_a_step_needs_is_said_with_the_setting(tmp_path):
    rows = pd.DataFrame({"x": np.arange(400_000), "text": [f"{i:040d}" for i in range(400_000)]})
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    found = cv.Table.scan(tmp_path / "rows.parquet", engine="duckdb", memory="32 MB", threads=1)
    found.relation.dialect._db.execute("SET max_temp_directory_size = '0MB'")  # nothing can be spilled
    with pytest.raises(cv.ParameterError, match=r"DuckDB needs more memory .* Give more with memory='...'"):
        found.relation.grouped(["x", "text"])


def test_a_column_with_more_values_than_the_budget_is_named(folder, monkeypatch):
    monkeypatch.setattr(Scan, "budget", lambda self, columns: 40)
    with pytest.raises(
        cv.ParameterError, match=r"'memory' .*different values of 'age', of which there are more than 40"
    ):
        cv.Mondrian(5).fit(scan(folder))


def test_an_engine_that_is_not_installed_is_said(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(
        cv.ParameterError, match=r"'engine' .* installed. Got 'duckdb' instead. Install it: pip install"
    ):
        scan(folder)
    with pytest.raises(cv.ParameterError, match=r"'engine' parameter of Table.scan must be one of"):
        scan(folder, "abacus")


@pytest.mark.parametrize("engine", ENGINES)
def test_k_above_the_rows_is_refused(engine, folder):
    with pytest.raises(cv.ParameterError, match=r"'k' parameter of Mondrian must be at most the number of rows, 300"):
        cv.Mondrian(301).fit(scan(folder, engine))


def test_a_url_that_cannot_be_reached_is_named():
    with pytest.raises(cv.CountervailError, match=r"s3://nobody/rows.parquet"):
        scan("s3://nobody/rows.parquet?secret=1")


@pytest.mark.parametrize("engine", ENGINES)
def test_no_file_at_all(engine, tmp_path):
    with pytest.raises(cv.DataNotFoundError, match=r"holds no .parquet file"):
        scan(tmp_path, engine)
    with pytest.raises(cv.DataNotFoundError, match=r"No data file at"):
        scan(tmp_path / "*.parquet", engine)


def test_what_works_row_by_row_refuses_a_scan(folder, tmp_path):
    rows = scan(folder)
    with pytest.raises(cv.ParameterError, match=r"'table' parameter of Microaggregation must be a Table"):
        cv.Microaggregation(5).fit(rows)
    with pytest.raises(cv.ParameterError, match=r"'mode' .* must be 'strict' for a scan with l or t"):
        cv.Mondrian(5, mode="relaxed", l=2, sensitive="illness").fit(rows)
    with pytest.raises(cv.ParameterError, match=r"Use write"):
        cv.Mondrian(5).fit(rows).protect()
    table = cv.Table.from_frame(people(300), **ROLES)
    with pytest.raises(cv.ParameterError, match=r"a scan that was fitted in this process"):
        cv.Mondrian(5).fit(table).write(tmp_path / "out")


@pytest.mark.parametrize("engine", ENGINES)
def test_people_with_several_rows_hide_among_as_many_more(engine, folder, tmp_path):
    frame = people(300).assign(id=np.arange(300) // 2)
    frame.to_parquet(tmp_path / "twice.parquet", index=False)
    written = cv.Mondrian(5).fit(scan(tmp_path / "twice.parquet", engine)).write(tmp_path / "out")
    wanted = cv.Mondrian(5).fit(cv.Table.from_frame(frame, **ROLES)).protect()
    assert (written.smallest, written.caveats) == (int(np.bincount(wanted.classes()).min()), wanted.caveats)


KILLED = """
import os, signal, sys
import countervail as cv
from countervail.engine.files import parts
from countervail.protect import _scanned

source, out, point = sys.argv[1:]
scan = cv.Table.scan(source, engine="duckdb", threads=2, identifiers=["id"], quasi_identifiers=["age", "city"])
fitted = cv.Mondrian(5).fit(scan)
write, recount, rename = parts._PartFile.write, _scanned.recounted, os.rename

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if point == "writing":
    parts._PartFile.write = lambda self, rows: (write(self, rows), die())
if point == "counting":
    _scanned.recounted = lambda *given: (recount(*given), die())
if point == "naming":
    os.rename = die
if point == "named":
    os.rename = lambda *given: (rename(*given), die())
fitted.write(out)
"""


def test_whoever_is_killed_leaves_the_whole_release_or_none(folder, tmp_path):
    points = ["writing", "counting", "naming", "named"]
    runs = {p: subprocess.Popen([sys.executable, "-c", KILLED, str(folder), str(tmp_path / p), p]) for p in points}
    assert [run.wait() for run in runs.values()] == [-9] * 4
    assert [p for p in points if (tmp_path / p).exists()] == ["named"]
    assert len(pd.read_parquet(tmp_path / "named")) == 300
    assert (tmp_path / "named" / "_release.json").is_file()
