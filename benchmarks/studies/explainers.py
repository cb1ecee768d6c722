"""The explainers that the papers name: what they cost, whom they give away, and what CF-K leaves of that.

German credit and 4,000 rows of Adult: refused people of the control half ask. Linkage on plain answers; linkage and
inversion on those of CF-K (k = 10) that goes by each native explainer, with regions around single rows and with groups.
Speed: CPU seconds of a fit to Adult's training part, and milliseconds per answer in one batch, model included.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _record import ROOT, parse, provenance, write

import countervail as cv
from countervail.core.table import Table
from countervail.model import train_forest

RESULTS = ROOT / "benchmarks" / "results" / "explainers.json"
ROWS = {"german_credit": 1_000, "adult": 4_000}
K, ASKED, FAST = 10, 100, 200
PLAIN: dict[str, Any] = {
    "NICE": cv.NICE(target="favourable"),
    "NearestCounterfactual": cv.NearestCounterfactual(target="favourable"),
    "FACE": cv.FACE(target="favourable"),
    "FACE, kernel density": cv.FACE(target="favourable", density="kde"),
    "FACE, epsilon": cv.FACE(target="favourable", graph="epsilon", density="epsilon"),
    "CaseBased, as it is": cv.CaseBased(target="favourable", tolerance=0.1, adapt=False),
    "CaseBased": cv.CaseBased(target="favourable", tolerance=0.1),
    "SEDC": cv.SEDC(target="favourable"),
}
NATIVE: dict[str, Any] = {
    "NICE": None,
    "NearestCounterfactual": cv.NearestCounterfactual(),
    "FACE": cv.FACE(),
    "CaseBased, as it is": cv.CaseBased(tolerance=0.1, adapt=False),
}


def people(name: str, rows: int | None) -> tuple[Table, Table, Any, Any]:
    """Members, controls, a forest, and the refused among the controls."""
    table = cv.load(name)
    if name == "adult":
        kept = tuple(c for c in table.schema if c.name not in ("fnlwgt", "education-num"))
        table = Table.from_frame(table.frame[[c.name for c in kept]], schema=cv.Schema(kept, table.schema.favourable))
    if rows is not None and rows < len(table):
        table = table.take(np.sort(np.random.default_rng(0).choice(len(table), rows, replace=False)))
    members, control = table.split(test_size=0.4, random_state=0)
    model = train_forest(members)
    refused = control.features[model.predict(control.features) != table.schema.favourable[0]]
    return members, control, model, refused


def measured(e: cv.Explanations, members: Table, control: Table) -> dict[str, Any]:
    """What answers are like, and whom linkage finds by them."""
    attack = cv.attack.Linkage().run(e, members, control).to_dict()
    cost = cv.measure.recourse_cost(e)
    return {
        "asked": len(np.unique(e.query)),
        "answered": int(e.found.sum()),
        "columns_changed": float(np.nanmean(cv.measure.sparsity(e))) if e.found.any() else None,
        "recourse_cost": float(np.nanmean(cost)) if e.found.any() else None,
        "linkage": attack,
    }


def attacks(name: str, quick: bool) -> list[dict[str, Any]]:
    """Plain answers and those of CF-K, attacked."""
    members, control, model, refused = people(name, ROWS[name] // (4 if quick else 1))
    asked, out = refused.iloc[: ASKED // (5 if quick else 1)], []
    for label, explainer in PLAIN.items():
        e = clone(explainer).fit(members, model).explain(asked)
        out.append({"set": name, "explainer": label, "protector": "none", **measured(e, members, control)})
        say(out[-1])
    for search in ("exact", "groups"):
        for label, explainer in NATIVE.items():
            made = cv.CFK(k=K, search=search, explainer=explainer, reward="none").fit(members, model)
            found = {"set": name, "explainer": label, "protector": f"CFK(k={K}, search={search!r}, reward='none')"}
            found |= measured(made.explain(asked), members, control)
            inversion = cv.attack.Inversion(n_targets=4 * len(asked)).run(made, members, control)
            out.append({**found, "inversion": inversion.to_dict()})
            say(out[-1])
    return out


def speed(quick: bool) -> list[dict[str, Any]]:
    """CPU time at Adult's size; kernels are compiled by a smaller run first."""
    small = people("adult", 500)
    members, _, model, refused = people("adult", 4_000 if quick else None)
    asked, out = refused.iloc[:FAST], []
    for label, explainer in PLAIN.items():
        clone(explainer).fit(small[0], small[2]).explain(small[3].iloc[:3]).to_text()
        start = time.process_time()
        made = clone(explainer).fit(members, model)
        fitted = time.process_time()
        status = made.explain(asked).status
        done = time.process_time()
        out.append(
            {
                "set": "adult",
                "rows": len(members),
                "explainer": label,
                "fit_cpu_s": fitted - start,
                "answer_cpu_ms": (done - fitted) / len(asked) * 1000,
                "asked": len(asked),
                "answered": int((status == "found").sum()),
            }
        )
        print(f"{label}: fit {fitted - start:.2f} s, {out[-1]['answer_cpu_ms']:.2f} ms per answer", flush=True)
    return out


def say(row: dict[str, Any]) -> None:
    """One line of a study."""
    linkage = row["linkage"]
    text = f"{row['set']}, {row['explainer']}, {row['protector']}: {row['answered']} of {row['asked']} answered, "
    text += f"linkage exposes {linkage['exposed']['value']:.0%}"
    if "inversion" in row:
        alone = row["inversion"]["detail"]["alone after bisectors"]["value"]
        below = row["inversion"]["detail"]["below k after bisectors"]["value"]
        text += f", inversion leaves fewer than k in {below:.0%}, one in {alone:.0%}"
    print(text, flush=True)


def main() -> None:
    """Run, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS, quick="a quarter of the people, a fifth of the askers")
    origin = provenance(tuple(ROWS), 0)
    warnings.simplefilter("ignore", cv.ModelWarning)
    rows = [row for name in ROWS for row in attacks(name, given.quick)]
    write(given, {**origin, "k": K, "rows": rows, "speed": speed(given.quick)})


if __name__ == "__main__":
    main()
