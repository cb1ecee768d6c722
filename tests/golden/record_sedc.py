"""Record what the authors' SEDC answers: documents of twelve words, a linear score, positive ones explained.

`record_sedc.py SOURCE`, with an environment that has numpy, scipy and ordered-set, and a checkout of
github.com/yramon/edc (commit de32f18b7518fb3567664f600b0d8a0f0891c432) at SOURCE. Writes sedc.json beside this file.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import numpy as np

WORDS, DOCUMENTS, SETS = 12, 40, 5


def made(seed):
    """Documents as rows of 0 and 1, and what each word adds to the score."""
    rng = np.random.default_rng(seed)
    rows = (rng.random((DOCUMENTS, WORDS)) < 0.6).astype(int)
    return rows, rng.normal(0.4, 1.0, WORDS).round(3), -1.0


def score(rows, weights, bias):
    return 1 / (1 + np.exp(-(np.asarray(rows, dtype=float) @ weights + bias)))


def main(source):
    sys.path.insert(0, str(Path(source) / "sedc_agnostic"))
    from sedc_algorithm import SEDC_Explainer

    out = []
    for seed in range(SETS):
        rows, weights, bias = made(seed)
        explainer = SEDC_Explainer(
            feature_names=np.arange(WORDS),
            classifier_fn=lambda x, w=weights, b=bias: score(x.toarray() if hasattr(x, "toarray") else x, w, b),
            threshold_classifier=np.float64(0.5),  # a plain number does not compare with its lists
            max_iter=50,
            max_explained=1,
            BB=False,
        )
        answers = []
        for row in rows:
            if score(row, weights, bias) < 0.5:
                answers.append(None)
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                found = explainer.explanation(row[None].astype(float))
            sets = [sorted(map(int, s)) for s in found["explanation set"]]
            answers.append({"sets": sets, "found": int(found["number explanations found"])})
        out.append(answers)
    Path(__file__).with_name("sedc.json").write_text(json.dumps(out), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
