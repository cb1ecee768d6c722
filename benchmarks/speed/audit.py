"""Audits of published tables at 10,000, 100,000 and 1,000,000 rows, and of explainers on German credit and Adult.

Tables: Mondrian (k=10) over eight quasi-identifiers.

The table is drawn: ages, postcodes, labels, hours, children and incomes, a sensitive column and a decision; as many
strangers are drawn alike. Every attack runs in a process of its own: CPU seconds on its leak and on the release, and
the most memory that the process held (resident, with the table, the strangers and the release in it). The audit as
a whole (all attacks, risk, and the differential test on 200 people) runs on two processors: seconds on the clock, CPU
seconds and the most memory of all its processes together (proportional), looked up every fifth of a second.
`pairs` says how many nodes of a tree and rows were looked at to count everybody in every class.
Explainers (plain NICE, CF-K with k=10, PrivateSynthetic with epsilon 1) are asked as up to 1,000 strangers: 600 people
of German credit and 29,305 of Adult. How busy the machine was stands in `load`; `cpu_seconds` are what two processors
that do nothing else share.

The record is written after every case, whole audits first. `--resume` passes over cases that this commit has measured.
`missed` lists the goals that were not met, by the seconds on the clock and, where the machine was busy, by the CPU
seconds that two processors share.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _record import ROOT, parse, provenance, write, writes

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import countervail as cv
from _private import load_declared

RESULTS = ROOT / "benchmarks" / "results" / "audit.json"
K, SEED = 10, 0
SIZES = (10_000, 100_000, 1_000_000)
GOAL = {"rows": 1_000_000, "seconds": 300, "gb": 4, "german_credit": 90, "adult": 360}
SETS = ("german_credit", "adult")
EXPLAINERS: dict[str, Any] = {
    "nice": lambda: cv.NICE(target="favourable"),
    "cfk": lambda: cv.CFK(k=K),
    "private-synthetic": lambda missing=(): cv.PrivateSynthetic(epsilon=1.0, missing=missing),
}


def drawn(n: int) -> tuple[cv.Table, cv.Table]:
    """Members and as many strangers."""
    rng, size = np.random.default_rng(SEED), 2 * n
    few, more = np.arange(1, 13) / 78, np.arange(1, 11) / 55
    frame = pd.DataFrame(
        {
            "age": np.clip(rng.gamma(9, 5, size), 18, 95).astype(int),
            "postcode": rng.integers(0, 500, size),
            "sex": rng.choice(["f", "m"], size),
            "education": rng.choice([f"e{i}" for i in range(12)], size, p=few),
            "job": rng.choice([f"j{i}" for i in range(20)], size),
            "hours": np.clip(rng.normal(38, 9, size), 0, 90).round().astype(int),
            "children": rng.poisson(1.2, size),
            "income": np.exp(rng.normal(10, 0.6, size)).round(-2),
            "illness": rng.choice([f"i{i}" for i in range(10)], size, p=more),
            "granted": rng.choice(["yes", "no"], size),
        }
    )
    quasi = list(frame.columns[:8])
    table = cv.Table.from_frame(frame, target="granted", quasi_identifiers=quasi, sensitive=["illness"])
    members, strangers = table.split(test_size=0.5, random_state=SEED)
    return members, strangers


def prepare(place: Path, n: int) -> None:
    """The table, the strangers and what is released, where the other processes find them."""
    members, strangers = drawn(n)
    protector = cv.Mondrian(K).fit(members)
    place.write_bytes(pickle.dumps((members, strangers, protector, protector.protect(members))))


def one(place: Path, label: str) -> dict[str, Any]:
    """One attack, in this process; without a name the list of them."""
    from countervail.auditing import battery
    from countervail.auditing.subject import read_subject

    members, strangers, _, release = pickle.loads(place.read_bytes())
    subject = read_subject(release, members, strangers)
    attacks = battery.fitting_attacks(subject)
    labels = [a.label for a in attacks]
    if not label:
        return {"attacks": labels}
    setting, i, out = battery.Setting(subject, members, attacks), labels.index(label), {}
    for on in ("planted", "real"):
        start = time.process_time()
        done = battery.carry_out(setting, battery.Step(i, on))
        if done.outcome == "failed":
            raise SystemExit(f"{label}: {done.why}")
        out[f"{on}_seconds"] = round(time.process_time() - start, 2)
    return {**out, "gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)}


def counted(place: Path) -> dict[str, Any]:
    """Everybody in every class, by the tree."""
    from countervail.core.counting import count_in_tree

    members, _, _, release = pickle.loads(place.read_bytes())
    rows = members.select("quasi")
    count_in_tree(release.regions, rows)  # compiled, or loaded
    start = time.process_time()
    found, looked = count_in_tree(release.regions, rows)
    seconds = time.process_time() - start
    assert found.min() >= K
    pairs = len(release.regions) * len(rows)
    return {"seconds": round(seconds, 2), "pairs": pairs, "nodes": int(looked[0]), "rows": int(looked[1])}


def whole(place: Path) -> dict[str, Any]:
    """The audit of a table as people call it, on two processors."""
    members, strangers, protector, _ = pickle.loads(place.read_bytes())
    return audited(protector, members, strangers)


def answering(name: str, method: str) -> dict[str, Any]:
    """The audit of an explainer."""
    made = EXPLAINERS[method]
    if method == "private-synthetic":  # noise needs declared domains: those of the codebook, as in the other studies
        table, missing = load_declared(name)
        made = partial(made, missing)
    else:
        table = cv.load(name, actionable=True)
    members, strangers = table.split(test_size=0.4, random_state=SEED)
    model = cv.model.train_forest(members)
    if method == "nice":  # a plain answer is a whole record: anything may be asked for
        members, strangers = (cv.Table(t.frame, t.schema.without_actions()) for t in (members, strangers))
    fitted = made().fit(members, model)
    return {"people": len(members), **audited(fitted, members, strangers)}


def audited(what: Any, members: cv.Table, strangers: cv.Table) -> dict[str, Any]:
    """All attacks, with time and memory."""
    peak, used, stop = [0.0], {}, threading.Event()
    watcher = threading.Thread(target=_watch, args=(peak, used, stop))
    watcher.start()
    start, before = time.perf_counter(), time.process_time()
    made = cv.audit(what, members, control=strangers, budget=None, jobs=2)
    seconds = time.perf_counter() - start
    stop.set()
    watcher.join()
    words = {d.criterion: d.word for d in made.decisions}
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(time.process_time() - before + sum(used.values()), 1),
        "gb": round(peak[0] / 2**20, 2),
        "verdict": made.verdict,
        "decisions": words,
        "rejects": sorted({r.partition(":")[0] for d in made.decisions if d.word == "reject" for r in d.reasons}),
        "run": sum(f.status == "run" for f in made.findings),
        "of": len(made.findings),
        "differential_test": int(made.beside.get("influence", {}).get("tested", 0)),
        "load": [round(v, 1) for v in os.getloadavg()[:2]],
    }


def _watch(peak: list[float], used: dict[int, float], stop: threading.Event) -> None:
    """The most memory of all processes together, and the CPU seconds of each that was started."""
    while not stop.wait(0.2):
        family = _family(os.getpid())
        peak[0] = max(peak[0], sum(map(_held, family)))
        used |= {pid: found for pid in family[1:] if (found := _spent(pid)) > used.get(pid, 0.0)}


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[int]:
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        threads = [p for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]
    except OSError:
        return [pid]
    return [pid, *(q for p in sorted({*below, *threads}) for q in _family(int(p)))]


def _held(pid: int) -> float:
    """Kilobytes of a process, shared ones by their share."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith("Pss:")), 0.0)


def main() -> None:
    """All cases, one process at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, nargs="*", default=SIZES, help="sizes of the table")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS, help="data that explainers answer from")
    if "--case" in sys.argv:
        what, place, label = parser.parse_known_args()[0].case
        kinds = {"one": lambda: one(Path(place), label), "count": lambda: counted(Path(place))}
        kinds |= {"whole": lambda: whole(Path(place)), "answering": lambda: answering(place, label)}
        print(json.dumps(kinds[what]()))
        return
    parser.add_argument("--resume", action="store_true", help="pass over cases that this commit has measured")
    given = parse(parser, RESULTS, quick="8,000 rows")
    about = {**provenance(list(SETS), SEED), "processors": 2, "k": K, "goal": GOAL}
    before = json.loads(given.output.read_text()) if given.resume and given.output.is_file() else {}
    done: dict[str, Any] = before.get("cases", {}) if before.get("commit") == about["commit"] else {}

    def measured(name: str, what: str, place: Path, label: str = "") -> dict[str, Any]:
        if name not in done:
            done[name] = _in_process(what, place, label)
            print(f"{name}: {done[name]}", flush=True)
            if writes(given):
                write(given, {**about, "cases": done, "missed": missed(done)})
        row: dict[str, Any] = done[name]
        return row

    for data in SETS[:1] if given.quick else given.sets:
        for method in EXPLAINERS:
            measured(f"{data}, {method}", "answering", Path(data), method)
    for n in (8000,) if given.quick else given.rows:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "made.pickle"
            prepare(place, n)
            measured(f"{n:,} rows", "whole", place)
            measured(f"{n:,} rows, counting", "count", place)
            for label in _in_process("one", place)["attacks"]:
                measured(f"{n:,} rows, {label}", "one", place, label)
    print("\n".join(missed(done)) or "Every goal is met.")
    if not writes(given):
        write(given, {})


def missed(done: dict[str, Any]) -> list[str]:
    """Goals that were not met: seconds on the clock, or what two processors would have taken by themselves."""
    out = []
    for name, row in done.items():
        of, whole = name.partition(",")[0], name == f"{GOAL['rows']:,} rows"
        goal = GOAL["seconds"] if whole else GOAL.get(of)
        if goal is None:
            continue
        took = min(row["seconds"], row["cpu_seconds"]) if row["load"][0] > 3 else row["seconds"]
        if took > goal:
            out.append(f"{name}: {took:.0f} s, {goal} are the goal")
        if whole and row["gb"] > GOAL["gb"]:
            out.append(f"{name}: {row['gb']} GB, {GOAL['gb']} are the goal")
    return out


def _in_process(what: str, place: Path, label: str = "") -> dict[str, Any]:
    call = [sys.executable, __file__, "--case", what, str(place), label]
    done: dict[str, Any] = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
    return done


if __name__ == "__main__":
    main()
