"""Spark on two cores: beside DuckDB on ten million rows, and beside mosaicrown's Mondrian on one million.

Rows of Adult drawn with replacement; of ten million, each quasi-identifier is with a chance of 1% that of another row.
k=10, Parquet (mosaicrown: CSV) to files, in a process of its own each: seconds on the clock from the start of Python,
of which the session takes some; CPU seconds of all processes; the load of the machine before and after. A small run
before compiles what is compiled once. Each of the two parts is recorded when it is done.

`--mosaicrown PYTHON CLONE` names a Python with their requirements, and a clone of github.com/mosaicrown/mondrian:
nothing of theirs is part of this repository. NCP is in percent, sets counted as sets, with the same denominators.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _process import cpu_seconds, in_a_process
from _record import ROOT, code, parse, versions, write, writes

RESULTS = ROOT / "benchmarks" / "results" / "spark.json"
K = 10
Q5 = ["age", "sex", "race", "relationship", "marital-status"]
Q8 = [*Q5, "workclass", "education-num", "occupation"]
SECRET = {5: "occupation", 8: "income"}


def rows_of(n: int, quasi: list[str], folder: Path) -> Path:
    """A file of n rows with these quasi-identifiers and a sensitive column; missing is a text, for peers."""
    import countervail as cv

    path = folder / "rows.parquet"
    frame = cv.load("adult").frame[[*quasi, SECRET[len(quasi)]]].copy()
    for name in frame.columns.difference(["age", "education-num"]):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), "missing").astype(str)
    rng = np.random.default_rng(11)
    drawn = frame.iloc[rng.integers(0, len(frame), n)].reset_index(drop=True)
    if len(quasi) == 8:
        for name in quasi:
            other = rng.random(n) < 0.01
            drawn.loc[other, name] = frame[name].to_numpy()[rng.integers(0, len(frame), int(other.sum()))]
    drawn.to_parquet(path, index=False, row_group_size=1_000_000)
    return path


def ours(engine: str, path: Path, quasi: list[str]) -> dict[str, Any]:
    """One release, in this process."""
    start, load = time.perf_counter(), os.getloadavg()[0]
    import countervail as cv

    where = {"master": "local[2]"} if engine == "spark" else {}
    scan = cv.Table.scan(
        path, engine=engine, memory="4 GB", threads=2, quasi_identifiers=quasi, sensitive=[SECRET[len(quasi)]], **where
    )
    opened = time.perf_counter() - start
    out = path.parent / engine
    written = cv.Mondrian(K).fit(scan).write(out)
    return {
        "seconds": time.perf_counter() - start,
        "seconds_to_session": opened,
        "cpu_seconds": cpu_seconds(os.getpid()),
        "load": [load, os.getloadavg()[0]],
        "rows": written.rows,
        "classes": written.classes,
        "smallest": written.smallest,
    }


def case(engine: str, path: Path, quasi: list[str]) -> dict[str, Any]:
    """The same in a process of its own."""
    found = in_a_process(__file__, ["--case", engine, str(path), str(len(quasi))], path.parent / "bytecode")
    told = f"{found['seconds']:.1f} s, {found['cpu_seconds']:.1f} CPU s, {found['classes']} classes"
    print(f"{engine}: {told}", flush=True)
    return found


def theirs(python: Path, clone: Path, path: Path, quasi: list[str], limit: float) -> dict[str, Any]:
    """mosaicrown's, ended when it takes longer than the limit."""
    folder = path.parent / "mosaicrown"
    folder.mkdir()
    pd.read_parquet(path).to_csv(folder / "rows.csv", index=False)
    job = {
        "input": (folder / "rows.csv").as_uri(),
        "output": (folder / "out.csv").as_uri(),
        "quasiid_columns": quasi,
        "sensitive_columns": [SECRET[len(quasi)]],
        "column_score": "norm_span",
        "fragmentation": "quantile",
        "K": K,
        "measures": [],
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    start, load = time.perf_counter(), os.getloadavg()[0]
    words = [str(python), "-I", str(Path(__file__).parent / "_mosaicrown_worker.py"), str(clone), str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    used, ended = 0.0, False
    while process.poll() is None and time.perf_counter() - start < limit:
        used = max(used, cpu_seconds(process.pid))
        time.sleep(1)
    if process.poll() is None:
        os.killpg(process.pid, 9)
        process.wait()
        ended = True
    commit = subprocess.run(
        ["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    told: dict[str, Any] = {"commit": commit, "cpu_seconds": used, "load": [load, os.getloadavg()[0]], "ended": ended}
    if ended or not (folder / "answers.json").is_file():
        return {**told, "seconds": time.perf_counter() - start}
    parts = [pd.read_csv(p, dtype=str) for p in sorted((folder / "out.csv").glob("*.csv"))]
    return {**told, **json.loads((folder / "answers.json").read_text()), **quality(pd.concat(parts), path, quasi)}


def quality(published: pd.DataFrame, path: Path, quasi: list[str]) -> dict[str, Any]:
    """NCP, classes and the smallest of them, of published texts: `17`, `[17-20]` or `17-20`, `a`, `{a, b}`."""
    rows = pd.read_parquet(path, columns=quasi)
    sizes = published.groupby(quasi, dropna=False).size()
    cells, total = sizes.index.to_frame(index=False), 0.0
    for name in quasi:
        numeric = pd.api.types.is_numeric_dtype(rows[name])
        width = rows[name].max() - rows[name].min() if numeric else rows[name].nunique()
        loss = [_loss(str(cell), numeric, float(width)) for cell in cells[name]]
        total += float(np.dot(loss, sizes.to_numpy()))
    share = 100 * total / len(quasi) / len(published)
    return {"ncp_percent": share, "classes": len(sizes), "smallest": int(sizes.min()), "rows": len(published)}


def _loss(cell: str, numeric: bool, width: float) -> float:
    if not numeric:
        held = len(cell.strip("{}").split(",")) if cell.startswith("{") else 1
        return 0.0 if held == 1 else held / width
    low, _, high = cell.strip("[]").partition("-")
    return (float(high) - float(low)) / width if high else 0.0


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mosaicrown", nargs=2, type=Path, metavar=("PYTHON", "CLONE"), help="the peer, where it is")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which the peer is ended")
    parser.add_argument("--only", choices=["peer", "size"], help="one of both parts; the other keeps its record")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    given = parse(parser, RESULTS, quick="ten thousand rows")
    if given.case is not None:
        engine, path, columns = given.case
        print(json.dumps(ours(engine, Path(path), Q5 if columns == "5" else Q8)))
        return
    about = {**code(), "versions": versions("pyspark", "duckdb", "pyarrow"), "k": K}
    found: dict[str, Any] = json.loads(given.output.read_text()) if given.output.is_file() else {}
    for name, part in (("peer", beside_peer), ("size", at_size)):
        if given.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="countervail-") as folder:
                found[name] = {"commit": about["commit"], **part(given, Path(folder))}
            if writes(given):
                write(given, {**found, **about})


def beside_peer(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One million rows and five quasi-identifiers, beside mosaicrown's where that is given."""
    path = rows_of(10_000, Q5, folder)
    case("spark", path, Q5)  # everything is compiled once
    shutil.rmtree(folder / "spark")
    path = rows_of(10_000 if given.quick else 1_000_000, Q5, folder)
    peer: dict[str, Any] = {"goal_times": 10, "spark": case("spark", path, Q5)}
    parts = [pd.read_parquet(p) for p in sorted((folder / "spark").glob("*.parquet"))]
    peer["spark"] |= quality(pd.concat(parts).astype(str), path, Q5)
    print(f"ours: NCP {peer['spark']['ncp_percent']:.3f}%", flush=True)
    if given.mosaicrown is not None:
        peer["mosaicrown"] = theirs(*given.mosaicrown, path, Q5, given.limit)
        peer["times"] = peer["mosaicrown"]["seconds"] / peer["spark"]["seconds"]
        peer["times_cpu"] = peer["mosaicrown"]["cpu_seconds"] / peer["spark"]["cpu_seconds"]
        if "ncp_percent" in peer["mosaicrown"]:
            no_worse = peer["spark"]["ncp_percent"] <= peer["mosaicrown"]["ncp_percent"]
            peer["holds"] = bool(no_worse and peer["times"] >= peer["goal_times"])
        print(f"mosaicrown: {peer['mosaicrown']}; ours is {peer['times']:.1f} times as fast (goal: 10)", flush=True)
    return peer


def at_size(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Ten million rows and eight quasi-identifiers, beside DuckDB."""
    path = rows_of(10_000, Q8, folder)
    for engine in ("duckdb", "spark"):
        case(engine, path, Q8)
        shutil.rmtree(folder / engine)
    path = rows_of(10_000 if given.quick else 10_000_000, Q8, folder)
    size: dict[str, Any] = {"goal_times": 3}
    size |= {engine: case(engine, path, Q8) for engine in ("duckdb", "spark")}
    size["times"] = size["spark"]["seconds"] / size["duckdb"]["seconds"]
    size["times_cpu"] = size["spark"]["cpu_seconds"] / size["duckdb"]["cpu_seconds"]
    size["holds"] = bool(size["times"] <= size["goal_times"])
    print(f"Spark takes {size['times']:.1f} times as long as DuckDB (goal: 3)", flush=True)
    return size


if __name__ == "__main__":
    main()
