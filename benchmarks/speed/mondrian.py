"""Mondrian against anonypy 0.2.1 and against plain Python: same rows, same k; how much faster, and how good?

Adult, 48,842 rows, k=10. Q5: age, sex, race, relationship, marital-status. Q8 adds workclass, education-num and
occupation. "Kernel" starts from codes, as a database would hand them over: equal rows as one, and cuts. "End to end"
starts from a DataFrame: Table, fit, protect (with its recount) and the frame of cells. anonypy gets missing values as a
category (it fails on them otherwise). Times are CPU seconds on one thread; NCP is in percent, with sets, over the same
denominators for everybody.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _cell_loss import ncp_of_cells
from _peer import peer_python, run_peer
from _plain_mondrian import PlainMondrian
from _record import ROOT, code, data_hash, parse, versions, write
from threadpoolctl import threadpool_limits

import countervail as cv
from countervail.protect.mondrian.columns import as_one, describe, encode
from countervail.protect.mondrian.constraints import make_constraints
from countervail.protect.mondrian.grow import partition

RESULTS = ROOT / "benchmarks" / "results" / "mondrian.json"
K = 10
Q5 = ("age", "sex", "race", "relationship", "marital-status")
QUASI = {"Q5": Q5, "Q8": (*Q5, "workclass", "education-num", "occupation")}
GROWTH = (100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000)
REPEATS = 7
TARGETS = {
    "kernel_ms": {"Q5": 20.0, "Q8": 80.0},
    "end_to_end_ms": 150.0,
    "anonypy_ratio": 100.0,
    "plain_ratio": 20.0,
    "million_s": 1.0,
    "million_mb": 1000.0,
    "ncp_percent": {"Q5": 1.0, "Q8": 5.6},
}


def timed(job: Callable[[], Any], repeats: int = REPEATS) -> tuple[list[float], Any]:
    """CPU seconds of each repeat after a warm-up, and the last result."""
    job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = job()
        times.append(time.process_time() - start)
    return times, result


def adult(name: str, rows: int | None = None) -> cv.Table:
    """Adult, or its first rows, with one of the two lists of quasi-identifiers."""
    table = cv.load("adult").with_roles(quasi=QUASI[name], sensitive=[])
    return table if rows is None else table.take(range(rows))


def kernel(codes: Any, data: Any, choose: str = "gain") -> Any:
    """From codes to classes."""
    secret = np.zeros(len(codes), np.int32)
    distinct, values, counts, which = as_one(codes, secret, data.sizes, 1)
    found = partition(distinct, counts, values, data, make_constraints(values, counts, 1, K), gain=choose == "gain")
    return found.cell_of[which]


def end_to_end(frame: pd.DataFrame, schema: cv.Schema, choose: str = "gain") -> tuple[cv.Release, pd.DataFrame]:
    """From a DataFrame to the released frame."""
    table = cv.Table(frame, schema)
    release = cv.Mondrian(K, choose=choose).fit(table).protect(table)
    return release, release.to_frame()


def ncp(codes: Any, cell_of: Any, data: Any) -> float:
    """NCP of a partition in percent, by one yardstick for everybody."""
    cells = np.unique(cell_of, return_inverse=True)[1].astype(np.int32)
    loss = ncp_of_cells(codes, cells, int(cells.max()) + 1, data).mean(axis=1)
    return 100 * float(loss[cells].mean())


def ours(table: cv.Table) -> dict[str, Any]:
    """Our figures on Adult, for both ways to choose the column."""
    quasi, codes = encode(table, {})
    data = describe(quasi, tree_loss=False)
    out: dict[str, Any] = {"rows": len(table), "quasi": table.schema.names("quasi")}
    for choose in ("gain", "span"):
        inner, cell_of = timed(lambda choose=choose: kernel(codes, data, choose))
        outer, (release, _) = timed(lambda choose=choose: end_to_end(table.frame, table.schema, choose))
        out[choose] = {
            "kernel_ms": 1e3 * float(np.median(inner)),
            "kernel_ms_range": [1e3 * min(inner), 1e3 * max(inner)],
            "end_to_end_ms": 1e3 * float(np.median(outer)),
            "end_to_end_ms_range": [1e3 * min(outer), 1e3 * max(outer)],
            "classes": int(cell_of.max()) + 1,
            "smallest_class": int(np.bincount(release.classes()).min()),
            "ncp_percent": ncp(codes, cell_of, data),
            "ncp_percent_published": 100 * float(cv.measure.ncp(release).mean()),
        }
    return out


def plain(table: cv.Table) -> dict[str, Any]:
    """The slow twin on the same codes."""
    quasi, codes = encode(table, {})
    data = describe(quasi, tree_loss=False)
    values = [tuple(row) for row in codes.tolist()]
    ordered = [q.column.type == "numeric" for q in quasi]
    numbers = [[float(v) for v in q.values] if o else None for q, o in zip(quasi, ordered)]
    rows = [tuple(n[v] if n is not None else v for v, n in zip(row, numbers)) for row in values]
    out = {}
    for choose in ("gain", "span"):
        start = time.process_time()
        classes = PlainMondrian(rows, ordered, K, gain=choose == "gain").partition()
        seconds = time.process_time() - start
        cell_of = np.empty(len(rows), np.int64)
        for i, members in enumerate(classes):
            cell_of[members] = i
        same = len({*zip(cell_of.tolist(), kernel(codes, data, choose).tolist())}) == len(classes)
        out[choose] = {
            "seconds": seconds,
            "classes": len(classes),
            "ncp_percent": ncp(codes, cell_of, data),
            "same_classes_as_ours": same,
        }
    return out


def anonypy(folder: Path, rows: int | None) -> dict[str, Any]:
    """The peer, in its own environment, on the same rows."""
    python = peer_python("anonypy-0.2.1", ["anonypy==0.2.1", "numpy", "pandas"])
    jobs = {}
    for name, quasi in QUASI.items():
        table = adult(name, rows)
        frame = table.frame[[*quasi, "income"]].copy()
        labels = [n for n in quasi if table.schema[n].type != "numeric"]
        for n in labels:
            frame[n] = frame[n].astype(object).where(frame[n].notna(), "missing").astype(str)
        frame.to_csv(folder / f"{name}.csv", index=False)
        jobs[name] = {"file": f"{name}.csv", "quasi": list(quasi), "categorical": labels, "sensitive": "income", "k": K}
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    run_peer(python, Path(__file__).with_name("_anonypy_worker.py"), str(folder))
    found = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    for name, figures in found["jobs"].items():
        quasi, codes = encode(adult(name, rows), {})
        cell_of = np.load(folder / f"{name}.npy")
        figures["ncp_percent"] = ncp(codes, cell_of, describe(quasi, tree_loss=False))
        figures["smallest_class"] = int(np.bincount(cell_of).min())
    return found


def synthetic(n: int, kind: str) -> tuple[pd.DataFrame, cv.Schema]:
    """Eight quasi-identifiers: Adult's, resampled; or continuous ones without equal rows."""
    rng = np.random.default_rng(0)
    if kind == "adult":
        table = adult("Q8")
        schema = cv.Schema(tuple(table.schema[n] for n in QUASI["Q8"]))
        return table.frame[list(QUASI["Q8"])].iloc[rng.integers(0, len(table), n)].reset_index(drop=True), schema
    frame = pd.DataFrame(rng.normal(size=(n, 8)), columns=[f"x{j}" for j in range(8)])
    return frame, cv.Schema(tuple(cv.Column(str(c), "numeric", "quasi") for c in frame.columns))


def scale(n: int, kind: str) -> dict[str, float]:
    """One size, in this process: seconds of the kernel and end to end, and the most memory beyond the frame."""
    frame, schema = synthetic(n, kind)
    small, _ = synthetic(2000, kind)
    end_to_end(small, schema)
    before = resident_kb()
    start = time.process_time()
    table = cv.Table(frame, schema)
    quasi, codes = encode(table, {})
    data = describe(quasi, tree_loss=False)
    encoding = time.process_time() - start
    start = time.process_time()
    cells = kernel(codes, data)
    inner = time.process_time() - start
    start = time.process_time()
    kernel(codes, data, "span")
    span = time.process_time() - start
    middle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    del table, quasi, codes, data
    start = time.process_time()
    release, shown = end_to_end(frame, schema)
    outer = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(shown) == n
    return {
        "rows": n,
        "encode_s": encoding,
        "kernel_s": inner,
        "kernel_span_s": span,
        "end_to_end_s": outer,
        "classes": int(cells.max()) + 1,
        "smallest_class": int(np.bincount(release.classes()).min()),
        "kernel_mb_beyond_frame": max(0, middle - before) / 1024,
        "end_to_end_mb_beyond_frame": max(0, after - before) / 1024,
    }


def resident_kb() -> float:
    """What this process holds now; peaks are compared with it, so that an earlier peak can only count against us."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1024


def apart(n: int, kind: str) -> dict[str, float]:
    """`scale` in a process of its own, so that peak memory is that of one run."""
    words = [sys.executable, str(Path(__file__).resolve()), "--allow-uncommitted", "--one", str(n), kind]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"  {kind} {n:,}: kernel {found['kernel_s']:.2f} s, end to end {found['end_to_end_s']:.2f} s", flush=True)
    return found


def exponent(rows: list[dict[str, float]], field: str) -> float:
    """Slope of log time over log rows: 1 is linear."""
    x, y = (np.log([r[f] for r in rows]) for f in ("rows", field))
    return float(np.polyfit(x, y, 1)[0])


def misses(out: dict[str, Any]) -> list[str]:
    """A sentence for each target that is missed."""
    found = []
    for name in QUASI:
        gain, ratio = out["ours"][name]["gain"], out["ratios"][name]
        checks = [
            ("kernel, ms", gain["kernel_ms"], TARGETS["kernel_ms"][name], False),
            ("end to end, ms", gain["end_to_end_ms"], TARGETS["end_to_end_ms"], False),
            ("NCP, %", gain["ncp_percent"], TARGETS["ncp_percent"][name], False),
            ("anonypy / ours, kernel", ratio["anonypy_kernel"], TARGETS["anonypy_ratio"], True),
            ("anonypy / ours, end to end", ratio["anonypy_end_to_end"], TARGETS["anonypy_ratio"], True),
            ("plain Python / ours", ratio["plain"], TARGETS["plain_ratio"], True),
        ]
        found += [f"{name}: {w} {v:.1f}, goal {g:g}" for w, v, g, more in checks if (v < g if more else v > g)]
    for kind, rows in out["growth"].items():
        million = next((r for r in rows if r["rows"] == 1_000_000), None)
        if million is None:
            continue
        for field, goal in (("kernel_s", "million_s"), ("end_to_end_s", "million_s")):
            if million[field] > TARGETS[goal]:
                found.append(f"1M x 8 ({kind}): {field} {million[field]:.2f}, goal {TARGETS[goal]:g}")
        for field in ("kernel_mb_beyond_frame", "end_to_end_mb_beyond_frame"):
            if million[field] > TARGETS["million_mb"]:
                found.append(f"1M x 8 ({kind}): {field} {million[field]:.0f}, goal {TARGETS['million_mb']:g}")
    return found


def run(folder: Path, growth: list[int], rows: int | None) -> dict[str, Any]:
    """Everything, one after the other."""
    about = code()
    found = {name: ours(adult(name, rows)) for name in QUASI}
    for name, figures in found.items():
        g = figures["gain"]
        print(f"{name}: {g['kernel_ms']:.1f} ms, end to end {g['end_to_end_ms']:.1f} ms, NCP {g['ncp_percent']:.2f}%")
    print("Plain Python ...", flush=True)
    slow = {name: plain(adult(name, rows)) for name in QUASI}
    print("anonypy ...", flush=True)
    peer = anonypy(folder, rows)
    ratios = {}
    for name in QUASI:
        gain = found[name]["gain"]
        theirs = peer["jobs"][name]
        ratios[name] = {
            "anonypy_kernel": 1e3 * theirs["partition_s"] / gain["kernel_ms"],
            "anonypy_end_to_end": 1e3 * theirs["end_to_end_s"] / gain["end_to_end_ms"],
            "plain": 1e3 * slow[name]["gain"]["seconds"] / gain["kernel_ms"],
            "plain_span": 1e3 * slow[name]["span"]["seconds"] / found[name]["span"]["kernel_ms"],
        }
    print("Growth ...", flush=True)
    grown = {kind: [apart(n, kind) for n in growth] for kind in ("adult", "continuous")}
    slopes = {kind: {f: exponent(r, f) for f in ("kernel_s", "end_to_end_s")} for kind, r in grown.items()}
    return {
        **about,
        "seed": 0,
        "k": K,
        "data": "adult",
        "data_sha256": data_hash("adult"),
        "versions": versions(),
        "peer_versions": peer["versions"],
        "time": f"CPU on one thread; medians and ranges of {REPEATS} after a warm-up (peers and growth: one run)",
        "targets": TARGETS,
        "ours": found,
        "plain_python": slow,
        "anonypy": peer["jobs"],
        "ratios": ratios,
        "growth": grown,
        "growth_exponents": slopes,
    }


def main() -> None:
    """Compare, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", nargs="+", type=int, default=list(GROWTH), help="numbers of rows")
    parser.add_argument("--one", nargs=2, metavar=("ROWS", "KIND"), help=argparse.SUPPRESS)
    given = parse(parser, RESULTS, quick="2,000 rows of Adult, growth up to 4,000 rows")
    if given.quick:
        given.growth = [1_000, 2_000, 4_000]
    with threadpool_limits(1):
        if given.one:
            print(json.dumps(scale(int(given.one[0]), given.one[1])))
            return
        with tempfile.TemporaryDirectory() as folder:
            out = run(Path(folder), given.growth, 2_000 if given.quick else None)
    print(json.dumps({"ratios": out["ratios"], "growth_exponents": out["growth_exponents"]}, indent=1))
    missed = misses(out)
    print("\n".join(f"Missed: {m}" for m in missed) if missed else "Every target is met.")
    write(given, {**out, "missed": missed})


if __name__ == "__main__":
    main()
