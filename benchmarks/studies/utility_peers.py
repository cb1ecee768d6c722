"""What a reader still gets from tables of several protections: counts, and models that decide about other people.

Loss (NCP), median relative error of random counts over two columns, and the accuracy of a boosted model that learnt
from the released cells, on rows that took no part; beside it the same model on the original rows. Strict Mondrian as it
is by default; `local`, which moves rows between classes and names sets where there are hierarchies, as ARX's local
recoding does; microaggregation (MDAV, as statistical offices use it); and anonypy, in an environment of its own, its
classes written with the same cells as ours. CPU seconds of the protection alone.

python benchmarks/studies/utility_peers.py [--sets adult default_credit acs_income_ca_2018] [--k 5 10] [--rows 10000]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))
from _peer import peer_python, run_peer
from _record import parse, provenance, write, writes
from mondrian import QUASI

import countervail as cv
from countervail.core.guarantee.promises import NoGuarantee
from countervail.core.region import Regions
from countervail.data.registry import REGISTERED, find

RESULT = Path(__file__).parents[1] / "results" / "utility_peers.json"
SETS = ("adult", "default_credit", "acs_income_ca_2018")
ANONYPY = "anonypy 0.2.1"


def people(name: str, rows: int) -> tuple[cv.Table, cv.Table]:
    """Rows to release, and others to decide about; missing labels are a label, as anonypy needs it."""
    table = cv.load(name)
    if name == "adult":
        table = table.with_roles(quasi=QUASI["Q8"], sensitive=[])
    picked = table.take(np.sort(np.random.default_rng(0).permutation(len(table))[: 2 * rows]))
    return picked.split(test_size=0.5, random_state=0)


def named(name: str, table: cv.Table) -> dict[str, Any]:
    """Hierarchies of labels and their names, where they lie beside the data."""
    folder = find(name).parent / "hierarchies" / name if name in REGISTERED else None
    if folder is None or not folder.is_dir():
        return {}
    labels = [n for n in table.schema.names("quasi") if not table.schema[n].numeric and (folder / f"{n}.csv").is_file()]
    return {"labels": "hierarchy", "hierarchies": {n: cv.Hierarchy.read(folder / f"{n}.csv") for n in labels}}


def anonypy(table: cv.Table, ks: list[int]) -> dict[int, tuple[cv.Release, float]]:
    """Its classes over the same rows, each shown as what its members have."""
    quasi = table.schema.names("quasi")
    labels = [n for n in quasi if not table.schema[n].numeric]
    frame = table.frame[[*quasi, table.schema.target]].copy()
    for n in labels:
        frame[n] = frame[n].astype(object).where(frame[n].notna(), "missing").astype(str)
    python = peer_python("anonypy-0.2.1", ["anonypy==0.2.1", "numpy", "pandas"])
    out = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        frame.to_csv(folder / "rows.csv", index=False)
        job = {"file": "rows.csv", "quasi": quasi, "categorical": labels, "sensitive": table.schema.target}
        (folder / "jobs.json").write_text(json.dumps({str(k): {**job, "k": k} for k in ks}), encoding="utf-8")
        run_peer(python, Path(__file__).parents[1] / "speed" / "_anonypy_worker.py", str(folder))
        took = json.loads((folder / "answers.json").read_text(encoding="utf-8"))["jobs"]
        for k in ks:
            out[k] = (as_release(table, np.load(folder / f"{k}.npy")), took[str(k)]["end_to_end_s"])
    return out


def as_release(table: cv.Table, classes: Any) -> cv.Release:
    """A release of given classes: ranges of numbers, sets of labels."""
    quasi = table.schema.names("quasi")
    held = table.frame[quasi].groupby(classes, sort=True)
    cells = {n: held[n].agg(span if table.schema[n].numeric else kinds) for n in quasi}
    regions = Regions.from_cells(pd.DataFrame(cells)[quasi].to_dict("records"), table.schema)
    others = table.frame.drop(columns=[*quasi, *table.schema.names("identifier")])
    return cv.Release(regions, np.asarray(classes), others, table.schema, NoGuarantee("another tool's"), audit=table)


def span(values: pd.Series) -> Any:
    """A number, or the interval from the least to the greatest."""
    low, high = float(values.min()), float(values.max())
    return values.iloc[0] if low == high else pd.Interval(low, high, closed="both")


def kinds(values: pd.Series) -> Any:
    """A label, or the set of labels."""
    found = values.astype(object).unique()
    return found[0] if len(found) == 1 else frozenset(found)


def figures(release: cv.Release, table: cv.Table, test: cv.Table, seconds: float) -> dict[str, Any]:
    """What is lost and what is left."""
    model = cv.measure.model_utility(release, test, table=table)
    return {
        "classes": len(release.regions),
        "smallest_class": int(np.bincount(release.classes()).min()),
        "ncp_percent": 100 * float(cv.measure.ncp(release).mean()),
        "query_error_percent": 100 * cv.measure.query_error(release, table=table).median,
        "accuracy": model.released.to_dict(),
        "accuracy_of_original": model.original.to_dict(),
        "majority": model.majority,
        "cpu_seconds": seconds,
    }


def timed(make: Callable[[], Any], table: cv.Table) -> tuple[cv.Release, float]:
    """A release and how long it took, compiling left out."""
    make().fit(table.take(range(200))).protect(table.take(range(200)))
    start = time.process_time()
    release = make().fit(table).protect(table)
    return release, time.process_time() - start


def run(name: str, ks: list[int], rows: int) -> dict[str, Any]:
    """Every protection at every k."""
    table, test = people(name, rows)
    names = named(name, table)
    numeric = [n for n in table.schema.names("quasi") if table.schema[n].numeric]
    ours: dict[str, Callable[[int], Any]] = {
        "Mondrian": lambda k: cv.Mondrian(k=k),
        "Mondrian, local": lambda k: cv.Mondrian(k=k, mode="local", **names),
        "Microaggregation": lambda k: cv.Microaggregation(k=k),
    }
    theirs = anonypy(table, ks)
    out: dict[str, Any] = {"rows": len(table), "numeric": len(numeric), "quasi": table.schema.names("quasi")}
    for k in ks:
        found = {m: timed(lambda make=make, k=k: make(k), table) for m, make in ours.items()}
        found[ANONYPY] = theirs[k]
        out[f"k={k}"] = {m: figures(release, table, test, seconds) for m, (release, seconds) in found.items()}
        for m, f in out[f"k={k}"].items():
            print(
                f"{name}, k={k}, {m}: NCP {f['ncp_percent']:.2f}%, counts {f['query_error_percent']:.1f}% off, "
                f"accuracy {100 * f['accuracy']['value']:.1f}% "
                f"(original {100 * f['accuracy_of_original']['value']:.1f}%), {f['cpu_seconds']:.2f} s",
                flush=True,
            )
    return out


def main() -> None:
    """Run the study and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--k", nargs="+", type=int, default=[5, 10])
    parser.add_argument("--rows", type=int, default=10_000)
    options = parse(parser, RESULT, quick="German credit, k=10")
    if not writes(options) and options.quick:
        options.sets, options.k, options.rows = ["german_credit"], [10], 400
    about = provenance(options.sets, seed=0)
    write(options, {**about, "sets": {name: run(name, options.k, options.rows) for name in options.sets}})


if __name__ == "__main__":
    main()
