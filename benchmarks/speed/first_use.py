"""How long is the first answer? CPU seconds of each first use, with an empty kernel cache and with a full one.

Every figure comes from a process of its own; loading the packages is timed apart and not counted. Compiling shows in
how many functions were compiled, which does not depend on the machine. Commands run on a bundled table written as a
file. With --quick: a few names, once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "speed"))

from _record import code, data_hash, parse, versions, write  # noqa: E402

from countervail.study.first_uses import bundled_rows, first_uses  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "first_use.json"
QUICK = ("nice", "k-common")
GOALS = {
    "mondrian": 8.0,
    "cfk": 8.0,
    "cfk-exact": 8.0,
    "k-common": 8.0,
    "lers": 8.0,
    "mlem2": 8.0,
    "dit-mondrian": 8.0,
    "nice": 2.0,
}
# Every command but `warm`, on {table} and {schema}; what a turn writes goes into {folder}.
COMMANDS = {
    "demo": "demo -o {folder}",
    "schema": "schema {table} -o {folder}/{turn}.toml",
    "hierarchy": "hierarchy {table} age -o {folder}/{turn}.csv",
    "risk": "risk {table} --schema {schema}",
    "explain": "explain {table} --schema {schema} --rows {rows} --model {model} --k 10 -o {folder}/answers.csv",
    "anonymize": "anonymize {table} --schema {schema} --k 10 -o {folder}/release.csv",
    "check": "check {table} --schema {schema} --k 2",
    "rules": "rules {table} --schema {schema} --k 5",
    "dit": "dit {table} --schema {schema} --k 5 --sensitive job --json",
    "recommend": "recommend {table} --schema {schema} --priority correctness",
    "proof": "proof dp-table",
    "ledger": "ledger create {folder}/{turn}.ledger --dataset people --epsilon 4 --delta 1e-6",
}
_ONE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
start = time.process_time()
import countervail
ready = time.process_time()
from countervail.cli.warm import count_compiled
from countervail.study.first_uses import first_uses
first_uses()  # loads the packages that everything uses
loaded = time.process_time()
_, functions = count_compiled(sys.argv[1])
end = time.process_time()
print(json.dumps({"import": ready - start, "load": loaded - ready, "cpu": end - loaded, "functions": functions}))
"""


def use(name: str, cache: str) -> dict[str, Any]:
    """One first use in a process of its own."""
    found = subprocess.run(
        [sys.executable, "-c", _ONE, name],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(found.stdout))


def command(words: str, cache: str) -> float:
    """CPU seconds of a command and all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "from countervail.cli import main; main()", *words.split()],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        check=False,  # `check` says with its exit code that the table is not anonymous
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_files(folder: Path) -> dict[str, str]:
    """The bundled table, its schema, people who ask, and a model, as files."""
    from countervail.core.files.frames import write_frame
    from countervail.core.files.schema_file import write_schema
    from countervail.model import save_model, train_forest

    table = bundled_rows(1000)
    paths = {
        "table": folder / "people.csv",
        "schema": folder / "people.toml",
        "rows": folder / "asked.csv",
        "model": folder / "model.skops",
    }
    write_frame(table.frame, paths["table"])
    write_frame(table.frame.iloc[:10], paths["rows"])
    write_schema(table.schema, paths["schema"])
    save_model(train_forest(table, trees=20), paths["model"])
    return {**{n: str(p) for n, p in paths.items()}, "folder": str(folder)}


def main() -> None:
    """Measure and print; written down only from a commit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS, quick="a few names")
    origin = code()
    names = QUICK if given.quick else tuple(first_uses())
    found: dict[str, Any] = {}
    print(f"{'first use':<34}{'cold':>8}{'warm':>8}{'functions':>11}{'goal':>7}")
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = use(name, cache), use(name, cache)
        goal = GOALS.get(name)
        found[name] = {"cold": cold["cpu"], "warm": warm["cpu"], "functions": cold["functions"], "goal": goal}
        print(f"{name:<34}{cold['cpu']:>8.1f}{warm['cpu']:>8.2f}{cold['functions']:>11}{goal or '':>7}", flush=True)
        found[name] |= {"import": cold["import"], "load": cold["load"]}
    commands: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder)) if not given.quick else {}
        for name, words in COMMANDS.items() if not given.quick else ():
            with tempfile.TemporaryDirectory() as cache:
                turns = [words.format(**files, turn=turn) for turn in ("cold", "warm")]
                cold_seconds, warm_seconds = (command(turn, cache) for turn in turns)
            commands[name] = {"cold": cold_seconds, "warm": warm_seconds}
            print(f"{'countervail ' + name:<34}{cold_seconds:>8.1f}{warm_seconds:>8.2f}", flush=True)
    write(
        given,
        {
            **origin,
            "versions": versions(),
            "data": {"german_credit": data_hash("german_credit")},
            "seconds": "CPU, of one process, without loading packages; commands: with that, and all processes",
            "first_uses": found,
            "commands": commands,
        },
    )


if __name__ == "__main__":
    main()
