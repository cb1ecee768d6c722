"""Runs in pycanon's own environment: k, l and t of published files, as pycanon counts them."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from pycanon import anonymity


def main(folder: Path) -> None:
    """Read the jobs, answer each, write the answers."""
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    answers = []
    for job in jobs:
        frame = pd.read_csv(folder / job["file"], dtype=str, keep_default_na=False)
        quasi, secret = job["quasi"], [job["sensitive"]]
        found = {"k": int(anonymity.k_anonymity(frame, quasi))}
        found["distinct"] = int(anonymity.l_diversity(frame, quasi, secret))
        found["entropy"] = int(anonymity.entropy_l_diversity(frame, quasi, secret))
        found["equal"] = float(anonymity.t_closeness(frame, quasi, secret))
        if job["rank"] is not None:
            ranked = frame.assign(rank=frame[job["rank"]].astype(int))
            found["ordered"] = float(anonymity.t_closeness(ranked, quasi, ["rank"]))
        answers.append(found)
    packages = {name: version(name) for name in ("pycanon", "numpy", "pandas")}
    out = {"versions": packages, "answers": answers}
    (folder / "answers.json").write_text(json.dumps(out, default=np.generic.item), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
