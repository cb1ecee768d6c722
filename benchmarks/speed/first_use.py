"""How long is the first answer? CPU seconds of each first use, with an empty kernel cache and with a full one.

Every figure comes from a process of its own (`_first_use_worker.py`). Four kinds of cases:

use       each exported explainer, protector and attack, and what has kernels of its own: cold and warm, without
          loading packages, which is timed apart. Compiling also shows in the number of compiled functions.
command   every command on bundled rows written as files, cold and warm, with loading and all its processes.
rows      one refused person after the other, beyond the model's own time: median and 99th percentile.
warm      what is fitted often, with everything compiled: the least of three.

What was measured is written after each case. A run that was stopped goes on where it was if the commit is the same;
a case that failed is tried again. `--only nice rows:cfk demo` measures these alone and keeps the others.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "speed"))

from _first_use_commands import COMMANDS, check_complete, write_files  # noqa: E402
from _first_use_worker import row_cases, warm_cases  # noqa: E402
from _record import code, data_hash, parse, versions, writes  # noqa: E402

from countervail.study.first_uses import first_uses  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "first_use.json"
WORKER = Path(__file__).with_name("_first_use_worker.py")
QUICK = ("use:nice", "command:proof", "rows:nice")
LIMIT = 300  # seconds of wall time for one process: what takes longer is said to have failed
_COLD = dict.fromkeys(("mondrian", "cfk", "cfk-exact", "k-common", "lers", "mlem2", "dit-mondrian"), 8.0)
_PRIVATE = (
    "cfk",
    "cfk-none",
    "cfk-exact",
    "cfk-grasp",
    "private-synthetic",
    "private-histograms",
    "private-neighbours",
)
_NICE = ("nice", "nice-sparsity", "nice-proximity", "nice-plausibility", "nice-typical")
# CPU seconds cold (use, command) or warm (warm), and milliseconds of the median (rows).
GOALS = {
    **{f"use:{n}": goal for n, goal in {**_COLD, "nice": 2.0}.items()},
    "command:demo": 25.0,
    **{f"rows:{n}": 1.0 for n in _NICE},
    **{f"rows:{n}": 2.0 for n in _PRIVATE},
    "warm:cfk-german-10": 1.0,
    "warm:cfk-german-20": 1.0,
    "warm:cfk-adult-10": 2.0,
    "warm:cfk-1m": 15.0,
    "warm:k-common-adult-5000": 3.0,
    "warm:mondrian-continuous-1m": 1.2,
}
HEADS = {
    "use": f"{'first use':<34}{'cold s':>9}{'warm s':>9}{'compiled':>10}{'goal':>7}",
    "command": f"{'command':<34}{'cold s':>9}{'warm s':>9}{'':>10}{'goal':>7}",
    "rows": f"{'single rows':<34}{'median ms':>9}{'p99 ms':>9}{'model ms':>10}{'goal':>7}",
    "warm": f"{'warm':<34}{'least s':>9}{'most s':>9}{'':>10}{'goal':>7}",
}


_RUNNING: set[int] = set()  # processes that end with this one


class CaseFailedError(Exception):
    """A case without a figure, and why."""


@dataclass(frozen=True)
class Place:
    """Where the cases of a run are measured: files that commands read, and a folder for what they write."""

    files: dict[str, str]
    folder: Path


def work(kind: str, what: str, cache: str | None) -> dict[str, Any]:
    """One process of the worker; without a cache folder of its own, with what is compiled on this machine."""
    env = dict(os.environ) if cache is None else {**os.environ, "NUMBA_CACHE_DIR": cache}
    words = [sys.executable, str(WORKER), kind, what]
    pipe = subprocess.PIPE
    # A session of its own: where time is up, the processes of a command end with it.
    with subprocess.Popen(words, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        _RUNNING.add(process.pid)
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise CaseFailedError(f"took more than {LIMIT} s of wall time") from None
        finally:
            _RUNNING.discard(process.pid)
    if process.returncode:
        raise CaseFailedError((err.strip().splitlines() or ["said nothing"])[-1][:200])
    return dict(json.loads(out.splitlines()[-1]))


def first_use(name: str) -> dict[str, Any]:
    """Cold and warm CPU seconds of one use, and how many functions it compiled."""
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = work("use", name, cache), work("use", name, cache)
    loading = {key: min(cold[key], warm[key]) for key in ("import", "load")}
    return {"cold": cold["cpu"], "warm": warm["cpu"], "functions": cold["functions"], **loading}


def command(name: str, place: Place) -> dict[str, Any]:
    """Cold and warm CPU seconds of a command, after those that make what it reads."""
    given, found = COMMANDS[name], {}
    with tempfile.TemporaryDirectory() as cache:
        for turn in ("cold", "warm"):
            out = place.folder / f"{name.replace(' ', '-')}-{turn}"
            out.mkdir()
            for words in given.before:
                work("command", words.format(**place.files, out=out), None)
            done = work("command", given.words.format(**place.files, out=out), cache)
            if done["exit"] not in given.ends:
                raise CaseFailedError(f"exit code {done['exit']}: {done['said'][:200]}")
            found[turn] = done["cpu"]
    return found


def measure(case: str, place: Place) -> dict[str, Any]:
    """What one case took; what went wrong stands in the place of figures."""
    kind, _, name = case.partition(":")
    goal = {"goal": GOALS[case]} if case in GOALS else {}
    try:
        if kind == "use":
            return {**first_use(name), **goal}
        return {**(command(name, place) if kind == "command" else work(kind, name, None)), **goal}
    except CaseFailedError as error:
        return {"failed": str(error), **goal}


def line(case: str, found: dict[str, Any]) -> str:
    """A case as it is printed."""
    kind, _, name = case.partition(":")
    if "failed" in found:
        return f"{name:<34} failed: {found['failed']}"
    if kind in ("use", "command"):
        shown = f"{found['cold']:>9.2f}{found['warm']:>9.2f}{found.get('functions', ''):>10}"
    elif kind == "rows":
        shown = f"{found['median_ms']:>9.2f}{found['p99_ms']:>9.2f}{found['model_ms']:>10.2f}"
    else:
        shown = f"{found['range'][0]:>9.2f}{found['range'][1]:>9.2f}{'':>10}"
    return f"{name:<34}{shown}{found.get('goal', ''):>7}"


def reached(case: str, found: dict[str, Any]) -> float | None:
    """The figure that the goal is about."""
    if "failed" in found:
        return None
    return float(found[{"use": "cold", "command": "cold", "rows": "median_ms", "warm": "cpu"}[case.partition(":")[0]]])


def all_cases() -> list[str]:
    """Every case, in the order of the record."""
    names = {"use": first_uses(), "command": COMMANDS, "rows": row_cases(), "warm": warm_cases()}
    return [f"{kind}:{name}" for kind, of in names.items() for name in of]


def chosen(only: list[str] | None, known: list[str]) -> list[str]:
    """The cases that were asked for: by kind, by name, or both."""
    if only is None:
        return known
    out = [c for c in known if c in only or c.partition(":")[0] in only or c.partition(":")[2] in only]
    for word in only:
        if not any(word in (c, *c.split(":")) for c in known):
            raise SystemExit(f"Nothing is called '{word}'. What there is: {', '.join(known)}.")
    return out


def earlier(given: argparse.Namespace, origin: dict[str, Any], known: list[str]) -> dict[str, Any]:
    """What a run that was stopped has measured of the same commit with the same packages; failures are tried again."""
    if not writes(given) or not given.output.exists():
        return {}
    held = json.loads(given.output.read_text(encoding="utf-8"))
    if held.get("commit") != origin["commit"] or held.get("versions") != versions():
        return {}
    return {c: f for c, f in held.get("cases", {}).items() if c in known and "failed" not in f}


def keep(given: argparse.Namespace, origin: dict[str, Any], cases: dict[str, Any], known: list[str]) -> None:
    """The record as far as it is, whole or as it was before: a run may be stopped at any moment."""
    if not writes(given):
        return
    ordered = {c: cases[c] for c in known if c in cases}
    figures = {c: reached(c, f) for c, f in ordered.items() if "goal" in f}
    record = {
        **origin,
        "versions": versions(),
        "data": {"german_credit": data_hash("german_credit")},
        "measured": "CPU seconds; commands with loading and all processes; rows: CPU ms beyond the model",
        "processes": given.jobs,
        "not_measured": [c for c in known if c not in ordered],
        "missed": [c for c, value in figures.items() if value is None or value > GOALS[c]],
        "cases": ordered,
    }
    given.output.parent.mkdir(parents=True, exist_ok=True)
    beside = given.output.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    beside.replace(given.output)


def measured(cases: list[str], place: Place, jobs: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cases as they are done: first uses and commands several at once, what takes milliseconds one after the other."""
    together = [c for c in cases if c.startswith(("use:", "command:"))]
    for some, at_once in ((together, max(1, jobs)), ([c for c in cases if c not in together], 1)):
        with ThreadPoolExecutor(at_once) as pool:
            running = {pool.submit(measure, case, place): case for case in some}
            try:
                for done in as_completed(running):
                    yield running[done], done.result()
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in tuple(_RUNNING):
                    os.killpg(process, signal.SIGKILL)
                raise SystemExit("Stopped: what was measured is kept, and the same command goes on.") from None


def main() -> None:
    """Measure and print; written down only from a commit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="CASE", help="kinds, names, or both: rows, cfk, use:cfk")
    parser.add_argument("--jobs", type=int, default=2, help="first uses and commands at once (default: %(default)s)")
    parser.add_argument("--afresh", action="store_true", help="measure again what this commit has a record of")
    parser.add_argument("--list", action="store_true", help="only list the cases")
    given = parse(parser, RESULTS, quick="one case of some kinds")
    check_complete()
    known = all_cases()
    if given.list:
        print("\n".join(known))
        return
    wanted = [*QUICK] if given.quick else chosen(given.only, known)
    origin = code()
    cases = earlier(given, origin, known)
    left = [c for c in wanted if given.afresh or c not in cases]
    if len(left) < len(wanted):
        print(f"{len(wanted) - len(left)} of {len(wanted)} cases were measured by an earlier run of this commit.")
    with tempfile.TemporaryDirectory() as folder:
        asked = any(c.startswith("command:") for c in left)
        place = Place(write_files(Path(folder)) if asked else {}, Path(folder))
        head = ""
        for case, found in measured(left, place, given.jobs):
            cases[case] = found
            keep(given, origin, cases, known)
            kind = case.partition(":")[0]
            if kind != head:
                print(HEADS[kind])
            head = kind
            print(line(case, found), flush=True)
    print("Nothing written." if not writes(given) else f"Written: {given.output.name}")


if __name__ == "__main__":
    main()
