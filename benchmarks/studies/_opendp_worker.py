"""OpenDP's MST or AIM in an environment of its own: reads positions, writes synthetic positions and seconds.

python _opendp_worker.py MST positions.csv sizes.json rho rows synthetic.csv
"""

from __future__ import annotations

import json
import sys
import time

import opendp.prelude as dp
import polars as pl
from opendp.extras.mbi import AIM, MST

dp.enable_features("contrib")


def main() -> None:
    """One release."""
    name, positions, sizes, rho, rows, out = sys.argv[1:]
    with open(sizes, encoding="utf-8") as file:
        keys = {n: list(range(m)) for n, m in json.load(file).items()}
    frame = pl.read_csv(positions, schema_overrides=dict.fromkeys(keys, pl.Int64)).lazy()
    start, spent = time.perf_counter(), time.process_time()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=float(rho)),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=10_000_000)],
    )
    algorithm = MST() if name == "MST" else AIM()
    table = context.query().contingency_table(keys=keys, algorithm=algorithm).release()
    made = table.synthesize(int(rows), method="sample")
    times = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - spent}
    made.write_csv(out)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
