"""Warm speed of this commit against an older one, in one run: CPU seconds of each case, by turns, and their ratio.

python benchmarks/speed/against.py [COMMIT] [--only mondrian nice] [--turns 3]

Each turn of each case is a process of its own that takes the package from one of the two commits, does everything once,
and then times the least of some repeats. What is slower than 1.1 times the older commit is marked. An older commit that
does not know a case is passed over.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _record import ROOT, code, parse, versions, write

RESULT = ROOT / "benchmarks" / "results" / "against.json"
SLOWER = 1.1
REPEATS = 5
ENOUGH = 3.0  # CPU seconds of repeats, after which no more are made

Job = Callable[[], object]


def cases() -> dict[str, Callable[[], Job]]:
    """What is timed, by name; each makes what it needs first. Only what both commits have may be used."""
    import numpy as np
    import pandas as pd

    import countervail as cv
    from countervail.model import train_forest

    def answers(made: object, data: str = "german_credit", most: int = 60) -> Job:
        train, test = cv.load(data).split(test_size=0.4, random_state=0)
        model = train_forest(train)
        refused = ~np.isin(model.predict(test.features), list(train.schema.favourable))
        asked = test.take(np.flatnonzero(refused)[:most])
        fitted = made.fit(train, model)  # type: ignore[attr-defined]
        return lambda: fitted.explain(asked)

    def noisy(kind: Callable[[int], object], draws: int = 8) -> Job:
        """Of several draws: how many steps an answer takes depends on the noise."""
        jobs = [answers(kind(seed)) for seed in range(draws)]
        return lambda: [job() for job in jobs]

    def fits(made: object, data: str) -> Job:
        train, _ = cv.load(data).split(test_size=0.4, random_state=0)
        model = train_forest(train)
        return lambda: made.fit(train, model)  # type: ignore[attr-defined]

    def tables(made: object, data: str = "adult", rows: int | None = None) -> Job:
        table = cv.load(data)
        table = table if rows is None else table.take(np.arange(rows))
        return lambda: made.fit(table).protect(table).to_frame()  # type: ignore[attr-defined]

    def continuous() -> Job:
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300_000, 8)), columns=[f"x{j}" for j in range(8)])
        schema = cv.Schema(tuple(cv.Column(str(c), "numeric", "quasi") for c in frame.columns))
        return lambda: cv.Mondrian(k=10).fit(table := cv.Table(frame, schema)).protect(table).to_frame()

    def tests() -> Job:
        table = cv.load("adult").take(np.arange(4000))
        made = cv.DifferentialInferenceTest(cv.Mondrian(k=5), n_records=200)
        return lambda: made.run(table, "occupation")

    def linked() -> Job:
        train, test = cv.load("german_credit").split(test_size=0.4, random_state=0)
        told = cv.NICE(target="favourable").fit(train, train_forest(train)).explain(test)
        return lambda: cv.attack.Linkage().run(told, train, control=test)

    nice = {f"nice {r}, answers": lambda r=r: answers(cv.NICE(r)) for r in ("none", "sparsity", "plausibility")}
    return {
        **nice,
        "nice sparsity, adult, answers": lambda: answers(cv.NICE("sparsity"), "adult", 200),
        "cfk, fit": lambda: fits(cv.CFK(k=10), "german_credit"),
        "cfk, adult, fit": lambda: fits(cv.CFK(k=10), "adult"),
        "cfk, answers": lambda: answers(cv.CFK(k=10)),
        "cfk, adult, answers": lambda: answers(cv.CFK(k=10), "adult", 200),
        "cfk exact, answers": lambda: answers(cv.CFK(k=10, search="exact")),
        "private-synthetic, fit": lambda: fits(cv.PrivateSynthetic(1.0), "german_credit"),
        "private-synthetic, answers": lambda: noisy(lambda seed: cv.PrivateSynthetic(1.0, random_state=seed)),
        "private-histograms, answers": lambda: noisy(lambda seed: cv.PrivateHistograms(1.0, random_state=seed)),
        "mondrian, adult": lambda: tables(cv.Mondrian(k=10)),
        "mondrian l, adult": lambda: tables(cv.Mondrian(k=10, l=2, sensitive="occupation")),
        "mondrian relaxed, adult": lambda: tables(cv.Mondrian(k=10, mode="relaxed")),
        "mondrian, 300,000 x 8 different": continuous,
        "k-common, adult 3,000": lambda: tables(cv.KCommonPatterns(k=5), "adult", 3000),
        "differential inference, adult 4,000": tests,
        "linkage": linked,
    }


def timed(name: str) -> float:
    """The least CPU seconds of some repeats, with everything compiled."""
    job, times = cases()[name](), []
    job()
    while len(times) < REPEATS and sum(times) < ENOUGH:
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def turn(name: str, source: Path) -> float | None:
    """One turn in a process that takes the package from `source`; None where that does not know the case."""
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    beside = {"PYTHONPATH": str(source / "src"), "PYTHONDONTWRITEBYTECODE": "", "COUNTERVAIL_DATA": _data()}
    command = [sys.executable, "-W", "ignore", __file__, "HEAD", "--case", name, "--allow-uncommitted"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **alone, **beside})
    return float(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else None


def _data() -> str:
    from countervail.data.registry import find

    return str(find("adult").parent)


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD~1", help="the older commit (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names begin so")
    parser.add_argument("--turns", type=int, default=2, help="processes of each commit and case (default: %(default)s)")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parse(parser, RESULT, quick="one case, one turn")
    if given.case:
        print(json.dumps(timed(given.case)))
        return
    if given.quick:
        given.only, given.turns = ["nice none"], 1
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(old), given.commit], cwd=ROOT, check=True)
        try:
            for name in (n for n in cases() if n.startswith(tuple(given.only))):
                turns = [(turn(name, old), turn(name, ROOT)) for _ in range(given.turns)]
                if any(t is None for pair in turns for t in pair):
                    print(f"{name:<40} not known to both", flush=True)
                    continue
                before, now = (min(float(pair[i] or 0) for pair in turns) for i in (0, 1))
                found[name] = {"before": before, "now": now, "ratio": now / before}
                mark = "  slower" if now > SLOWER * before else ""
                print(f"{name:<40} {before:8.3f} s {now:8.3f} s {now / before:6.2f}{mark}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(old)], cwd=ROOT, check=True)
    slower = [n for n, f in found.items() if f["ratio"] > SLOWER]
    write(given, {**code(), "against": given.commit, "versions": versions(), "cpu_seconds": found, "slower": slower})


if __name__ == "__main__":
    main()
