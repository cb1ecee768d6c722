"""Records what DiCE's search tree answers to many people of German credit, for `tests/auditing/test_other_tools.py`.

Run it by the Python of an environment that holds dice-ml 0.12: `python tests/golden/foreign/record_dice_tree.py`.
"""

from __future__ import annotations

import dice_ml
import german

ASKED = 80


def main() -> None:
    """Ask once for each person and write the file."""
    rows = german.read()
    features, good = rows.drop(columns=german.TARGET), (rows[german.TARGET] == "good").astype(int)
    model = german.forest(features[: german.TRAIN], good[: german.TRAIN], list(german.labels(rows)))
    asked = german.refused(model.predict, features, ASKED)
    known = features[: german.TRAIN].assign(**{german.TARGET: good[: german.TRAIN]})
    data = dice_ml.Data(dataframe=known, continuous_features=german.numeric(rows), outcome_name=german.TARGET)
    tree = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method="kdtree")
    found = tree.generate_counterfactuals(features.iloc[asked], total_CFs=1, desired_class="opposite", verbose=False)
    german.record("dice_tree", ("dice-ml", "pandas", "scikit-learn"), asked, {"kdtree": found.to_json()})


if __name__ == "__main__":
    main()
