"""Tables of any size: Parquet to Parquet with Mondrian (k=10, eight quasi-identifiers), and risk and check beside it.

Two generated tables, each file of 5,000,000 rows drawn with a seed of its own:
"adult" resamples the rows of Adult with replacement; each quasi-identifier of a row is, with a chance of 1%, that of
another row drawn at random, so that combinations are skewed and ever new ones appear; an identifier counts the rows.
"continuous" draws eight numbers in steps (normal, exponential and uniform), so that almost no two rows are equal.

Every case runs in a process of its own: seconds on the clock, CPU seconds of all threads, the most memory it held
(resident), and the load of the machine before and after. The release of the largest run is counted by a query of its
own, which shares no code with what wrote it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _record import ROOT, parse, provenance, write, writes

RESULTS = ROOT / "benchmarks" / "results" / "scale.json"
PAGE = ROOT / "docs" / "guide" / "scale.md"
K = 10
STEP = 5_000_000
QUASI = ["age", "sex", "race", "relationship", "marital-status", "workclass", "education-num", "occupation"]
OTHERS = ["hours-per-week", "income"]
NUMBERS = [f"x{i}" for i in range(8)]
CASES: dict[str, dict[str, Any]] = {
    "memory, 10M": {"set": "adult", "rows": 10**7, "engine": "memory", "goal_seconds": 8},
    "duckdb, 10M": {"set": "adult", "rows": 10**7, "engine": "duckdb", "goal_seconds": 15, "goal_gb": 2},
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
    return cv.Table.scan(
        source,
        engine=case["engine"],
        memory=case.get("memory", "2 GB"),
        threads=2,
        identifiers=["id"],
        quasi_identifiers=QUASI if adult else NUMBERS,
        target="income" if adult else "granted",
    )


def run(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One case, in this process."""
    source, out = folder / f"{case['set']}-{case['rows']}", folder / "released"
    load = os.getloadavg()[0]
    start, found, steps = time.perf_counter(), {}, {}
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
    seconds, times = time.perf_counter() - start, os.times()
    return {
        **found,
        "seconds": seconds,
        "seconds_at": steps,
        "cpu_seconds": times.user + times.system,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
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
        goals = (f"{r[g]}" if g in r else "" for g in ("goal_seconds", "goal_gb"))
        seconds, memory = goals
        lines.append(
            f"| {name} | {r['seconds']:.1f} | {seconds} | {r['cpu_seconds']:.1f} | {r['peak_gb']:.2f} | {memory} | "
            f"{r['load_before']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Generate, measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / ".scale", help="where the generated files go")
    parser.add_argument("--case", help="run one case in this process")
    parser.add_argument("--only", nargs="*", help="the cases to run; others keep their record")
    given = parse(parser, RESULTS, quick="a tenth of a million rows")
    cases = {n: {**c, "rows": min(c["rows"], 10**5) if given.quick else c["rows"]} for n, c in CASES.items()}
    if given.case is not None:
        print(json.dumps(run(cases[given.case], given.folder)))
        return
    about = provenance(["adult"], 7, "duckdb", "pyarrow")
    before = json.loads(given.output.read_text()) if given.output.is_file() else {}
    found: dict[str, Any] = {n: r for n, r in before.get("cases", {}).items() if given.only and n not in given.only}
    recounted = before.get("recounted") if given.only else None
    for name, case in cases.items():
        if given.only and name not in given.only:
            continue
        generate(case["set"], case["rows"], given.folder)
        words = [sys.executable, __file__, "--case", name, "--folder", str(given.folder), "--allow-uncommitted"]
        done = subprocess.run([*words, *(["--quick"] if given.quick else [])], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        row = {**case, "commit": about["commit"], **json.loads(done.stdout.splitlines()[-1])}
        found[name] = row
        print(f"{name}: {row['seconds']:.1f} s, {row['cpu_seconds']:.1f} CPU s, {row['peak_gb']:.2f} GB", flush=True)
        if name == "duckdb, 100M":
            recounted = recount(given.folder / "released", case["rows"])
            print(f"counted anew: {recounted}", flush=True)
    missed = [
        f"{n}: {r['seconds']:.1f} s, {r['peak_gb']:.2f} GB; goals {r['goal_seconds']} s, {r.get('goal_gb', 'any')} GB"
        for n, r in found.items()
        if "goal_seconds" in r and (r["seconds"] > r["goal_seconds"] or r["peak_gb"] > r.get("goal_gb", np.inf))
    ]
    small, large = (found.get(f"duckdb, {n}M") for n in (10, 100))
    growth = None if small is None or large is None else large["cpu_seconds"] / small["cpu_seconds"] / 10
    print("\n".join(missed) or "Every goal is met.")
    if writes(given):
        page = PAGE.read_text(encoding="utf-8")
        before_, after = page.split("<!-- table -->")[0], page.split("<!-- end -->")[1]
        PAGE.write_text(f"{before_}<!-- table -->\n{table(found)}<!-- end -->{after}", encoding="utf-8")
    write(given, {**about, "k": K, "cases": found, "growth_of_cpu": growth, "recounted": recounted, "missed": missed})


if __name__ == "__main__":
    main()
