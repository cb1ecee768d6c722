"""PrivateSynthetic beside what others make of the same people: OpenDP's MST and AIM, and the DPGAN of a paper.

Synthetic rows of OpenDP come from an environment of its own (`--python`), with the rho of epsilon and delta 1e-6 on the
same grid; for some budgets its MST ends with an error, because parts of rho exceed their share by a rounding: then a
little less of rho is tried (a part in 1e9). What fails with all of these is said to have failed; what needs more than
`--patience` CPU seconds, not to have ended.
Adult's capital gain has 101 positions here: OpenDP keeps tables of all pairs. Answers are searched in its rows as in
ours. DPGAN answers as published; its epsilon is no promise. CPU seconds are those of one draw without loading anything;
those of the model, which decides about people and synthetic rows, are told apart (OpenDP's rows are not decided about).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(ROOT / "benchmarks" / "studies")]

from _record import parse, write  # noqa: E402
from synthetic import NO_DATA, People, Setting, fidelity, show  # noqa: E402

import countervail as cv  # noqa: E402
from _private import provenance  # noqa: E402
from countervail.core.stats import mean_interval, plain_json  # noqa: E402
from countervail.protect.dp.synthetic.accounting import rho_of  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "synthetic_peers.json"
TRIES = 5  # budgets a little below each other
WORKER = Path(__file__).with_name("_opendp_worker.py")
SETS = ("compas", "adult", "cmc", "acs_public_coverage_ca_2018", "give_me_some_credit", "car")


class LateError(Exception):
    """It needs more CPU seconds than it was given."""


class FailedError(Exception):
    """It ended with an error of its own, whichever budget it got."""


def opendp_rows(
    s: Setting, python: Path, name: str, epsilon: float, patience: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Positions of synthetic rows, as many as there are people, and the time they took."""
    grid = cv.PrivateSynthetic(NO_DATA, missing=s.missing).fit(s.train, s.model).public_.grid
    codes, names = grid.codes(s.train.features), [f"c{j}" for j in range(len(grid.sizes))]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pd.DataFrame(codes, columns=names).to_csv(place / "in.csv", index=False)
        (place / "sizes.json").write_text(json.dumps(dict(zip(names, grid.sizes.tolist()))), encoding="utf-8")
        for less in range(TRIES):
            rho = rho_of(epsilon, 1e-6) * (1 - less * 1e-9)
            given = [place / "in.csv", place / "sizes.json", rho, len(codes), place / "out.csv"]
            command = [python, WORKER, name, *map(str, given)]
            said = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (patience, patience + 5)),
            )
            if said.returncode == 0:
                break
            if said.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                raise LateError
        else:
            own = re.findall(r'FailedFunction\("(.+?)"\)', said.stderr)
            raise FailedError(own[-1] if own else "an error of its own")
        made = pd.read_csv(place / "out.csv")[names].dropna()  # it makes up a few cells without a value
        return made.to_numpy(dtype=np.int64), json.loads(said.stdout.splitlines()[-1])


class Searched:
    """Answers from given synthetic rows, found as PrivateSynthetic finds them."""

    def __init__(self, s: Setting, codes: np.ndarray, reward: Any) -> None:
        held = cv.PrivateSynthetic(NO_DATA, missing=s.missing).fit(s.train, s.model)
        self.codes_, self.public_ = codes, held.public_
        labelled = held._labelled(codes, held.public_.classes_of(codes))
        self.search = cv.NICE(reward, justified=False, target="favourable", scale="range").fit(labelled, s.model)

    def explain(self, rows: Any) -> Any:
        """Answers."""
        return self.search.explain(rows)


def study(name: str, epsilon: float, given: argparse.Namespace) -> dict[str, Any]:
    """Ours and the others on one set."""
    s = Setting(name, given.queries)
    if name == "adult":
        s.train = replace(s.train, schema=s.train.schema.with_column("capital-gain", domain=(0, 99999, 101)))
    found: dict[str, People] = {}
    worth: dict[str, list[dict[str, float]]] = {}
    models: dict[str, list[float]] = {}
    late: list[str] = []
    failed: dict[str, str] = {}

    def add(label: str, made: Any, rewarded: str, cpu: float) -> None:
        people = found.setdefault(f"{label}, {rewarded}", People(s))
        people.add(made, cpu)
        if rewarded == "typical" and hasattr(made, "codes_"):
            worth.setdefault(label, []).append(fidelity(made, s))

    for peer in given.peers:
        for _ in range(given.draws):
            if peer == "DPGAN":
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = cv.published.DPGAN(epsilon, missing=s.missing).fit(s.train, s.model)
                spent = time.process_time() - start
                if not (answered := made.explain(s.rows).found).all():
                    failed[peer] = f"{answered.sum()} of {len(answered)} people were answered"
                    break
                found.setdefault("DPGAN", People(s)).add(made, spent)
                continue
            if peer == "PrivateSynthetic":
                for reward in ("sparsity", "typical"):
                    start, before = time.process_time(), s.model.seconds
                    made = cv.PrivateSynthetic(epsilon, reward=reward, missing=s.missing).fit(s.train, s.model)
                    spent = time.process_time() - start
                    models.setdefault(f"{peer}, {reward}", []).append(s.model.seconds - before)
                    add(peer, made, reward, spent)
                continue
            try:
                codes, times = opendp_rows(s, given.python, peer, epsilon, given.patience)
            except LateError:
                late.append(f"OpenDP {peer}")
                print(f"{name}: {peer} did not end", flush=True)
                break
            except FailedError as why:
                failed[f"OpenDP {peer}"] = str(why)
                print(f"{name}: {peer} failed: {why}", flush=True)
                break
            for reward in ("sparsity", "typical"):
                add(f"OpenDP {peer}", Searched(s, codes, reward), reward, times["cpu_seconds"])
        for label, people in found.items():
            show(name, label, people)
    base = found.get("PrivateSynthetic, typical")
    paired = {
        label: plain_json(mean_interval(people.mean("plaus_prox") - base.mean("plaus_prox"), 0.95))
        for label, people in found.items()
        if base is not None and people is not base
    }
    return {
        "n_train": len(s.train),
        "n_people": len(s.rows),
        "found": {
            label: people.to_dict() | {"model_seconds": float(np.median(models.get(label, [0.0])))}
            for label, people in found.items()
        },
        "synthetic_table": {n: {k: float(np.mean([w[k] for w in v])) for k in v[0]} for n, v in worth.items()},
        "plausibility_less_that_of_ours": paired,
        "not_ended": {"cpu_seconds": given.patience, "peers": late},
        "failed": failed,
    }


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="of an environment with opendp[mbi] and polars")
    parser.add_argument("--queries", type=int, default=200, help="people explained per data set (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=2, help="draws of noise (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--patience", type=int, default=1_500, help="CPU seconds of a draw (default: %(default)s)")
    parser.add_argument("--peers", nargs="+", default=["PrivateSynthetic", "DPGAN", "MST", "AIM"])
    parser.add_argument("--epsilon", type=float, default=1.0, help="of the whole table (default: %(default)s)")
    given = parse(parser, RESULTS, quick="20 people, one draw, one set, no peers")
    if given.quick:
        given.queries, given.draws, given.sets, given.peers = 20, 1, ["compas"], ["PrivateSynthetic"]
    about = provenance(None, *given.sets)
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"sets": {}, "data_sha256": {}}
    about["data_sha256"] = old["data_sha256"] | about["data_sha256"]
    sets = dict(old["sets"])
    for name in given.sets:
        label = name if given.epsilon == 1 else f"{name}, epsilon {given.epsilon:g}"
        sets[label] = {"commit": about["commit"], "draws": given.draws, **study(name, given.epsilon, given)}
        note = "epsilon 1 unless told, delta 1e-6, the same grid and people; fit_seconds are CPU seconds of one draw"
        write(given, {**about, "note": note, "sets": sets})


if __name__ == "__main__":
    main()
