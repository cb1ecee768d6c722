"""Saved models: skops files by default, because a pickle runs code when it is opened."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from countervail.core.errors import DataNotFoundError, ModelFileError
from countervail.core.files import write_file

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
    from zipfile import BadZipFile

    from skops.io import get_untrusted_types, load

    try:
        types = get_untrusted_types(file=path)
        if strangers := sorted(set(types) - _TRUSTED):
            raise ModelFileError(
                f"'{path.name}' holds types that are not known to be safe: {strangers}. Use another kind of model, or "
                f"load this one in Python and pass it to the explainer."
            )
        model = load(path, trusted=types)
    except (BadZipFile, KeyError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"'{path.name}' is not a readable skops file ({type(error).__name__}).") from None
    if _TREE in types and not all(_is_sound(tree) for tree in _trees(model, set())):
        raise ModelFileError(f"'{path.name}' holds a tree with links that lead outside of it: the file is damaged.")
    return model


def _trees(part: Any, seen: set[int]) -> Iterator[Any]:
    """Every scikit-learn tree inside a model."""
    if id(part) in seen or isinstance(part, (str, bytes, int, float, type(None))):
        return
    seen.add(id(part))
    if type(part).__name__ == "Tree" and type(part).__module__ == "sklearn.tree._tree":
        yield part
    elif isinstance(part, np.ndarray):
        inner = part.ravel().tolist() if part.dtype == object else []
        for item in inner:
            yield from _trees(item, seen)
    else:
        items = part.values() if isinstance(part, dict) else part if isinstance(part, (list, tuple, set)) else ()
        for item in (*items, *getattr(part, "__dict__", {}).values()):
            yield from _trees(item, seen)


def _is_sound(tree: Any) -> bool:
    """Whether compiled code can walk the tree: children come later and exist, features exist."""
    n, left, right = tree.node_count, tree.children_left, tree.children_right
    here, leaf = np.arange(n), left == -1
    inner = ~leaf
    ordered = (left > here) & (left < n) & (right > here) & (right < n)
    known = (tree.feature >= 0) & (tree.feature < tree.n_features)
    return len(tree.value) == n and bool((right[leaf] == -1).all() and (ordered & known)[inner].all())
