"""Do pycanon 1.3.6 and our own `check` agree that Mondrian's releases keep k, l and t?

Adult, German credit, CMC and Informs, a grid of k, l and t. Every release is written to a file; pycanon reads it in an
environment of its own (it pins an old numpy), `check` reads it as it reads any file. Compared: k, distinct l, entropy l
(pycanon rounds down), t with equal and with ordered distance. pycanon's recursive c is left out: it divides by the
smallest count where the definition has the largest.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _peer import peer_python, run_peer
from _record import code, data_hash, parse, versions, write

import countervail as cv
from countervail.core.errors import ParameterError
from countervail.core.files.frames import write_frame
from countervail.core.files.release_file import PublishedFile, examine
from countervail.core.guarantee.diversity import value_ranks

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mondrian_check.json"
SETS = {"adult": "occupation", "german_credit": "savings_status", "cmc": "SOLIndex", "informs": "poverty"}
GRID: list[dict[str, Any]] = [
    *({"k": k} for k in (2, 5, 10, 50)),
    *({"k": k, "l": 3} for k in (5, 10)),
    {"k": 5, "l": 2, "diversity": "entropy"},
    {"k": 5, "l": 2, "diversity": "frequency"},
    {"k": 5, "l": (2.0, 2), "diversity": "recursive"},
    {"k": 5, "t": 0.3},
    {"k": 10, "l": 3, "t": 0.2},
    {"k": 5, "t": 0.15, "closeness": "ordered"},
]


def releases(folder: Path) -> list[dict[str, Any]]:
    """Release every set at every point of the grid, and write each to a file as an outsider would find it."""
    jobs = []
    for name, secret in SETS.items():
        table = cv.load(name).with_roles(sensitive=[secret])
        ordinal = table.schema[secret].type == "ordinal"
        for i, settings in enumerate(GRID):
            if settings.get("closeness") == "ordered" and not ordinal:
                continue
            try:
                release = cv.Mondrian(**settings, sensitive=secret).fit(table).protect(table)
            except ParameterError as error:
                print(f"{name} {settings}: {error}")
                continue
            frame = release.to_text_frame()
            quasi = table.schema.names("quasi")
            out = frame[[*quasi, secret]].astype(object).where(frame[[*quasi, secret]].notna(), "missing").astype(str)
            if ordinal:
                kinds = sorted(pd.unique(frame[secret]), key=str)
                ranks = value_ranks([None if pd.isna(v) else v for v in kinds], table.schema[secret])
                out["rank"] = frame[secret].map(dict(zip(kinds, ranks.tolist()))).astype(int)
            file = f"{name}_{i}.csv"
            write_frame(out, folder / file)
            jobs.append(
                {
                    "set": name,
                    "settings": settings,
                    "file": file,
                    "quasi": quasi,
                    "sensitive": secret,
                    "rank": "rank" if ordinal else None,
                    "promise": [v.to_dict() for v in verdicts(folder / file, table, settings, release)],
                    "counted": counted(folder / file, table, secret, ordinal),
                    "rows": len(release),
                    "classes": len(release.regions),
                }
            )
    return jobs


def verdicts(path: Path, table: cv.Table, settings: dict[str, Any], release: cv.Release) -> list[Any]:
    """Our own `check` of the promise, on the file."""
    schema = _plain(table)
    parts = release.guarantee.parts if isinstance(release.guarantee, cv.AllOf) else (release.guarantee,)
    return [examine(PublishedFile.read(path, schema), part) for part in parts]


def counted(path: Path, table: cv.Table, secret: str, ordinal: bool) -> dict[str, float]:
    """What our own `check` counts."""
    published = PublishedFile.read(path, _plain(table))
    found = {
        "k": examine(published, cv.KAnonymity(1)).reached,
        "distinct": examine(published, cv.LDiversity(1, "distinct", secret)).reached,
        "entropy": examine(published, cv.LDiversity(1, "entropy", secret)).reached,
        "equal": examine(published, cv.TCloseness(1, "equal", secret)).reached,
    }
    if ordinal:
        found["ordered"] = examine(published, cv.TCloseness(1, "ordered", secret)).reached
    return found


def _plain(table: cv.Table) -> cv.Schema:
    keep = [c for c in table.schema if c.role in ("quasi", "sensitive")]
    return cv.Schema(tuple(keep))


def agree(ours: dict[str, float], theirs: dict[str, float]) -> bool:
    """Whether both count the same; pycanon rounds entropy l down."""
    return (
        ours["k"] == theirs["k"]
        and ours["distinct"] == theirs["distinct"]
        and abs(math.floor(ours["entropy"] + 1e-9) - theirs["entropy"]) <= (abs(ours["entropy"] % 1) < 1e-6)
        and all(abs(ours[g] - theirs[g]) < 1e-9 for g in ("equal", "ordered") if g in theirs)
    )


def main() -> None:
    """Release, count twice, compare, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS)
    about = code()
    python = peer_python("pycanon-1.3.6", ["pycanon==1.3.6"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = releases(folder)
        (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        run_peer(python, Path(__file__).with_name("_pycanon_worker.py"), str(folder))
        peer = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    rows = []
    for job, theirs in zip(jobs, peer["answers"]):
        held = all(v["holds"] for v in job["promise"])
        row = {k: job[k] for k in ("set", "settings", "sensitive", "rows", "classes", "counted")}
        rows.append({**row, "pycanon": theirs, "promise_holds": held, "agree": agree(job["counted"], theirs)})
        print(f"{job['set']:<14} {job['settings']!s:<52} holds {held}  agree {rows[-1]['agree']}")
    out = {
        **about,
        "versions": versions(),
        "peer_versions": peer["versions"],
        "data_sha256": {n: data_hash(n) for n in SETS},
        "releases": len(rows),
        "promises_that_hold": sum(r["promise_holds"] for r in rows),
        "agreements": sum(r["agree"] for r in rows),
        "rows": rows,
    }
    write(given, out)
    print(f"{out['releases']} releases; {out['promises_that_hold']} keep their promise; {out['agreements']} agree.")


if __name__ == "__main__":
    main()
