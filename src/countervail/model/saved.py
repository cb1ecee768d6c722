"""Saved models: skops files by default, because a pickle runs code when it is opened."""

from __future__ import annotations

import pickle
import struct
import tokenize
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from countervail.core.errors import DataNotFoundError, ModelFileError
from countervail.core.files.frames import write_file
from countervail.core.files.json_data import DAMAGED

PICKLES = (".pkl", ".pickle", ".joblib")
# Plain Python parts of scikit-learn that skops does not list, and trees, whose indices are checked after loading.
_TREE = "sklearn.tree._tree.Tree"
_TRUSTED = {
    _TREE,
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
}
# What skops, numpy and zip files raise where the content is not what they expect.
_DAMAGED = (
    *DAMAGED,
    *(BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError),
    *(EOFError, OSError, ImportError, AssertionError, RuntimeError),
)


def load_model(path: str | Path, *, allow_pickle: bool = False) -> Any:
    """Load a model from a .skops file, or from a pickle when that is allowed explicitly."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"No model file at '{path}'. Save one with countervail.model.save_model(model, path).")
    if path.suffix == ".skops":
        return _load_skops(path)
    if path.suffix not in PICKLES:
        raise ModelFileError(f"The model file '{path.name}' must end in .skops, or in one of {PICKLES} (pickles).")
    if not allow_pickle:
        raise ModelFileError(
            f"'{path.name}' is a pickle, and opening a pickle runs whatever code is in it. Save it as .skops, or "
            f"allow pickles explicitly if you made the file yourself (allow_pickle=True, --allow-pickle)."
        )
    import joblib

    try:
        return joblib.load(path)
    except (pickle.UnpicklingError, EOFError, ImportError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"'{path.name}' cannot be opened as a pickle ({type(error).__name__}).") from None


def save_model(model: Any, path: str | Path) -> None:
    """Save a scikit-learn model as a .skops file."""
    path = Path(path)
    if path.suffix != ".skops":
        raise ModelFileError(f"The model file '{path.name}' must end in .skops.")
    from skops.io import dump

    write_file(path, lambda place: dump(model, place))


def _load_skops(path: Path) -> Any:
    from skops.io import get_untrusted_types, load

    try:
        types = get_untrusted_types(file=path)
        if strangers := sorted(set(types) - _TRUSTED):
            raise ModelFileError(
                f"'{path.name}' holds types that are not known to be safe: {strangers}. Use another kind of model, or "
                f"load this one in Python and pass it to the explainer."
            )
        model = load(path, trusted=types)
    except ModelFileError:
        raise
    except _DAMAGED as error:
        raise ModelFileError(f"'{path.name}' is not a readable skops file ({type(error).__name__}).") from None
    if _TREE in types and not _holds(_trees_are_sound, model):
        raise ModelFileError(f"'{path.name}' holds a tree with links that lead outside of it: the file is damaged.")
    return model


def _holds(check: Callable[[Any], bool], model: Any) -> bool:
    """A check that needs something that is not there does not hold."""
    try:
        return check(model)
    except _DAMAGED:
        return False


def _trees_are_sound(model: Any) -> bool:
    """Whether every tree stays inside its own arrays, and inside the rows that its model lets in."""
    from sklearn.ensemble._bagging import BaseBagging
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.tree import BaseDecisionTree

    for part in _parts(model, set()):
        if _is_tree(part) and not _is_sound(part):
            return False
        if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_") and not _fits_model(part.tree_, part):
            return False
        # These hand rows to their trees without looking whether they are as wide as the trees expect.
        if isinstance(part, (BaseForest, BaseGradientBoosting, BaseBagging)) and hasattr(part, "estimators_"):
            trees = np.ravel(np.asarray(part.estimators_, dtype=object)).tolist()
            bagged = isinstance(part, BaseBagging)
            widths = list(map(len, part.estimators_features_)) if bagged else [part.n_features_in_] * len(trees)
            if len(widths) != len(trees) or any(t.n_features_in_ != w for t, w in zip(trees, widths)):
                return False
            if not bagged and not all(isinstance(t, BaseDecisionTree) and hasattr(t, "tree_") for t in trees):
                return False
        if isinstance(part, BaseGradientBoosting) and hasattr(part, "estimators_") and not _has_room(part):
            return False
    return True


def _has_room(boosted: Any) -> bool:
    """Whether compiled code finds as many sums to add its trees to as there are trees in a round."""
    sums = boosted._raw_predict_init(np.zeros((1, boosted.n_features_in_), np.float32))
    shapes = {(tree.tree_.n_outputs, tree.tree_.max_n_classes) for tree in boosted.estimators_.ravel()}
    return bool(
        boosted.estimators_.ndim == 2 and sums.shape == (1, boosted.estimators_.shape[1]) and shapes == {(1, 1)}
    )


def _parts(part: Any, seen: set[int]) -> Iterator[Any]:
    """Everything inside a model, itself included."""
    if id(part) in seen or isinstance(part, (str, bytes, int, float, type(None))):
        return
    seen.add(id(part))
    yield part
    items: Iterable[Any] = ()
    if isinstance(part, np.ndarray):
        items = part.ravel().tolist() if part.dtype == object else ()
    elif isinstance(part, (dict, list, tuple, set)):
        items = part.values() if isinstance(part, dict) else part
    for item in (*items, *getattr(part, "__dict__", {}).values()):
        yield from _parts(item, seen)


def _is_tree(part: Any) -> bool:
    return type(part).__name__ == "Tree" and type(part).__module__ == "sklearn.tree._tree"


def _fits_model(tree: Any, owner: Any) -> bool:
    """Whether a tree reads no more columns than its model lets in, and says as much of each class as there is."""
    if not _is_tree(tree) or (tree.n_features, tree.n_outputs) != (owner.n_features_in_, owner.n_outputs_):
        return False
    classes = getattr(owner, "classes_", None)
    if classes is None:
        return True
    return [len(c) for c in ([classes] if tree.n_outputs == 1 else classes)] == list(tree.n_classes)


def _is_sound(tree: Any) -> bool:
    """Whether compiled code can walk the tree: children come later and exist, features and values exist."""
    n, left, right = tree.node_count, tree.children_left, tree.children_right
    here, leaf = np.arange(n), left == -1
    inner = ~leaf
    ordered = (left > here) & (left < n) & (right > here) & (right < n)
    known = (tree.feature >= 0) & (tree.feature < tree.n_features)
    whole = n > 0 and tree.value.shape == (n, tree.n_outputs, tree.max_n_classes)
    return whole and bool((right[leaf] == -1).all() and (ordered & known)[inner].all())
