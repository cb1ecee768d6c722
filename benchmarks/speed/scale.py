"""Tables of any size: Parquet to Parquet with Mondrian (k=10, eight quasi-identifiers), and risk and check beside it.

Two generated tables, each file of 5,000,000 rows drawn with a seed of its own:
"adult" resamples the rows of Adult with replacement; each quasi-identifier of a row is, with a chance of 1%, that of
another row drawn at random, so that combinations are skewed and ever new ones appear; an identifier counts the rows.
"continuous" draws eight numbers in steps (normal, exponential and uniform), so that almost no two rows are equal.

Every case runs in a process of its own: seconds on the clock from its start, CPU seconds of all its threads and
processes, the most memory they held (resident), and the load of the machine before and after. Before the first one a
small table is released by every engine, so that kernels and modules are compiled. The release of the largest run is
counted by a query of its own, which shares no code with what wrote it.

The record is written after every case. `--resume` passes over cases that this commit has measured. Generated tables and
releases are removed after the last case that needs them (`--keep` leaves them).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from _process import cpu_seconds, in_a_process, peak_gb
from _record import ROOT, parse, provenance, write, writes

RESULTS = ROOT / "benchmarks" / "results" / "scale.json"
PAGE = ROOT / "docs" / "guide" / "scale.md"
K = 10
SMALL = 10**5  # rows with which everything is compiled, and of a quick run
GROWTH = 1.2  # times linear, from 10M to 100M
STEP = 5_000_000
QUASI = ["age", "sex", "race", "relationship", "marital-status", "workclass", "education-num", "occupation"]
OTHERS = ["hours-per-week", "income"]
NUMBERS = [f"x{i}" for i in range(8)]
CASES: dict[str, dict[str, Any]] = {
    "memory, 10M": {"set": "adult", "rows": 10**7, "engine": "memory", "goal_seconds": 8},
    "duckdb, 10M": {"set": "adult", "rows": 10**7, "engine": "duckdb", "goal_seconds": 15, "goal_gb": 2},
    "spark, 10M": {"set": "adult", "rows": 10**7, "engine": "spark", "memory": "4 GB", "goal_times": 3},
    "duckdb, 10M, almost all different": {"set": "continuous", "rows": 10**7, "engine": "duckdb", "memory": "3 GB"},
    "duckdb, 100M": {
        "set": "adult",
        "rows": 10**8,
        "engine": "duckdb",
        "memory": "3 GB",
        "goal_seconds": 240,
        "goal_gb": 4,
    },
    "risk, duckdb, 100M": {
        "set": "adult",
        "rows": 10**8,
        "engine": "duckdb",
        "what": "risk",
        "goal_seconds": 60,
        "goal_gb": 2,
    },
    "check, duckdb, 100M": {
        "set": "adult",
        "rows": 10**8,
        "engine": "duckdb",
        "what": "check",
        "goal_seconds": 60,
        "goal_gb": 2,
    },
}


def generate(name: str, rows: int, folder: Path) -> Path:
    """The files of a table, made where they are not there yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = folder / f"{name}-{rows}"
    if place.is_dir():
        return place
    made = folder / f".{name}-{rows}"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    draw = _adult() if name == "adult" else _continuous
    for i, start in enumerate(range(0, rows, STEP)):
        table = pa.table(draw(np.random.default_rng([7, i]), min(STEP, rows - start), start))
        pq.write_table(table, made / f"part-{i:03d}.parquet", row_group_size=1_000_000, store_schema=False)
    made.rename(place)
    return place


def _adult() -> Any:
    import pandas as pd
    import pyarrow as pa

    import countervail as cv

    frame = cv.load("adult").frame
    coded = {n: pd.factorize(frame[n].astype(object)) for n in (*QUASI, *OTHERS)}

    def draw(rng: np.random.Generator, n: int, start: int) -> dict[str, Any]:
        who = rng.integers(0, len(frame), n)
        columns: dict[str, Any] = {"id": pa.array(rng.permutation(n) + start)}
        for name, (codes, values) in coded.items():
            taken = codes[who]
            if name in QUASI:
                other = np.flatnonzero(rng.random(n) < 0.01)
                taken[other] = codes[rng.integers(0, len(frame), len(other))]
            cells = pa.DictionaryArray.from_arrays(pa.array(taken, mask=taken < 0), pa.array(list(values)))
            columns[name] = cells if pa.types.is_string(cells.dictionary.type) else cells.dictionary_decode()
        return columns

    return draw


def _continuous(rng: np.random.Generator, n: int, start: int) -> dict[str, Any]:
    drawn = [rng.normal(size=n), rng.exponential(size=n), rng.random(n)]
    columns = {name: (1000 * drawn[i % 3][rng.permutation(n)]).round() for i, name in enumerate(NUMBERS)}
    return {"id": rng.permutation(n) + start, **columns, "granted": np.where(rng.random(n) < 0.3, "yes", "no")}


def scanned(case: dict[str, Any], source: Path) -> Any:
    """The rows of a case, in its engine."""
    import countervail as cv

    adult = case["set"] == "adult"
    where = {"master": "local[2]"} if case["engine"] == "spark" else {}
    return cv.Table.scan(
        source,
        engine=case["engine"],
        **where,
        memory=case.get("memory", "2 GB"),
        threads=2,
        identifiers=["id"],
        quasi_identifiers=QUASI if adult else NUMBERS,
        target="income" if adult else "granted",
    )


def source_of(case: dict[str, Any], folder: Path) -> Path:
    """Where the rows of a case are."""
    return folder / f"{case['set']}-{case['rows']}"


def release_of(case: dict[str, Any], folder: Path) -> Path:
    """Where the release of a case goes."""
    return folder / f"released-{case['set']}-{case['rows']}-{case['engine']}"


def run(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One case, in this process."""
    source, out = source_of(case, folder), release_of(case, folder)
    start, load, found, steps = time.perf_counter(), os.getloadavg()[0], {}, {}
    what = case.get("what", "release")
    import countervail as cv

    steps["import"] = time.perf_counter() - start
    if what == "release":
        shutil.rmtree(out, ignore_errors=True)
        scan = scanned(case, source)
        fitted = cv.Mondrian(K).fit(scan)
        steps["fit"] = time.perf_counter() - start
        written = fitted.write(out)
        found = {"rows_written": written.rows, "classes": written.classes, "smallest_class": written.smallest}
    elif what == "risk":
        told = cv.measure.risk(scanned(case, source), k=K)
        found = {"unique": told.unique, "below_k": told.below_k, "combinations": told.classes}
    else:
        from countervail.core.files.release_file import examine
        from countervail.engine.published import count_published

        published = count_published(out, scanned(case, source).schema, engine=case["engine"], threads=2)
        verdict = examine(published, cv.KAnonymity(K))
        found = {"holds": verdict.holds, "reached": verdict.reached, "classes": verdict.classes}
    return {
        **found,
        "seconds": time.perf_counter() - start,
        "seconds_at": steps,
        "cpu_seconds": cpu_seconds(os.getpid()),
        "peak_gb": peak_gb(os.getpid()),
        "load_before": load,
        "load_after": os.getloadavg()[0],
    }


def recount(out: Path, rows: int) -> dict[str, Any]:
    """The release counted by a query of its own."""
    import duckdb

    db = duckdb.connect(config={"memory_limit": "2GB", "threads": 2})
    names = ", ".join(f'"{n}"' for n in QUASI)
    files = f"read_parquet('{out}/*.parquet')"
    sizes = f"SELECT count(*) AS n FROM {files} GROUP BY {names}"
    least, total, classes = db.execute(f"SELECT min(n), sum(n), count(*) FROM ({sizes})").fetchone() or (0, 0, 0)
    columns = [line[0] for line in db.execute(f"DESCRIBE SELECT * FROM {files}").fetchall()]
    return {
        "smallest_class": int(least),
        "rows": int(total),
        "classes": int(classes),
        "columns": columns,
        "holds": bool(
            least >= K and total == rows and "id" not in columns and sorted(columns) == sorted(QUASI + OTHERS)
        ),
    }


def table(found: dict[str, Any]) -> str:
    """The figures as a table of the guide."""
    lines = ["| | seconds | goal | CPU seconds | most memory, GB | goal | load |", "|---|---|---|---|---|---|---|"]
    for name, r in found.items():
        seconds, memory = (f"{r[g]}" if g in r else "" for g in ("goal_seconds", "goal_gb"))
        if "goal_times" in r:
            seconds = f"{r['goal_times']} times DuckDB"
        lines.append(
            f"| {name} | {r['seconds']:.1f} | {seconds} | {r['cpu_seconds']:.1f} | {r['peak_gb']:.2f} | {memory} | "
            f"{r['load_before']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def judged(found: dict[str, Any]) -> dict[str, Any]:
    """Growth, and the goals that were missed."""
    missed = []
    for name, r in found.items():
        goal = r.get("goal_seconds", np.inf)
        beside = found.get(name.replace("spark", "duckdb")) if "goal_times" in r else None
        if beside is not None:
            goal = r["goal_times"] * beside["seconds"]
        if r["seconds"] > goal or r["peak_gb"] > r.get("goal_gb", np.inf):
            goals = f"{goal:.1f} s, {r.get('goal_gb', 'any')} GB"
            missed.append(f"{name}: {r['seconds']:.1f} s, {r['peak_gb']:.2f} GB; goals {goals}")
    small, large = (found.get(f"duckdb, {n}M") for n in (10, 100))
    growth = None if small is None or large is None else large["cpu_seconds"] / small["cpu_seconds"] / 10
    if growth is not None and growth > GROWTH:
        missed.append(f"growth from 10M to 100M: {growth:.2f} times linear; goal {GROWTH}")
    return {"growth_of_cpu": growth, "goal_growth": GROWTH, "missed": missed}


def record(given: argparse.Namespace, about: dict[str, Any], found: dict[str, Any], recounted: Any) -> None:
    """The record so far, and the table of the guide."""
    found = {n: found[n] for n in CASES if n in found}
    if writes(given):
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split("<!-- table -->")[0], page.split("<!-- end -->")[1]
        PAGE.write_text(f"{before}<!-- table -->\n{table(found)}<!-- end -->{after}", encoding="utf-8")
        write(given, {**about, "k": K, "cases": found, **judged(found), "recounted": recounted})


def tidy(cases: dict[str, dict[str, Any]], left: list[str], folder: Path) -> None:
    """Remove what no case that is left needs."""
    needed = {source_of(cases[n], folder) for n in left}
    needed |= {release_of(cases[n], folder) for n in left if cases[n].get("what") == "check"}
    for path in folder.iterdir():
        if path not in needed and path.name.split("-")[0] in ("released", "adult", "continuous"):
            shutil.rmtree(path)


def main() -> None:
    """Generate, measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / ".scale", help="where the generated files go")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", choices=list(CASES), help="the cases to run; others keep their record")
    parser.add_argument("--resume", action="store_true", help="pass over cases that this commit has measured")
    parser.add_argument("--keep", action="store_true", help="leave generated tables and releases where they are")
    given = parse(parser, RESULTS, quick="a tenth of a million rows")
    if given.case is not None:
        print(json.dumps(run({**CASES[given.case], "rows": given.rows}, given.folder)))
        return
    cases = {n: {**c, "rows": min(c["rows"], SMALL) if given.quick else c["rows"]} for n, c in CASES.items()}
    about = provenance(["adult"], 7, "duckdb", "pyarrow", "pyspark")
    kept = (given.only or given.resume) and writes(given) and given.output.is_file()
    before = json.loads(given.output.read_text()) if kept else {}
    found: dict[str, Any] = before.get("cases", {})
    recounted = before.get("recounted")
    left = [n for n in cases if not given.only or n in given.only]
    if given.resume:
        left = [n for n in left if found.get(n, {}).get("commit") != about["commit"]]
    given.folder.mkdir(parents=True, exist_ok=True)

    def measured(name: str, rows: int) -> dict[str, Any]:
        generate(cases[name]["set"], rows, given.folder)
        words = ["--case", name, "--rows", str(rows), "--folder", str(given.folder)]
        return in_a_process(__file__, words, given.folder / "bytecode")

    for engine in sorted({cases[n]["engine"] for n in left}):
        measured(next(n for n, c in cases.items() if c["engine"] == engine and "what" not in c), SMALL)
    while left:
        name, case = left[0], cases[left[0]]
        release = next(n for n, c in cases.items() if "what" not in c and _alike(c, case))
        if case.get("what") == "check" and not release_of(case, given.folder).is_dir():
            measured(release, case["rows"])
        row = {**case, "commit": about["commit"], **measured(name, case["rows"])}
        found[name] = row
        print(f"{name}: {row['seconds']:.1f} s, {row['cpu_seconds']:.1f} CPU s, {row['peak_gb']:.2f} GB", flush=True)
        if name == "duckdb, 100M":
            recounted = recount(release_of(case, given.folder), case["rows"])
            print(f"counted anew: {recounted}", flush=True)
        left = left[1:]
        record(given, about, found, recounted)
        if not given.keep:
            tidy(cases, left, given.folder)
    print("\n".join(judged(found)["missed"]) or "Every goal is met.")


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[n] == other[n] for n in ("set", "rows", "engine"))


if __name__ == "__main__":
    main()
