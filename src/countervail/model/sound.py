"""Whether compiled code can run on the arrays of a loaded model: it looks at no bounds of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from countervail.core.files.json_data import DAMAGED


def find_fault(model: Any) -> str:
    """What would make compiled code read outside of the model's arrays; empty if nothing was found.

    Rows that are too narrow or too wide are refused by the models themselves, as long as they say how many columns they
    take: so all arrays are compared with that number.
    """
    try:
        parts = list(_parts(model, set()))
    except RecursionError:
        return "parts inside one another without end"
    return next((fault for part in parts for fault, check in _CHECKS.items() if not _holds(check, part)), "")


def _holds(check: Callable[[Any], bool], part: Any) -> bool:
    """A check that needs something that is not there does not hold."""
    try:
        return bool(check(part))
    except (*DAMAGED, AssertionError, RuntimeError, ImportError):
        return False


def _trees_are_sound(part: Any) -> bool:
    """Whether every tree stays inside its own arrays, and inside the rows that its model lets in."""
    from sklearn.ensemble._bagging import BaseBagging
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.tree import BaseDecisionTree

    if _is_tree(part):
        return _is_sound(part)
    if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
        return _fits_model(part.tree_, part)
    if not isinstance(part, (BaseForest, BaseGradientBoosting, BaseBagging)) or not hasattr(part, "estimators_"):
        return True
    # These hand rows to their trees without looking whether they are as wide as the trees expect.
    trees = np.ravel(np.asarray(part.estimators_, dtype=object)).tolist()
    bagged = isinstance(part, BaseBagging)
    widths = list(map(len, part.estimators_features_)) if bagged else [part.n_features_in_] * len(trees)
    if len(widths) != len(trees) or any(t.n_features_in_ != w for t, w in zip(trees, widths)):
        return False
    if not bagged and not all(isinstance(t, BaseDecisionTree) and hasattr(t, "tree_") for t in trees):
        return False
    return not isinstance(part, BaseGradientBoosting) or _has_room(part)


def _histogram_trees_are_sound(part: Any) -> bool:
    """Whether the trees of histogram boosting stay inside their nodes, columns and sets of categories."""
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    if isinstance(part, TreePredictor):
        return _is_sound_predictor(part)
    if not isinstance(part, BaseHistGradientBoosting) or not hasattr(part, "_predictors"):
        return True
    mapper, n, each = part._bin_mapper, part._n_features, part.n_trees_per_iteration_
    trees = [tree for rounds in part._predictors for tree in rounds]
    columns = [t.nodes["feature_idx"][t.nodes["is_leaf"] == 0] for t in trees]
    return (
        all(type(t) is TreePredictor for t in trees)
        and all(len(rounds) == each for rounds in part._predictors)
        and all(((c >= 0) & (c < n)).all() for c in columns)
        and len(mapper.bin_thresholds_) == n
        and np.asarray(mapper.is_categorical_).shape == (n,)
        and np.asarray(mapper.missing_values_bin_idx_).ndim == 0
        and part._baseline_prediction.shape
        in ((1, part.n_trees_per_iteration_), (part.n_trees_per_iteration_,), (1, 1))
        and all(_are_categories(t) for t, c in zip(mapper.bin_thresholds_, mapper.is_categorical_) if c)
    )


def _are_categories(values: Any) -> bool:
    """Whether categories are the small whole numbers that a set of bits has room for."""
    codes = np.asarray(values, dtype=float)
    return codes.ndim == 1 and bool(((codes >= 0) & (codes < 256) & (codes % 1 == 0)).all())


def _is_sound_predictor(tree: Any) -> bool:
    """Whether compiled code can walk the nodes: children come later and exist, and so do sets of categories."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes, sets = tree.nodes, (tree.binned_left_cat_bitsets, tree.raw_left_cat_bitsets)
    if type(nodes) is not np.ndarray or nodes.dtype != PREDICTOR_RECORD_DTYPE or nodes.ndim != 1 or not len(nodes):
        return False
    if any(type(s) is not np.ndarray or s.dtype != np.uint32 or s.ndim != 2 or s.shape[1] != 8 for s in sets):
        return False
    here, inner = np.arange(len(nodes)), nodes["is_leaf"] == 0
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    ordered = (left > here) & (left < len(nodes)) & (right > here) & (right < len(nodes))
    listed = (nodes["is_categorical"] == 0) | (nodes["bitset_idx"] < min(map(len, sets)))
    return bool((ordered & listed)[inner].all() and (nodes["feature_idx"][inner] >= 0).all())


def _vectors_are_sound(part: Any) -> bool:
    """Whether a support vector machine has a coefficient for each vector, and a vector for each it counts."""
    from sklearn.svm._base import BaseLibSVM, BaseSVC

    if not isinstance(part, BaseLibSVM) or not hasattr(part, "support_vectors_"):
        return True
    if part._sparse or "_impl" in vars(part) or not isinstance(part.kernel, str):
        return False
    # Where the kernel is given as numbers there are no vectors, and rows have a column for each row of the training.
    given = part.kernel == "precomputed"
    n, width = len(part.support_), part.shape_fit_[1] if given else part.n_features_in_
    classes = len(part.classes_) if isinstance(part, BaseSVC) else 2
    pairs = classes * (classes - 1) // 2
    counts = part._n_support if isinstance(part, BaseSVC) else part._n_support[:1]
    return (
        classes >= 2
        and part.n_features_in_ == width == part.shape_fit_[1]
        and part.support_vectors_.shape == ((0, 0) if given else (n, width))
        and part.support_.shape == (n,)
        and bool(((part.support_ >= 0) & (part.support_ < part.shape_fit_[0])).all())
        and (not given or part.shape_fit_[0] == part.n_features_in_)
        and part._n_support.shape == (classes,)
        and bool((counts >= 0).all())
        and int(counts.astype(np.int64).sum()) == n
        and all(a.shape == (classes - 1, n) for a in (part.dual_coef_, part._dual_coef_))
        and all(a.shape == (pairs,) for a in (part.intercept_, part._intercept_))
        and all(a.shape in ((0,), (pairs,)) for a in (part._probA, part._probB))
        and part._probA.shape == part._probB.shape
    )


def _neighbours_are_sound(part: Any) -> bool:
    """Whether the rows that neighbours are looked for in are as wide as a query, and each has a label that exists."""
    from sklearn.base import is_classifier
    from sklearn.neighbors._base import NeighborsBase

    if not isinstance(part, NeighborsBase) or not hasattr(part, "_fit_X"):
        return True
    rows = part._fit_X
    if (
        type(rows) is not np.ndarray
        or rows.shape != (part.n_samples_fit_, part.n_features_in_)
        or part._tree is not None
    ):
        return False
    if not is_classifier(part):
        return not hasattr(part, "_y") or len(part._y) == len(rows)
    labels = np.asarray(part._y).reshape(len(rows), -1)
    classes = part.classes_ if isinstance(part.classes_, list) else [part.classes_]
    return (
        labels.shape[1] == len(classes)
        and labels.dtype.kind == "i"
        and all(((codes >= 0) & (codes < len(known))).all() for codes, known in zip(labels.T, classes))
    )


def _centres_are_sound(part: Any) -> bool:
    """Whether the centres of clusters are as wide as a query."""
    from sklearn.cluster._kmeans import _BaseKMeans

    if not isinstance(part, _BaseKMeans) or not hasattr(part, "cluster_centers_"):
        return True
    centres = part.cluster_centers_
    return type(centres) is np.ndarray and centres.ndim == 2 and centres.shape[1] == part.n_features_in_


def _functions_are_known(part: Any) -> bool:
    """Whether what was put into a function beforehand belongs to the one that histogram boosting uses."""
    from sklearn.utils import check_array

    return not isinstance(part, partial) or part.func is check_array


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "a tree with links that lead outside of it": _trees_are_sound,
    "boosted trees with links that lead outside of them": _histogram_trees_are_sound,
    "a function that no model of scikit-learn holds": _functions_are_known,
    "support vectors that do not belong together": _vectors_are_sound,
    "neighbours that do not belong together": _neighbours_are_sound,
    "centres of clusters that rows cannot be compared with": _centres_are_sound,
}


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
