"""Whom do other tools give away? DiCE's search tree and NICEx, each as released, through `cv.read_explanations`.

German credit; both tools run in environments of their own, on the same members and the same askers, with a forest
each. (On 750 rows of Adult one answer of DiCE's search tree took minutes.) Every output is attacked in three readings:
every value counts as the stranger's; values that equal the asker's count for nothing; equal numbers count for nothing
(DiCE puts the asker's numbers back where it can).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _peer import peer_python, run_peer
from _record import ROOT, code, data_hash, parse, versions, write

import countervail as cv
from countervail.core.table import Table

RESULTS = ROOT / "benchmarks" / "results" / "foreign.json"
WORKER = Path(__file__).with_name("_foreign_worker.py")
TOOLS = {"dice": ["dice-ml==0.12"], "nice": ["NICEx==0.2.3", "scikit-learn==1.5.2"]}
SETS = {"german_credit": (500, 250, 250)}  # members, controls, askers
ANSWERS = 100
ATTACKS: dict[str, Any] = {
    "linkage": cv.attack.Linkage(),
    "singling out": cv.attack.SinglingOut(),
    "attribute inference": cv.attack.AttributeInference(),
    "linkability": cv.attack.Linkability(),
    "membership": cv.attack.Membership(),
    "re-identification": cv.attack.Reidentification(),
}


def people(name: str, quick: bool) -> tuple[Table, Table, Table]:
    """Members, controls and askers, drawn at random from rows without missing values."""
    table = cv.load(name)
    order = np.random.default_rng(0).permutation(np.flatnonzero(table.features.notna().all(axis=1)))
    ends = np.cumsum([n // 4 for n in SETS[name]] if quick else SETS[name])
    return tuple(table.take(np.sort(p)) for p in np.split(order[: ends[-1]], ends[:-1]))  # type: ignore[return-value]


def about(table: Table, answers: int) -> dict[str, Any]:
    """What the tools are told of the columns; numbers are whatever is written as whole numbers."""
    features = table.features
    whole = [n for n in features.columns if features[n].astype(str).str.fullmatch(r"-?\d+").all()]
    codes = {n: sorted(features[n].dropna().astype(str).unique()) for n in features.columns if n not in whole}
    names = {"numbers": whole, "codes": codes, "target": table.schema.target}
    return {**names, "favourable": str(table.schema.favourable[0]), "answers": answers}


def outputs(folder: Path, told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each tool's output, and how it is to be read."""
    asked = np.load(folder / "asked.npy")
    nice = {f"NICEx, {r}": {"source": (asked, folder / f"nice_{r}.npy")} for r in ("none", "sparsity")}
    decoded = {name: how | {"decode": told["codes"]} for name, how in nice.items()}
    return {"DiCE, kdtree": {"source": folder / "dice.json"}, **decoded}


def main() -> None:
    """Explain, read, attack, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS, quick="a quarter of the people")
    origin = code()
    rows, peers = [], {}
    for set_ in SETS:
        members, control, askers = people(set_, given.quick)
        told = about(cv.load(set_), ANSWERS)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "about.json").write_text(json.dumps(told), encoding="utf-8")
            features = members.schema.features
            members.frame[[*features, told["target"]]].to_csv(folder / "members.csv", index=False)
            askers.features.to_csv(folder / "askers.csv", index=False)
            for tool, packages in TOOLS.items():
                run_peer(peer_python(f"foreign-{tool}", packages), WORKER, str(folder), tool)
                peers[tool] = json.loads((folder / f"versions_{tool}.json").read_text(encoding="utf-8"))
            for output, how in outputs(folder, told).items():
                for reading, own in (("nothing", "nothing"), ("unchanged", "unchanged"), ("numbers", told["numbers"])):
                    rest = {k: v for k, v in how.items() if k != "source"}
                    e = cv.read_explanations(how["source"], members, own=own, **rest)
                    row = {"set": set_, "output": output, "own": reading, "answers": int(e.found.sum())}
                    row |= {"members": len(members), "controls": len(control), "caveats": len(e.caveats)}
                    row["attacks"] = {n: a.run(e, members, control).to_dict() for n, a in ATTACKS.items()}
                    rows.append(row)
                    said = (
                        f"{n} {f['members']['value']:.3f}/{f['controls']['value']:.3f}"
                        for n, f in row["attacks"].items()
                    )
                    exposed = row["attacks"]["linkage"]["exposed"]["value"]
                    print(f"{set_}, {output}, own={reading}: {exposed:.0%} speak of one; {', '.join(said)}", flush=True)
    hashes = {n: data_hash(n) for n in SETS}
    write(
        given,
        {**origin, "seed": 0, "versions": versions(), "peer_versions": peers, "data_sha256": hashes, "rows": rows},
    )


if __name__ == "__main__":
    main()
