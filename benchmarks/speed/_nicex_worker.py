"""The other side of `nice.py`: NICEx on the same data and model. Also holds what both sides must share.

Run by the Python of the NICEx environment: `_nicex_worker.py FOLDER train`, then `_nicex_worker.py FOLDER REWARD`.
FOLDER holds data.npz and auto_encoder.npz; answers are written beside them.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0


def pipeline(labels: Any) -> Any:
    """A forest of 100 trees behind one-hot codes of the columns `labels`, untrained."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("labels", one_hot, list(labels))], remainder="passthrough")
    return make_pipeline(columns, RandomForestClassifier(100, random_state=SEED, n_jobs=1))


class Counted:
    """A function of a matrix that counts how often it is called, and on how many rows."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.reset()

    def reset(self) -> None:
        """Count from zero."""
        self.calls = self.rows = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        self.rows += len(x)
        return self.function(x)


class AutoEncoder:
    """Reconstruction error of a small tanh network with given weights.

    Products are added one input at a time, so a row's error does not depend on the rows beside it: both sides then
    see equal errors, to the last bit.
    """

    def __init__(self, arrays: Any) -> None:
        self._low, self._span, self._labels = arrays["low"], arrays["span"], arrays["labels"]
        self._levels = [int(n) for n in arrays["levels"]]
        self._layers = [(arrays[f"w{i}"], arrays[f"b{i}"]) for i in range(int(arrays["layers"]))]

    def widen(self, x: Any) -> Any:
        """One-hot codes and numbers scaled to [-1, 1]; features x rows."""
        parts = []
        for j, levels in enumerate(self._levels):
            if levels:
                parts.append((x[:, j] == np.arange(levels)[:, None]).astype(float))
            else:
                parts.append((2.0 * (x[:, j] - self._low[j]) / self._span[j] - 1.0)[None, :])
        return np.concatenate(parts)

    def __call__(self, x: Any) -> Any:
        """The error of each row."""
        wide = self.widen(x)
        value = wide
        for i, (weights, bias) in enumerate(self._layers):
            total = np.repeat(bias[:, None], len(x), axis=1)
            for row, weight in zip(value, weights):
                total += weight[:, None] * row
            value = np.tanh(total) if i < len(self._layers) - 1 else total
        error = np.zeros(len(x))
        for row in value - wide:
            error += row * row
        return error


def train(folder: Path) -> None:
    """Train the model here; write it, and the scores and errors of the training rows for comparison."""
    data = np.load(folder / "data.npz")
    model = pipeline(data["labels"]).fit(data["x"], data["y"])
    (folder / "peer_model.pkl").write_bytes(pickle.dumps(model))
    encoder = AutoEncoder(np.load(folder / "auto_encoder.npz"))
    singly = np.concatenate([encoder(q[None, :]) for q in data["queries"]])
    np.savez(folder / "peer_scores.npz", scores=model.predict_proba(data["x"]), errors=encoder(data["x"]), one=singly)
    (folder / "peer_versions.json").write_text(json.dumps(versions()), encoding="utf-8")


def explain(folder: Path, reward: str) -> None:
    """Explain the queries one by one; write the answers, CPU seconds and model calls of each."""
    from nice import NICE

    data = np.load(folder / "data.npz")
    model = pickle.loads((folder / "peer_model.pkl").read_bytes())
    counted = Counted(model.predict_proba)
    encoder = AutoEncoder(np.load(folder / "auto_encoder.npz"))
    x, labels = data["x"].copy(), [int(j) for j in data["labels"]]
    explainer = NICE(counted, x, labels, y_train=data["y"], optimization=reward, auto_encoder=encoder)
    answers, seconds, calls = [], [], []
    for query in data["queries"]:
        counted.reset()
        start = time.process_time()
        answers.append(explainer.explain(query[None, :].copy()))
        seconds.append(time.process_time() - start)
        calls.append(counted.calls)
    np.savez(folder / f"peer_{reward}.npz", answers=np.vstack(answers), seconds=seconds, calls=calls)


def versions() -> dict[str, str]:
    """What this environment holds."""
    from importlib.metadata import version

    return {name: version(name) for name in ("NICEx", "numpy", "pandas", "scikit-learn")}


def main() -> None:
    """Do one job in the folder."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("job", help="train, or a reward")
    given = parser.parse_args()
    with threadpool_limits(1):
        if given.job == "train":
            train(given.folder)
        else:
            explain(given.folder, given.job)


if __name__ == "__main__":
    main()
