"""Our attacks beside those of others: same people, same releases, same questions; figures beside each other.

Singling out, linkability and attribute inference beside anonymeter 1.0.0; area and rates of membership scores beside
SACRO-ML 2.0.1; prosecutor, journalist and marketer risk beside pycanon 1.3.6. Each runs in an environment of its own,
and only its results are looked at. German credit; releases: copies of everybody, half copies, columns shuffled apart
(no record is left), and the counterfactuals of plain NICE for people who are neither members nor controls.

For the journalist (El Emam 2013, as ARX: one over the fewest people of the population who fit a released class) half of
the people are released, and all of them are the population. pycanon counts the population as a table of its own, each
person with the released cells that fit; who fits none is left out. Marketer risk is counted beside from its definition.

The attacks are not the same algorithms. anonymeter's conditions are about three columns, may use less-than and
greater-than, and are drawn at random, at most 300; its rates are shares of the conditions that it was asked for,
found or not. Ours are what is released, each once. Where a release is open or harmless, both must say so.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))

from _peer import peer_python, run_peer
from _record import ROOT, code, data_hash, parse, versions, write

import countervail as cv
from countervail.attack.shared.nearness import Nearness
from countervail.attack.shared.planted import open_release
from countervail.attack.shared.roc import auc, tpr_at
from countervail.core.table import Table
from countervail.model import train_forest

RESULTS = ROOT / "benchmarks" / "results" / "attack_peers.json"
WORKER = Path(__file__).with_name("_attack_peers_worker.py")
PEERS = {"anonymeter": ["anonymeter==1.0.0"], "sacroml": ["sacroml==2.0.1"], "pycanon": ["pycanon==1.3.6"]}
SETS = {"german_credit": (450, 450, 100)}  # members, controls, askers
SECRETS = {"german_credit": ["purpose", "job", "credit_amount"]}
RATES = (0.1, 0.01)
ATTACKS = 500
KS = (2, 5, 10)


def people(name: str, quick: bool) -> tuple[Table, Table, Table]:
    """Members, controls and askers, drawn at random; records that occur more than once are nobody's in particular."""
    table = cv.load(name)
    alone = np.flatnonzero(~table.features.duplicated(keep=False).to_numpy() & table.features.notna().all(axis=1))
    order = np.random.default_rng(0).permutation(alone)
    sizes = [n // 5 for n in SETS[name]] if quick else SETS[name]
    ends = np.cumsum(sizes)
    return tuple(table.take(np.sort(part)) for part in np.split(order[: ends[-1]], ends[:-1]))  # type: ignore[return-value]


def releases(members: Table, askers: Table) -> dict[str, Table]:
    """Tables of rows that are released."""
    rng, n = np.random.default_rng(1), len(members)
    apart = pd.DataFrame({c: members.frame[c].iloc[rng.permutation(n)].array for c in members.frame.columns})
    half = pd.concat([members.frame.iloc[: n // 2], apart.iloc[n // 2 :]], ignore_index=True)
    answers = cv.NICE().fit(members, train_forest(members, trees=30)).explain(askers)
    shown = answers.counterfactuals[answers.found].assign(**{str(members.schema.target): answers.after[answers.found]})
    frames = {"copies": members.frame, "half copies": half, "columns apart": apart, "plain NICE": shown}
    names = [n for n in members.schema.names() if members.schema[n].role != "identifier"]
    return {k: members.with_frame(f[names].reset_index(drop=True), members.schema) for k, f in frames.items()}


def ours(released: Table, members: Table, control: Table, secrets: list[str]) -> dict[str, Any]:
    """The same questions, by our attacks."""
    release = open_release(released)
    attacks: dict[str, Any] = {
        f"singling out, {mode}": cv.attack.SinglingOut(mode, n_targets=ATTACKS)
        for mode in ("multivariate", "univariate")
    }
    attacks["linkability"] = cv.attack.Linkability(n_targets=ATTACKS)
    attacks |= {f"inference of {s}": cv.attack.AttributeInference([s], n_targets=ATTACKS) for s in secrets}
    found = {}
    for question, attack in attacks.items():
        result = attack.run(release, members, control)
        parts = {"members": result.members, "controls": result.controls, "baseline": result.baseline}
        found[question] = {k: [v.value, v.low, v.high] for k, v in parts.items()} | {"n": result.members.n}
    return found


def membership(released: Table, members: Table, control: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our figures of nearness to the release, and the scores as a job for SACRO-ML."""
    from countervail.attack.shared.released import value_sets

    space = Nearness(value_sets(open_release(released)), members.schema.features, members.schema, control.frame)
    inside, outside = (-space.nearest_thing(t.frame)[1] for t in (members, control))
    figures = {"AUC": auc(inside, outside), **{f"TPR at FPR {r:.1%}": tpr_at(inside, outside, r) for r in RATES}}
    scores = np.exp(np.concatenate([inside, outside]).astype(float))
    job = {"scores": scores.tolist(), "member": [1] * len(inside) + [0] * len(outside), "rates": RATES}
    return {n: [e.value, e.low, e.high] for n, e in figures.items()}, job


def risks(name: str, folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Risks of Mondrian's releases as we count them, and the same files as jobs for pycanon."""
    from countervail.core.files.frames import write_frame

    table, found = cv.load(name), []
    quasi = table.schema.names("quasi")
    for k in KS:
        release = cv.Mondrian(k=k).fit(table).protect(table)
        counted = cv.measure.release_risk(release)
        file = f"{name}-{k}.csv"
        write_frame(release.to_frame()[quasi].astype(str), folder / file)
        mine = {"set": name, "k": k, "prosecutor": counted.prosecutor, "marketer": counted.marketer}
        sizes = np.bincount(release.groups)
        mine |= {"mean over classes": float((1 / sizes[sizes > 0]).mean()), "rows": len(release)}
        found.append((mine, {"file": file, "quasi": quasi}))
    return found


def journalists(name: str, folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Risks in a population of which half is released, and the population as jobs for pycanon."""
    from countervail.core.cells import fits
    from countervail.core.files.frames import write_frame

    everybody, found = cv.load(name), []
    quasi, half = everybody.schema.names("quasi"), len(everybody) // 2
    released = everybody.take(np.sort(np.random.default_rng(2).permutation(len(everybody))[:half]))
    rows = everybody.frame[quasi].to_dict("records")
    for k in KS:
        release = cv.Mondrian(k=k).fit(released).protect(released)
        counted = cv.measure.release_risk(release, population=everybody)
        sizes = release.holding().count(everybody.select("quasi"))
        cells = release.to_frame()[quasi].astype(object).groupby(release.groups).first()
        classes = [dict(zip(quasi, cell)) for cell in cells.itertuples(index=False)]
        place = [[c for c, cell in enumerate(classes) if all(fits(r[n], cell[n]) for n in quasi)] for r in rows]
        assert max(map(len, place)) == 1
        inside = np.array([at[0] for at in place if at])
        file = f"{name}-{k}-population.csv"
        write_frame(cells.iloc[inside].astype(str).reset_index(drop=True), folder / file)
        mine = {"set": name, "k": k, "released": half, "population": len(everybody), "fitting": len(inside)}
        mine |= {"journalist": counted.journalist, "mean over classes": float((1 / sizes).mean())}
        by_hand = float((1 / np.bincount(inside)[release.groups]).mean())
        found.append(
            (mine | {"marketer": counted.marketer, "marketer by hand": by_hand}, {"file": file, "quasi": quasi})
        )
    return found


def asked(folder: Path, peer: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """What a peer answers; why not, where its environment cannot be built."""
    (folder / f"jobs_{peer}.json").write_text(json.dumps(jobs), encoding="utf-8")
    run_peer(peer_python(f"attack-{peer}", PEERS[peer]), WORKER, str(folder), peer)
    answers: dict[str, Any] = json.loads((folder / f"answers_{peer}.json").read_text(encoding="utf-8"))
    return answers


def main() -> None:
    """Attack, ask the others, print side by side, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS, quick="a fifth of the people")
    about = code()
    rows: list[dict[str, Any]] = []
    jobs: dict[str, list[dict[str, Any]]] = {peer: [] for peer in PEERS}
    counted: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for set_ in SETS:
            members, control, askers = people(set_, given.quick)
            features, quasi = members.schema.features, members.schema.names("quasi")
            numbers = [n for n in features if members.schema[n].type == "numeric"]
            for kind, released in releases(members, askers).items():
                for what, table in (("members", members), ("control", control), ("released", released)):
                    table.features.to_csv(folder / f"{set_}-{kind}-{what}.csv", index=False)
                files = {what: f"{set_}-{kind}-{what}.csv" for what in ("members", "control", "released")}
                others = [n for n in features if n not in quasi]
                jobs["anonymeter"].append(
                    files
                    | {"numbers": numbers, "quasi": quasi, "others": others}
                    | {"secrets": SECRETS[set_], "attacks": ATTACKS}
                )
                told, job = membership(released, members, control)
                jobs["sacroml"].append(job)
                figures = ours(released, members, control, SECRETS[set_])
                sizes = {"members": len(members), "controls": len(control), "released_rows": len(released)}
                rows.append({"set": set_, "release": kind, **sizes, "ours": figures, "membership": told})
            for mine, job in risks(set_, folder) if not given.quick or set_ == "german_credit" else ():
                counted.append(mine)
                jobs["pycanon"].append(job)
        several = [found for set_ in SETS for found in journalists(set_, folder)]
        jobs["pycanon"] += [job for _, job in several]
        theirs = {peer: asked(folder, peer, jobs[peer]) for peer in PEERS}
    for i, row in enumerate(rows):
        row["anonymeter"], row["sacroml"] = theirs["anonymeter"]["answers"][i], theirs["sacroml"]["answers"][i]
        print(f"\n{row['set']}, {row['release']} ({row['released_rows']} rows)")
        for question, figures in row["ours"].items():
            peer = row["anonymeter"][question]
            said = " ".join(f"{peer[p][0]:.3f}" for p in ("members", "controls")) if "members" in peer else "failed"
            mine = " ".join(f"{figures[p][0]:.3f}" for p in ("members", "controls"))
            print(f"  {question:<30} ours {mine}   anonymeter {said}")
        for what, figure in row["membership"].items():
            print(f"  membership, {what:<18} ours {figure[0]:.4f}   SACRO-ML {row['sacroml'][what]:.4f}")
    for mine, peer in zip(counted, theirs["pycanon"]["answers"]):
        mine["pycanon"] = peer
        print(
            f"{mine['set']} k={mine['k']}: prosecutor {mine['prosecutor']:.6f} / {peer['max_rir']:.6f}, marketer "
            f"{mine['marketer']:.6f} / {peer['classes'] / peer['rows']:.6f}, mean over classes "
            f"{mine['mean over classes']:.6f} / {peer['average_rir']:.6f}"
        )
    others = theirs["pycanon"]["answers"][len(counted) :]
    populations = [mine | {"pycanon": peer} for (mine, _), peer in zip(several, others)]
    for mine in populations:
        peer = mine["pycanon"]
        print(
            f"{mine['set']} k={mine['k']}, half released: journalist {mine['journalist']:.6f} / {peer['max_rir']:.6f}, "
            f"mean over classes {mine['mean over classes']:.6f} / {peer['average_rir']:.6f}, "
            f"marketer {mine['marketer']:.6f} / {mine['marketer by hand']:.6f} by hand"
        )
    peers = {peer: theirs[peer]["versions"] for peer in PEERS}
    origin = {"versions": versions(), "peer_versions": peers, "data_sha256": {n: data_hash(n) for n in SETS}, "seed": 0}
    figures = {"rows": rows, "risk": counted, "risk_in_a_population": populations}
    write(given, {**about, **origin, "attacks": ATTACKS, **figures})


if __name__ == "__main__":
    main()
