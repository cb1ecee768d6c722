"""Runs in anonypy's own environment: partition and release Adult, timed, classes written down."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import anonypy
import numpy as np
import pandas as pd


def main(folder: Path) -> None:
    """Every job: the partition alone, then the whole way to a frame."""
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    out = {"versions": {name: version(name) for name in ("anonypy", "numpy", "pandas")}, "jobs": {}}
    for name, job in jobs.items():
        frame = pd.read_csv(folder / job["file"])
        for column in job["categorical"]:
            frame[column] = frame[column].astype("category")
        start = time.process_time()
        partitions = anonypy.mondrian.Mondrian(frame, job["quasi"], job["sensitive"]).partition(job["k"])
        seconds = time.process_time() - start
        cell_of = np.empty(len(frame), np.int64)
        for i, rows in enumerate(partitions):
            cell_of[rows] = i
        start = time.process_time()
        anonypy.anonypy.anonymize(frame, partitions, job["quasi"], job["sensitive"])
        rendering = time.process_time() - start
        np.save(folder / f"{name}.npy", cell_of)
        out["jobs"][name] = {"partition_s": seconds, "end_to_end_s": seconds + rendering, "classes": len(partitions)}
    (folder / "answers.json").write_text(json.dumps(out), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
