"""Answers that people can act on: features changed, cost, blur, plausibility and time of CF-K's rewards beside NICE's.

Every data set as it is registered, 60% of the rows for training, a forest of 100 trees, and the first 200 test rows
that it refuses. Times are CPU milliseconds per query on one thread, in one batch; `beyond_model` leaves the forest out.
DiCE (random, KD-tree) and NICEx, in an environment of their own, answer the first `--peer-rows` of the same people of
split 0 one by one (they know no batches), with the same forest; DiCE also under the same limits, as far as it can be
told them. Their answers count as valid if the forest says so, and as violations where they break a limit. Attacks ask
for three answers each.

python benchmarks/speed/actionable.py [--sets heart_c cmc ...] [--splits 0 1 2] [--peer-rows 30] [--quick]
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from _peer import peer_python, run_peer
from _record import parse, provenance, write
from _recourse_worker import METHODS as PEERS
from _recourse_worker import TARGET
from threadpoolctl import threadpool_limits

import countervail as cv
from countervail.core.stats import mean_interval
from countervail.model import train_forest

K = 10
RESULT = Path(__file__).parents[1] / "results" / "actionable.json"
WORKER = Path(__file__).parent / "_recourse_worker.py"
PATIENCE = 60  # CPU seconds that a peer may take over all people
QUASI = {"heloc": ["ExternalRiskEstimate", "MSinceOldestTradeOpen", "NumSatisfactoryTrades", "NumTotalTrades"]}
# What a person cannot change, or only one way.
LIMITS: dict[str, dict[str, Any]] = {
    "german_credit": {"immutable": ["personal_status", "foreign_worker"], "monotone": {"age": "up"}},
    "heart_c": {"immutable": ["sex"], "monotone": {"age": "up"}},
    "cmc": {"monotone": {"WifeAge": "up", "ChildrenBorn": "up"}},
    "adult": {"immutable": ["sex", "race"], "monotone": {"age": "up"}, "ranges": {"hours-per-week": (10, 60)}},
    "default_credit": {"immutable": ["SEX"], "monotone": {"AGE": "up"}, "ranges": {"LIMIT_BAL": (10_000, 500_000)}},
    "heloc": {"monotone": {"MSinceOldestTradeOpen": "up", "NumTotalTrades": "up"}},
}
METHODS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "groups_none": (cv.CFK, {"k": K, "reward": "none"}),
    **{
        f"nice_{r}": (cv.NICE, {"reward": r, "target": "favourable"}) for r in ("sparsity", "proximity", "plausibility")
    },
    **{f"groups_{r}": (cv.CFK, {"k": K, "reward": r}) for r in ("sparsity", "proximity", "plausibility")},
    "groups_exact_amounts": (cv.CFK, {"k": K, "amounts": "exact"}),
    "exact_sparsity": (cv.CFK, {"k": K, "search": "exact"}),
    "groups_three": (cv.CFK, {"k": K, "n_counterfactuals": 3}),
}
# The specification's row of features changed by "sparsity", and its NCP in percent.
EXPECTED = {
    "german_credit": (1.00, 0.000),
    "heart_c": (1.67, 0.156),
    "cmc": (1.00, 0.318),
    "adult": (1.05, 0.003),
    "default_credit": (1.19, 0.000),
    "heloc": (2.11, 0.548),
}


class TimedForest:
    """A model that counts the rows it is asked about, and its own CPU time."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_, self.feature_names_in_ = model, model.classes_, model.feature_names_in_
        self.seconds, self.rows = 0.0, 0

    def predict(self, frame: Any) -> Any:
        """The model's labels."""
        return self._timed(self.model.predict, frame)

    def predict_proba(self, frame: Any) -> Any:
        """The model's scores."""
        return self._timed(self.model.predict_proba, frame)

    def _timed(self, call: Any, frame: Any) -> Any:
        start = time.process_time()
        answer = call(frame)
        self.seconds += time.process_time() - start
        self.rows += len(frame)
        return answer


def setting(name: str, split: int, most: int) -> tuple[cv.Table, Any, cv.Table]:
    """A training table, the forest, and people whom it refuses."""
    table = cv.load(name)
    table = table.with_roles(quasi=QUASI[name]) if name in QUASI else table
    train, test = table.split(test_size=0.4, random_state=split)
    model = train_forest(train)
    refused = ~np.isin(model.predict(test.features), list(train.schema.favourable))
    return train, model, test.take(np.flatnonzero(refused)[:most])


def figures(made: Any, train: cv.Table, forest: Any, refused: cv.Table) -> dict[str, Any]:
    """What the answers are like, and what they take."""
    model = TimedForest(forest)
    start = time.process_time()
    made.fit(train, model)
    fitted = time.process_time() - start
    made.explain(refused.take(range(min(8, len(refused)))))  # kernels are compiled or loaded before the clock starts
    model.seconds, model.rows = 0.0, 0
    start = time.process_time()
    e = made.explain(refused)
    spent, n = time.process_time() - start, len(refused)
    out = {
        "n": n,
        "answers": int(e.found.sum()),
        "answered": len(set(e.query[e.found].tolist())),
        "features": mean_interval(cv.measure.sparsity(e)).to_dict(),
        "recourse_cost": mean_interval(cv.measure.recourse_cost(e)).to_dict(),
        "one_nn": mean_interval(cv.measure.plausibility(e)).to_dict(),
        "fit_s": fitted,
        "ms": 1000 * spent / n,
        "ms_beyond_model": 1000 * (spent - model.seconds) / n,
        "model_rows": model.rows / n,
    }
    if isinstance(made, cv.CFK):
        out |= {
            "ncp_percent": mean_interval(100 * cv.measure.ncp(e)).to_dict(),
            "least_pureness": float(np.nanmin(cv.measure.pureness(e, forest))),
            "fewest_people": int(np.nanmin(cv.measure.degree_of_privacy(e))),
            "sampled": sum(bool(note) for note in e.notes or ()),
            "refuted": e.guarantee.refute(e, train),
        }
    return out


def run(name: str, split: int, most: int, methods: list[str]) -> dict[str, Any]:
    """All figures of one split of one data set."""
    train, forest, refused = setting(name, split, most)
    out = {}
    for method in methods:
        kind, parameters = METHODS[method]
        out[method] = figures(kind(**parameters), train, forest, refused)
        _say(name, split, method, out[method])
    out["groups_limited"] = figures(cv.CFK(k=K, **LIMITS[name]), train, forest, refused)
    _say(name, split, "groups_limited", out["groups_limited"])
    return out


def attacked(name: str, most: int, people: int) -> dict[str, Any]:
    """The fewest people that three answers to each of some people leave to an adversary; Linkage's successes."""
    train, model, refused = setting(name, 0, most)
    made = cv.CFK(k=K, n_counterfactuals=3).fit(train, model)
    linked = cv.attack.Linkage().run(made.explain(refused.take(range(min(people, len(refused))))), train, refused)
    out = {"linkage_successes": linked.members.value, "linkage": int(linked.set_sizes.min())}
    for attack in (cv.attack.Intersection, cv.attack.Inversion):
        left = attack(n_targets=people).run(made, train, refused)
        out[attack.name] = int(left.set_sizes.min())
    print(f"{name}: {out}", flush=True)
    return out


def compare(name: str, most: int, rows: int) -> dict[str, Any]:
    """What peers say to the same people, and what we say to them, each with and without limits."""
    train, model, refused = setting(name, 0, most)
    asked = refused.take(range(min(rows, len(refused))))
    python = peer_python("recourse", ["dice-ml==0.11", "NICEx==0.2.3", f"scikit-learn=={sklearn.__version__}"])
    out: dict[str, Any] = {"n": len(asked)}
    for limited in (False, True):
        limits = LIMITS[name] if limited else {}
        end = "_limited" if limited else ""
        own = figures(cv.CFK(k=K, **limits), train, model, refused)
        e = cv.CFK(k=K, **limits).fit(train, model).explain(asked)
        out[f"ours{end}"] = {
            "found": int(e.found.sum()),
            "features": float(cv.measure.sparsity(e)[e.found].mean()),
            "ms": own["ms"],
            "violations": sum(
                broken(e.factuals.iloc[i], e.counterfactuals.iloc[i], limits) for i in np.flatnonzero(e.found)
            ),
        }
        for method in PEERS if not limited else PEERS[:2]:
            said = _told(python, method, train, asked, model, limits)
            found = judged(said, asked, model, train, limits)
            found["times_slower_than_ours"] = found["ms"] / own["ms"]
            out[method + end] = found
            print(f"{name} {method}{end}: {found}; ours {out[f'ours{end}']}", flush=True)
    return out


def judged(said: Any, asked: cv.Table, model: Any, train: cv.Table, limits: dict[str, Any]) -> dict[str, Any]:
    """How a peer's answers fare."""
    names = asked.schema.features
    before, after = [], []
    for (_, row), answer in zip(asked.features.iterrows(), said["answers"]):
        if answer["row"] is not None:
            before.append(row)
            after.append(dict(zip(names, answer["row"])))
    out: dict[str, Any] = {
        "asked": len(said["answers"]),
        "found": len(after),
        "ms": 1000 * float(np.mean([a["seconds"] for a in said["answers"]])),
        "same_forest": float(np.abs(_scores(model, asked, train) - np.array(said["scores"])).max()),
    }
    if not after:
        return out
    made = pd.DataFrame(after)
    for n in names:
        kind = train.frame[n].dtype
        made[n] = (
            made[n].astype(float) if train.schema[n].type == "numeric" else _labelled(made[n], train.frame[n], kind)
        )
    valid = np.isin(model.predict(made[names]), list(train.schema.favourable))
    changed = [sum(not _same(b[n], a[n]) for n in names) for b, (_, a) in zip(before, made.iterrows())]
    return out | {
        "valid": int(valid.sum()),
        "features": float(np.mean(np.array(changed)[valid])) if valid.any() else None,
        "violations": sum(broken(b, a, limits) for b, (_, a) in zip(before, made.iterrows())),
    }


def broken(before: Any, after: Any, limits: dict[str, Any]) -> bool:
    """Whether an answer breaks one of the limits with any value that it stands for."""
    for n in limits.get("immutable", ()):
        if not _same(before[n], after[n]):
            return True
    for n, way in limits.get("monotone", {}).items():
        low, high = _ends(after[n])
        if (low < before[n]) if way == "up" else (high > before[n]):
            return True
    return any(
        _ends(after[n])[0] < low or _ends(after[n])[1] > high for n, (low, high) in limits.get("ranges", {}).items()
    )


def _ends(cell: Any) -> tuple[float, float]:
    return (cell.left, cell.right) if isinstance(cell, pd.Interval) else (float(cell), float(cell))


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(float(a) == float(b))
    except (TypeError, ValueError):
        return bool(a == b)


def _labelled(values: pd.Series, known: pd.Series, kind: Any) -> pd.Series:
    """Labels that passed through a file, as the table has them."""
    spelt = {str(v): v for v in known.dropna().unique()}
    return values.map(lambda v: spelt.get(str(v), v)).astype(kind)


def _scores(model: Any, asked: cv.Table, train: cv.Table) -> Any:
    good = [c in train.schema.favourable for c in model.classes_]
    return model.predict_proba(asked.features)[:, good].sum(axis=1)


def _told(python: Path, method: str, train: cv.Table, asked: cv.Table, model: Any, limits: dict[str, Any]) -> Any:
    """What a peer answers."""
    labels = [n for n in train.schema.features if train.schema[n].type != "numeric"]
    codes, kinds = pd.factorize(train.target.astype(object), sort=True)
    (desired,) = (i for i, kind in enumerate(kinds) if kind in train.schema.favourable)
    about = {"labels": labels, "limits": limits, "desired": desired, "patience": PATIENCE}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part, frame in (("train", train.features.assign(**{TARGET: codes})), ("asked", asked.features)):
            columns = {n: frame[n].astype(object).tolist() for n in frame.columns}
            (folder / f"{part}.pkl").write_bytes(pickle.dumps(columns))
        (folder / "model.pkl").write_bytes(pickle.dumps(model))
        (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
        run_peer(python, WORKER, str(folder), method)
        return json.loads((folder / f"{method}.json").read_text(encoding="utf-8"))


def _say(name: str, split: int, method: str, found: dict[str, Any]) -> None:
    ncp = f", NCP {found['ncp_percent']['value']:.3f}%" if "ncp_percent" in found else ""
    aim = f" (specification {EXPECTED[name][0]})" if method == "groups_sparsity" else ""
    print(
        f"{name} {split} {method}: {found['answered']} of {found['n']} answered, "
        f"{found['features']['value']:.2f} features{aim}, cost {found['recourse_cost']['value']:.3f}{ncp}, "
        f"1-NN {found['one_nn']['value']:.3f}; {found['ms']:.1f} ms, {found['ms_beyond_model']:.2f} beyond the model, "
        f"{found['model_rows']:.0f} model rows",
        flush=True,
    )


def main() -> None:
    """Run the benchmark and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(LIMITS), choices=list(LIMITS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--peer-rows", type=int, default=30, help="people whom DiCE and NICEx are asked about; 0: none")
    options = parse(parser, RESULT, quick="one small data set, a handful of answers")
    if options.quick:
        options.sets, options.splits, options.peer_rows = ["heart_c"], [0], 0
    most = 10 if options.quick else 200
    about = provenance(options.sets, seed=0)
    with threadpool_limits(1):
        found = {
            name: {str(split): run(name, split, most, options.methods) for split in options.splits}
            for name in options.sets
        }
        made = {**about, "k": K, "expected_features_and_ncp_percent": EXPECTED, "sets": found}
        write(options, made)  # peers take long: what we have is kept
        made["people_left_by_attacks"] = {
            name: attacked(name, most, 2 if options.quick else 40) for name in options.sets
        }
        made["peers"] = {name: compare(name, most, options.peer_rows) for name in options.sets if options.peer_rows}
    write(options, made)


if __name__ == "__main__":
    main()
