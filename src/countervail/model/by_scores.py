"""Models whose decisions are known to follow from their scores, so that one call tells both."""

from __future__ import annotations

import sys
from typing import Any


def decides_by_scores(model: Any) -> bool:
    """Whether `predict` of this model is the best of its `predict_proba` by its own code.

    Forests of scikit-learn are, alone or at the end of a pipeline. Others are near to that, and differ where two
    scores are equal but for rounding; so do classes of the user's that override one of the two.
    """
    if "sklearn.ensemble" not in sys.modules:
        return False
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import Pipeline

    last = model.steps[-1][1] if type(model) is Pipeline else model
    own = {"predict", "predict_proba"}
    return not any(own & vars(m).keys() for m in (model, last) if hasattr(m, "__dict__")) and all(
        getattr(type(last), name, None) is getattr(RandomForestClassifier, name) for name in own
    )
