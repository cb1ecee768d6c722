"""Records what cfnow finds about German credit, for `tests/explain/test_foreign.py`.

Run it by the Python of an environment that holds cfnow 0.0.6: `python tests/golden/foreign/record_cfnow.py`.
It gets labels as one-hot columns, as cfnow wants them.
"""

from __future__ import annotations

import german
import numpy as np
import pandas as pd
from cfnow import find_tabular

COLUMNS = ("checking_status", "duration", "credit_amount", "savings_status", "age", "housing", german.TARGET)


def main() -> None:
    """Ask for three people and write the file."""
    rows = german.read()[list(COLUMNS)]
    features = rows.drop(columns=german.TARGET)
    wide = pd.get_dummies(features, columns=list(german.labels(rows)), dtype=float).astype(float)
    good = (rows[german.TARGET] == "good").astype(int)
    model = german.forest(wide[: german.TRAIN], good[: german.TRAIN], [])
    asked = german.refused(model.predict, wide, 3)
    kinds = {n: "num" if n in features.columns else "cat" for n in wide.columns}

    def scores(x: np.ndarray) -> np.ndarray:
        return model.predict_proba(pd.DataFrame(np.atleast_2d(x), columns=wide.columns))

    outputs = []
    for i in asked:
        found = find_tabular(
            factual=wide.iloc[i],
            model_predict_proba=scores,
            feat_types=kinds,
            has_ohe=True,
            count_cf=2,
            cf_strategy="greedy",
            limit_seconds=10,
        )
        vectors = [np.asarray(v, dtype=float).tolist() for v in found.cfs[:3]]  # of very many
        outputs.append({"factual": found.factual.to_dict(), "cfs": vectors, "col_names": list(found.col_names)})
    german.record("cfnow", ("cfnow", "numpy", "pandas", "scikit-learn"), asked, {"find_tabular": outputs})


if __name__ == "__main__":
    main()
