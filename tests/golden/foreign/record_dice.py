"""Records what DiCE writes about German credit, for `tests/explain/test_foreign.py`.

Run it by the Python of an environment that holds dice-ml 0.12: `python tests/golden/foreign/record_dice.py`.
"""

from __future__ import annotations

import json
from typing import Any

import dice_ml
import german
from dice_ml.counterfactual_explanations import CounterfactualExplanations


def frame(held: Any) -> Any:
    """A frame with its index, as plain JSON."""
    return None if held is None else json.loads(held.to_json(orient="split"))


def main() -> None:
    """Ask three of its methods and write the file."""
    rows = german.read()
    features, good = rows.drop(columns=german.TARGET), (rows[german.TARGET] == "good").astype(int)
    model = german.forest(features[: german.TRAIN], good[: german.TRAIN], list(german.labels(rows)))
    asked = german.refused(model.predict, features, 4)
    known = features[: german.TRAIN].assign(**{german.TARGET: good[: german.TRAIN]})
    data = dice_ml.Data(dataframe=known, continuous_features=german.numeric(rows), outcome_name=german.TARGET)
    wrapped = dice_ml.Model(model=model, backend="sklearn")
    outputs: dict[str, Any] = {}
    for method in ("kdtree", "random", "genetic"):
        explainer = dice_ml.Dice(data, wrapped, method=method)
        seed = {"random_seed": 0} if method == "random" else {}
        found = explainer.generate_counterfactuals(
            features.iloc[asked], total_CFs=2, desired_class="opposite", verbose=False, **seed
        )
        outputs[method] = found.to_json()
        if method == "kdtree":
            outputs["version 1"] = CounterfactualExplanations(found.cf_examples_list, version="1.0").to_json()
            names = ("test_instance_df", "final_cfs_df", "final_cfs_df_sparse")
            outputs["objects"] = [{n: frame(getattr(e, n)) for n in names} for e in found.cf_examples_list]
    # Few may be answered by these two columns alone: for the others DiCE writes that there is none.
    few = dice_ml.Dice(data, wrapped, method="random").generate_counterfactuals(
        features.iloc[asked],
        total_CFs=1,
        desired_class="opposite",
        verbose=False,
        random_seed=0,
        features_to_vary=["duration", "savings_status"],
    )
    outputs["some without"] = few.to_json()
    german.record("dice", ("dice-ml", "pandas", "scikit-learn"), asked, outputs)


if __name__ == "__main__":
    main()
