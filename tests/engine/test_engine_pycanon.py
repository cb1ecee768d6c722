"""pycanon, which shares no code with us, counts the k, l and t of written releases as we do.

It asks for packages that do not go together with ours, so it stands in an environment of its own:
`PYCANON_PYTHON=/path/to/that/bin/python pytest tests/engine/test_engine_pycanon.py`.
"""

import json
import os
import subprocess

import pandas as pd
import pytest
from rows_in_files import ROLES, people

import countervail as cv
from countervail.engine.published import count_published

COUNT = """
import json, sys
import pandas as pd
from pycanon import anonymity

frame = pd.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
quasi, secret = json.loads(sys.argv[2]), [sys.argv[3]]
print(json.dumps({
    "k": int(anonymity.k_anonymity(frame, quasi)),
    "l": int(anonymity.l_diversity(frame, quasi, secret)),
    "t": float(anonymity.t_closeness(frame, quasi, secret)),
}))
"""


@pytest.mark.skipif("PYCANON_PYTHON" not in os.environ, reason="pycanon needs an environment of its own")
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("seed", range(3))
def test_pycanon_counts_what_we_count(engine, seed, tmp_path):
    people(800, seed).to_parquet(tmp_path / "rows.parquet", index=False)
    scan = cv.Table.scan(tmp_path / "rows.parquet", engine=engine, **ROLES)
    written = cv.Mondrian(6, l=2, t=0.4, sensitive="illness").fit(scan).write(tmp_path / "out")
    pd.read_parquet(tmp_path / "out").to_csv(tmp_path / "out.csv", index=False)
    words = [
        os.environ["PYCANON_PYTHON"],
        "-c",
        COUNT,
        str(tmp_path / "out.csv"),
        json.dumps(ROLES["quasi_identifiers"]),
    ]
    clean = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"}
    found = json.loads(
        subprocess.run([*words, "illness"], env=clean, capture_output=True, text=True, check=True).stdout
    )
    published = count_published(tmp_path / "out", scan.schema, ["illness"], engine=engine)
    assert found["k"] == written.smallest
    assert found["l"] == int(cv.LDiversity(2, sensitive="illness").reached(published).min())
    assert found["t"] == pytest.approx(cv.TCloseness(0.4, sensitive="illness").reached(published).max(), abs=1e-9)
