"""The other side of `foreign.py`: DiCE's search tree and NICEx on the same people and askers.

Run by the Python of each tool's environment: `_foreign_worker.py FOLDER TOOL`. FOLDER holds members.csv, askers.csv and
about.json; what the tool writes goes beside them, as the tool writes it.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Members and askers, labels as texts; decision 1 is the favourable one."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    frames = [pd.read_csv(folder / f, dtype=str, keep_default_na=False) for f in ("members.csv", "askers.csv")]
    members, askers = (f.astype({n: int for n in about["numbers"] if n in f.columns}) for f in frames)
    members[about["target"]] = (members[about["target"]] == about["favourable"]).astype(int)
    return members, askers, about


def forest(rows: Any, decisions: Any, labels: list[Any]) -> Any:
    """A forest of 50 trees behind one-hot codes."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    one_hot = ColumnTransformer([("labels", OneHotEncoder(handle_unknown="ignore"), labels)], remainder="passthrough")
    return make_pipeline(one_hot, RandomForestClassifier(50, random_state=0, n_jobs=1)).fit(rows, decisions)


def dice(folder: Path) -> None:
    """One counterfactual of the search tree for each asker who is refused, as DiCE's JSON."""
    import dice_ml

    members, askers, about = read(folder)
    target, labels = about["target"], [n for n in askers.columns if n not in about["numbers"]]
    model = forest(members.drop(columns=target), members[target], labels)
    refused = askers[model.predict(askers) == 0].reset_index(drop=True)[: about["answers"]]
    data = dice_ml.Data(dataframe=members, continuous_features=about["numbers"], outcome_name=target)
    explainer = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method="kdtree")
    found = explainer.generate_counterfactuals(refused, total_CFs=1, desired_class="opposite", verbose=False)
    (folder / "dice.json").write_text(found.to_json(), encoding="utf-8")


def nice(folder: Path) -> None:
    """One counterfactual for each asker who is refused, without a reward and with "sparsity", as arrays of codes."""
    from nice import NICE

    members, askers, about = read(folder)
    target, codes = about["target"], about["codes"]
    features = list(askers.columns)

    def coded(frame: pd.DataFrame) -> np.ndarray:
        places = {n: {v: i for i, v in enumerate(known)} for n, known in codes.items()}
        return np.column_stack([frame[n].map(places[n]) if n in codes else frame[n] for n in features]).astype(float)

    x, y = coded(members), members[target].to_numpy()
    labels = [features.index(n) for n in codes]
    model = forest(x, y, labels)
    rows = coded(askers)
    rows = rows[model.predict(rows) == 0][: about["answers"]]
    np.save(folder / "asked.npy", rows)
    for reward in ("none", "sparsity"):
        explainer = NICE(model.predict_proba, x.copy(), labels, y_train=y, optimization=reward)
        np.save(folder / f"nice_{reward}.npy", np.vstack([explainer.explain(q[None, :].copy()) for q in rows]))


def main(folder: Path, tool: str) -> None:
    """Run one tool, and say which versions did the work."""
    warnings.simplefilter("ignore")
    {"dice": dice, "nice": nice}[tool](folder)
    names = {"dice": ("dice-ml",), "nice": ("NICEx",)}[tool]
    said = {n: version(n) for n in (*names, "numpy", "pandas", "scikit-learn")}
    (folder / f"versions_{tool}.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
