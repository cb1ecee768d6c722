"""One release whatever counts it: memory, DuckDB and Spark, any number of partitions, with little memory or much."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

import countervail as cv
from countervail.engine.scan import Scan
from countervail.engine.spark import relation as spark
from countervail.engine.spark.kept_lines import worth_keeping

PARTS = [1, 2, 4]
ROLES = {"identifiers": ["id"], "quasi_identifiers": ["age", "wide", "city"], "sensitive": ["illness"]}


def odd_people(seed, n=250):
    """Missing values, ties, skew, several alphabets, and whole numbers that no double holds."""
    rng = np.random.default_rng(seed)
    towns = ["Ghent", "Liège", "Lie\u0300ge ", "Αθήνα", "東京", "\U0001f600", "", "a'b`c\"d", None]
    wide = pd.array(2**53 + rng.zipf(1.6, n).clip(max=40), dtype="Int64")
    wide[rng.random(n) < 0.1] = pd.NA
    return pd.DataFrame(
        {
            "id": [f"person-{i}" for i in rng.permutation(n)],
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.choice([-0.0, 0.0, 1.5, 20, 20, 64], n)),
            "wide": wide,
            "city": rng.choice(np.array(towns, dtype=object), n, p=[0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.04, 0.03, 0.03]),
            "illness": rng.choice(["none", "flu", "gout"], n, p=[0.6, 0.3, 0.1]),
            "number": rng.choice([2**60 + 1, 2**60, -1], n),
        }
    )


def released(rows, engine, folder, settings, **where):
    """The release of a scan as a multiset of lines, its tree, and what was counted."""
    scan = cv.Table.scan(rows, engine=engine, **where, **ROLES)
    fitted = cv.Mondrian(**settings).fit(scan)
    written = fitted.write(folder)
    lines = sorted(map(repr, pq.read_table(folder).to_pylist()))
    scan.close()
    return lines, fitted.tree_.to_json(), written.classes, written.smallest


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "read again"])
@pytest.mark.parametrize("fits", [True, False], ids=["memory", "levels"])
def test_every_engine_gives_the_same_release(fits, kept, sessions, seeds, tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "worth_keeping", lambda sample: kept)
    if not fits:
        monkeypatch.setattr(Scan, "budget", lambda self, columns: 45)
    for seed in seeds(3, 20):
        frame, place = odd_people(seed), tmp_path / str(seed)
        place.mkdir()
        settings = [{"k": 5}, {"k": 4, "l": 2, "sensitive": "illness"}, {"k": 3, "choose": "span"}][seed % 3]
        found = []
        for parts in PARTS:
            rows = place / f"rows-{parts}"
            rows.mkdir()
            for i, at in enumerate(np.array_split(np.random.default_rng(seed).permutation(len(frame)), parts)):
                frame.iloc[at].to_parquet(rows / f"{i}.parquet")
            found += [released(rows, e, place / f"{e}-{parts}", settings) for e in ("memory", "duckdb")]
        kind = ["classic", "connect"][seed % 2]
        rows = place / f"rows-{PARTS[seed % 3]}"
        found.append(released(rows, "spark", place / "spark", settings, session=sessions[kind]))
        assert all(f == found[0] for f in found[1:])


def test_lines_are_kept_where_rows_are_often_equal():
    numbers = np.arange(20_000)
    assert not worth_keeping(pa.table({"x": numbers, "y": numbers % 7}))
    assert not worth_keeping(pa.table({"x": numbers // 1.001}))
    assert worth_keeping(pa.table({"x": numbers % 19_000}))
    assert not worth_keeping(pa.table({"x": numbers[:500] % 7}))


class KillsOnce:
    """Passes rows on, and kills the worker under it the first time."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __call__(self, batches):
        for batch in batches:
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
                continue
            above = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])
            os.kill(above, signal.SIGKILL)


def test_a_worker_killed_while_it_writes_leaves_the_complete_release(sessions, tmp_path, monkeypatch):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    odd_people(7).to_parquet(tmp_path / "rows.parquet")
    real = spark.write_frame

    def struck(frame, folder, rows_per_file):
        real(frame.mapInArrow(KillsOnce(tmp_path / "mark"), frame.schema), folder, rows_per_file)

    monkeypatch.setattr(spark, "write_frame", struck)
    monkeypatch.setattr(spark, "_FILE", 60)
    there = released(tmp_path / "rows.parquet", "spark", tmp_path / "spark", {"k": 5}, session=sessions["classic"])
    assert (tmp_path / "mark").exists() and len(list((tmp_path / "spark").glob("*.parquet"))) == 5
    assert there == released(tmp_path / "rows.parquet", "memory", tmp_path / "memory", {"k": 5})
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".countervail")]


DRIVER = """
import os, signal, sys
import countervail as cv
from countervail.engine.spark import relation
rows, out, when = sys.argv[1:]
real = relation.write_frame
def struck(frame, folder, rows_per_file):
    if when == "before":
        driver = os.getpid()
        def kill(batches):
            os.kill(driver, signal.SIGKILL)
            yield from batches
        frame = frame.mapInArrow(kill, frame.schema)
    real(frame, folder, rows_per_file)
    os.kill(os.getpid(), signal.SIGKILL)
relation.write_frame = struck
roles = {"identifiers": ["id"], "quasi_identifiers": ["age", "wide", "city"], "sensitive": ["illness"]}
scan = cv.Table.scan(rows, engine="spark", master="local[1]", **roles)
cv.Mondrian(k=5).fit(scan).write(out)
"""


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driver_killed_around_the_writing_leaves_nothing_of_that_name(when, tmp_path, request):
    if when == "after" and not request.config.getoption("--long"):
        pytest.skip("a session of its own: with --long")
    odd_people(7).to_parquet(tmp_path / "rows.parquet")
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        DRIVER,
        str(tmp_path / "rows.parquet"),
        str(tmp_path / "out"),
        when,
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    assert not (tmp_path / "out").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".countervail")]
