"""Differential inference testing on the paper's data: our figures beside those that Kassem et al. (2018) report.

Adult: three samples of 10,000 complete rows under basic Mondrian with k or frequency-l. Internet usage: all rows with
an age. Half scale (see docs/guide/differential-inference.md). Maxima vary between samples, so shares and means are
compared. 200 people per setting are also tested on the general path.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _dit_sets import adult, adult_settings, internet, internet_settings
from _record import parse, provenance, write, writes

import countervail as cv
from countervail.report.differential_page import cdf_picture

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "dit_study.json"
LINE = 10**-2.5
KS, LS = (1, 2, 5, 7, 20, 64, 80), (2, 3, 4, 5, 6, 7)
CHECKED = {"k": (1, 2, 5, 20, 64), "l": (2, 3, 5)}
REPORTED: dict[str, Any] = {
    "adult": {
        "share_above": {"k=5": 0.54, "l=5": 0.03},
        "max_k": dict(zip(KS, (0.32, 0.197, 0.137, 0.126, 0.178, 0.234, 0.235))),
        "max_l": dict(zip(LS, (0.21, 0.213, 0.04, 0.028, 0.0018, 9.8e-05))),
    },
    "internet": {
        "share_above": {"k=5": 0.35, "l=5": 0.0},
        "max_k": dict(zip(KS, (0.2, 0.257, 0.305, 0.398, 0.512, 0.459, 0.424))),
        "max_l": dict(zip(LS, (0.15, 0.43, 0.17, 9.6e-05, 9.6e-05, 9.6e-05))),
    },
}


def tested(table: cv.Table, common: dict[str, Any]) -> dict[str, cv.attack.DifferentialResult]:
    """One result per k and per l; an l that the table as a whole does not have is left out."""
    grid = {f"k={k}": {"k": k} for k in KS} | {f"l={x}": {"k": 1, "l": x, "diversity": "frequency"} for x in LS}
    out = {}
    for name, given in grid.items():
        try:
            out[name] = cv.DifferentialInferenceTest(cv.published.BasicMondrian(**given, **common), beside=0).run(
                table, label=name
            )
        except cv.CountervailError as error:
            print(f"{name}: {error}")
    return out


def figures(result: cv.attack.DifferentialResult) -> dict[str, Any]:
    """What is compared."""
    above = result.share_above(LINE).value
    return {
        "mean": result.mean,
        "epsilon": float(f"{result.epsilon:.2g}"),
        "share_above": above,
        "changed": result.changed.value,
        "path": result.path,
    }


def agreement(table: cv.Table, common: dict[str, Any], n: int = 200) -> dict[str, float]:
    """The largest difference between the paths over n people, per setting."""
    out = {}
    grid = {f"k={k}": {"k": k} for k in CHECKED["k"]}
    grid |= {f"l={x}": {"k": 1, "l": x, "diversity": "frequency"} for x in CHECKED["l"]}
    for name, given in grid.items():
        protector = cv.published.BasicMondrian(**given, **common)
        fast, general = (
            cv.DifferentialInferenceTest(protector, path=p, n_records=n, beside=0).run(table)
            for p in ("fast", "general")
        )
        out[name] = float(abs(fast.d_pp - general.d_pp).max())
        print(f"paths, {name}: {out[name]:.1e}", flush=True)
    return out


def main() -> None:
    """Test, print beside the paper, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS)
    about = provenance(["adult", "internet_usage"], 0)
    out: dict[str, Any] = {**about, "threshold": LINE, "adult": {}, "internet": {}}
    first: dict[str, cv.attack.DifferentialResult] = {}
    for seed in (0, 1, 2):
        results = tested(adult(10_000, seed), adult_settings())
        first = first or results
        out["adult"][f"sample {seed}"] = {name: figures(r) for name, r in results.items()}
        print(
            f"Adult, sample {seed}: {results['k=5'].share_above(LINE).value:.1%} above at k=5 (paper 54%)", flush=True
        )
    table = internet()
    out["internet"]["rows"] = len(table)
    # Without hierarchies categories are cut into single values at once.
    plain = {"sensitive": "Household_Income"}
    for key, given in {"figures": plain, "with_hierarchies": internet_settings(table)}.items():
        net = tested(table, given)
        out["internet"][key] = {name: figures(r) for name, r in net.items()}
        for name, r in net.items():
            print(f"Internet, {key}, {name}: {r}", flush=True)
    open_table = {}
    for name, table in {"adult": adult(10_000, 0), "adult, all": adult(None, 0)}.items():
        found = cv.DifferentialInferenceTest(cv.published.BasicMondrian(k=5, **adult_settings()), beside=100).run(table)
        open_table[name] = {key: figures(r) for key, r in {"k=5": found, **found.beside}.items()}
        print(name, {k: (v["mean"], v["share_above"]) for k, v in open_table[name].items()}, flush=True)
    out["as_it_is"] = open_table
    out["reported"] = REPORTED
    out["paths"] = agreement(adult(10_000, 0), adult_settings())
    for kind in ("k", "l"):
        drawn = {n: r for n, r in first.items() if n.startswith(f"{kind}=")}
        picture = ROOT / "docs" / "figures" / f"dit-adult-{kind}.svg"
        if writes(given):
            picture.write_text(cdf_picture(drawn), encoding="utf-8")
    write(given, out)


if __name__ == "__main__":
    main()
