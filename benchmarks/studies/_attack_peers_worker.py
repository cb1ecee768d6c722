"""The other side of `attack_peers.py`: anonymeter, SACRO-ML and pycanon, each run by the Python of its own environment.

`_attack_peers_worker.py FOLDER PEER`: reads FOLDER/jobs_PEER.json and the files that it names, writes
FOLDER/answers_PEER.json. Only public functions of the packages are called.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TRIES = 300  # conditions of three columns (its default) that it draws at most, to keep the run short


def read(folder: Path, name: str, numbers: list[str]) -> pd.DataFrame:
    """A file of rows: texts but for the columns named."""
    frame = pd.read_csv(folder / name, dtype=str, keep_default_na=False)
    return frame.astype({n: float for n in numbers if n in frame.columns})


def anonymeter(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Rates of the attack, of the same on controls, and of the naive attack, with half the width of their intervals."""
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    members, released, control = (read(folder, job[n], job["numbers"]) for n in ("members", "released", "control"))
    quasi, others = job["quasi"], job["others"]
    n = min(job["attacks"], len(control), len(released))  # it draws as many rows of each
    found: dict[str, Any] = {}
    np.random.seed(0)  # noqa: NPY002 -- it takes no seed of its own
    for mode in ("multivariate", "univariate"):
        start = time.process_time()
        try:
            evaluator = SinglingOutEvaluator(
                members[quasi], released[quasi], n_attacks=n, control=control[quasi], max_attempts=TRIES
            )
            evaluator.evaluate(mode=mode)
            found[f"singling out, {mode}"] = rates(evaluator, start) | {"right": len(evaluator.queries())}
        except RuntimeError as error:  # it gives up where it finds no condition
            found[f"singling out, {mode}"] = {"failed": type(error).__name__}
    start = time.process_time()
    evaluator = LinkabilityEvaluator(
        members, released, aux_cols=(quasi, others), n_attacks=n, n_neighbors=1, control=control
    )
    evaluator.evaluate(n_jobs=1)
    found["linkability"] = rates(evaluator, start)
    for secret in job["secrets"]:
        start = time.process_time()
        known = [c for c in members.columns if c != secret]
        evaluator = InferenceEvaluator(
            members,
            released,
            aux_cols=known,
            secret=secret,
            regression=secret in job["numbers"],
            n_attacks=n,
            control=control,
        )
        evaluator.evaluate(n_jobs=1)
        found[f"inference of {secret}"] = rates(evaluator, start)
    return found


def rates(evaluator: Any, start: float) -> dict[str, Any]:
    """Success of the three attacks."""
    results = evaluator.results()
    parts = {"members": results.attack_rate, "controls": results.control_rate, "baseline": results.baseline_rate}
    said = {name: [float(r.value), float(r.error)] for name, r in parts.items()}
    return {**said, "n": int(results.n_attacks), "cpu_seconds": time.process_time() - start}


def sacroml(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """The area, and the highest true positive rate at or below each false positive rate of its curve."""
    from sacroml.metrics import get_metrics

    scores, member = np.array(job["scores"]), np.array(job["member"], dtype=float)
    said = get_metrics(np.column_stack([1 - scores, scores]), member)
    fpr, tpr = np.asarray(said["fpr"]), np.asarray(said["tpr"])
    at = {f"TPR at FPR {r:.1%}": float(tpr[fpr <= r].max(initial=0.0)) for r in job["rates"]}
    return {"AUC": float(said["AUC"]), **at}


def pycanon(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Its risks, and the sizes of its classes."""
    from pycanon import metrics

    frame = pd.read_csv(folder / job["file"], dtype=str, keep_default_na=False)
    classes = int(metrics.sizes_ec(frame, job["quasi"])["n_ec"])
    return {
        "max_rir": float(metrics.max_rir(frame, job["quasi"])),
        "average_rir": float(metrics.average_rir(frame, job["quasi"])),
        "classes": classes,
        "rows": len(frame),
    }


def main(folder: Path, peer: str) -> None:
    """Answer every job of one peer."""
    warnings.simplefilter("ignore")
    answer = {"anonymeter": anonymeter, "sacroml": sacroml, "pycanon": pycanon}[peer]
    jobs = json.loads((folder / f"jobs_{peer}.json").read_text(encoding="utf-8"))
    packages = {name: version(name) for name in (peer, "numpy", "pandas")}
    answers = [answer(folder, job) for job in jobs]
    out = {"versions": packages, "answers": answers}
    (folder / f"answers_{peer}.json").write_text(json.dumps(out), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
