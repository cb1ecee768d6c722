"""Runs in an environment of mosaicrown's own, on a clone of github.com/mosaicrown/mondrian: one job on two cores.

Their `distributed/anonymize.py` is run as it stands, with Spark on this machine in the place of their containers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path


def main(clone: Path, folder: Path) -> None:
    """Anonymise `rows.csv` of a folder as `job.json` in it says."""
    parts = clone / "distributed"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(parts / "mondrian")  # of the workers
    settings = {
        "spark.driver.maxResultSize": "0",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    words = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master local[2] --driver-memory 4g {words} pyspark-shell"
    sys.path[:0] = [str(parts), str(parts / "mondrian")]
    import anonymize

    start = time.perf_counter()
    sys.argv = ["anonymize.py", str(folder / "job.json"), "2", "0", "0"]
    anonymize.main()
    about = {name: version(name) for name in ("pyspark", "pandas", "numpy", "pyarrow")}
    told = {"seconds": time.perf_counter() - start, "versions": about}
    (folder / "answers.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
