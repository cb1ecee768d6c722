"""Saved models other than trees: arrays that compiled code would read beyond are found before anything is asked."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from countervail.core.errors import ModelFileError
from countervail.model import load_model, save_model

ROWS = np.random.default_rng(0).normal(size=(40, 4))
ROWS[:, 3] = np.arange(40) % 7
LABELS = np.array(list("abcd") * 10)
# Numbers for the regressors and the detectors, which take no labels.
TARGETS = {SVR: ROWS[:, 0], KNeighborsRegressor: ROWS[:, :2]}


def fitted(model):
    return model.fit(ROWS, TARGETS.get(type(model), LABELS))


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SVC(kernel="linear", decision_function_shape="ovo"),
        NuSVC(nu=0.3),
        SVR(),
        OneClassSVM(),
        KNeighborsClassifier(algorithm="brute"),
        RadiusNeighborsClassifier(radius=9.0, algorithm="brute"),
        KNeighborsRegressor(algorithm="brute"),
        LocalOutlierFactor(novelty=True, algorithm="brute"),
        KMeans(3, n_init=1),
        MiniBatchKMeans(3, n_init=1),
        make_pipeline(StandardScaler(), SVC()),
        BaggingClassifier(SVC(), n_estimators=2),
        HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=2),
        HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=2, categorical_features=[3]),
        VotingClassifier([("a", SVC()), ("b", KNeighborsClassifier(algorithm="brute"))]),
        GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2),
    ],
    ids=str,
)
def test_whole_models_survive_their_files(model, tmp_path):
    made = fitted(model)
    save_model(made, tmp_path / "m.skops")
    assert load_model(tmp_path / "m.skops").predict(ROWS).tolist() == made.predict(ROWS).tolist()


def test_a_kernel_given_as_numbers_survives_its_file(tmp_path):
    kernel = ROWS @ ROWS.T
    made = SVC(kernel="precomputed").fit(kernel, LABELS)
    save_model(made, tmp_path / "m.skops")
    assert load_model(tmp_path / "m.skops").predict(kernel).tolist() == made.predict(kernel).tolist()


SUPPORT = {
    "narrow vectors": lambda m: {"support_vectors_": m.support_vectors_[:, :1].copy()},
    "wide vectors": lambda m: {"support_vectors_": np.tile(m.support_vectors_, 9)},
    "fewer vectors": lambda m: {"support_vectors_": m.support_vectors_[:2].copy(), "_n_support": np.zeros(4, np.int32)},
    "more columns let in": lambda m: {"n_features_in_": 400},
    "more columns fitted": lambda m: {"n_features_in_": 400, "shape_fit_": (40, 400)},
    "few coefficients": lambda m: {"_dual_coef_": m._dual_coef_[:1].copy()},
    "short coefficients": lambda m: {"_dual_coef_": m._dual_coef_[:, :1].copy()},
    "few intercepts": lambda m: {"_intercept_": m._intercept_[:1].copy()},
    "counts that do not add up": lambda m: {"_n_support": m._n_support * 1000},
    "counts below nothing": lambda m: {"_n_support": m._n_support + np.array([-90, 90, 0, 0], np.int32)},
    "counts of fewer classes": lambda m: {"_n_support": m._n_support[:2].copy()},
    "more classes": lambda m: {"classes_": np.arange(60)},
    "numbers of rows that are not there": lambda m: {"support_": m.support_ + 4000},
    "few numbers of rows": lambda m: {"support_": m.support_[:1].copy()},
    "one probability": lambda m: {"_probA": np.ones(1), "_probB": np.ones(1)},
    "unequal probabilities": lambda m: {"_probA": np.ones(6)},
    "another kind of machine": lambda m: {"_impl": "epsilon_svr"},
    "said to be sparse": lambda m: {"_sparse": True},
    "a kernel of rows": lambda m: {"kernel": "precomputed"},
}


def crafted(model, lies):
    made = fitted(model)
    vars(made).update(lies(made))
    return made


@pytest.mark.parametrize("lie", SUPPORT)
@pytest.mark.parametrize("outer", [lambda m: m, lambda m: make_pipeline(StandardScaler().fit(ROWS), m)])
def test_support_vectors_that_do_not_belong_together_are_refused(lie, outer, tmp_path):
    save_model(outer(crafted(SVC(), SUPPORT[lie])), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match=r"^'m\.skops' holds support vectors that do not belong together"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize("lie", ["narrow vectors", "more columns fitted", "few coefficients", "short coefficients"])
@pytest.mark.parametrize("kind", [SVR, OneClassSVM])
def test_machines_without_classes_are_looked_at_as_well(kind, lie, tmp_path):
    lies = SUPPORT[lie] if lie != "few coefficients" else lambda m: {"_dual_coef_": m._dual_coef_[:0].copy()}
    save_model(crafted(kind(), lies), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="support vectors that do not belong together"):
        load_model(tmp_path / "m.skops")


NEIGHBOURS = {
    "narrow rows": lambda m: {"_fit_X": m._fit_X[:, :1].copy()},
    "fewer rows": lambda m: {"_fit_X": m._fit_X[:3].copy()},
    "more columns let in": lambda m: {"n_features_in_": 400},
    "labels that do not exist": lambda m: {"_y": m._y + 10**6},
    "labels below nothing": lambda m: {"_y": m._y - 10},
    "fewer labels": lambda m: {"_y": m._y[:3].copy()},
    "labels of another kind": lambda m: {"_y": m._y.astype(float)},
}


@pytest.mark.parametrize("lie", NEIGHBOURS)
@pytest.mark.parametrize("kind", [KNeighborsClassifier, RadiusNeighborsClassifier])
def test_neighbours_that_do_not_belong_together_are_refused(kind, lie, tmp_path):
    save_model(crafted(kind(algorithm="brute"), NEIGHBOURS[lie]), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match=r"^'m\.skops' holds neighbours that do not belong together"):
        load_model(tmp_path / "m.skops")


def test_centres_narrower_than_a_row_are_refused(tmp_path):
    made = crafted(KMeans(3, n_init=1), lambda m: {"cluster_centers_": m.cluster_centers_[:, :1].copy()})
    save_model(made, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="centres of clusters that rows cannot be compared with"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize("model", [SVC(), KNeighborsClassifier(algorithm="brute"), KMeans(3, n_init=1)], ids=str)
def test_a_model_that_does_not_say_how_many_columns_it_takes_is_refused(model, tmp_path):
    """Without that number scikit-learn compares nothing with the rows that it is asked about."""
    made = fitted(model)
    del made.n_features_in_
    save_model(made, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="the file is damaged"):
        load_model(tmp_path / "m.skops")


def test_arrays_that_are_damaged_one_by_one_never_reach_compiled_code(tmp_path, seeds):
    """Each array cut or widened at random: the file is refused, or the model answers as it did."""
    whole = fitted(SVC())
    names = [n for n, v in vars(whole).items() if isinstance(v, np.ndarray) and v.ndim]
    said, refused = whole.predict(ROWS).tolist(), 0
    for seed in seeds(60, 2_000):
        rng = np.random.default_rng(seed)
        made, name = fitted(SVC()), str(rng.choice(names))
        value = vars(made)[name]
        axis, size = int(rng.integers(value.ndim)), int(rng.integers(0, 3 * value.shape[0] + 2))
        vars(made)[name] = np.resize(value, [size if i == axis else n for i, n in enumerate(value.shape)])
        save_model(made, tmp_path / "m.skops")
        try:
            model = load_model(tmp_path / "m.skops")
        except ModelFileError:
            refused += 1
            continue
        assert model.predict(ROWS).tolist() == said
    assert refused > 20


def boosted():
    return fitted(HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2, categorical_features=[3]))


def _node(name, value):
    def change(tree):
        nodes = tree.nodes.copy()
        nodes[name][nodes["is_leaf"] == 0] = value
        tree.nodes = nodes

    return change


def _nothing_listed(tree):
    tree.raw_left_cat_bitsets = tree.raw_left_cat_bitsets[:0].copy()
    nodes = tree.nodes.copy()
    nodes["is_categorical"][0] = 1
    tree.nodes = nodes


HISTOGRAM = {
    "a child beyond the end": _node("left", 4000),
    "a child that is its parent": _node("right", 0),
    "a column that is not there": _node("feature_idx", 77),
    "a column before the first": _node("feature_idx", -3),
    "a set that is not listed": _nothing_listed,
    "no nodes": lambda tree: setattr(tree, "nodes", tree.nodes[:0].copy()),
    "nodes of another make": lambda tree: setattr(tree, "nodes", np.zeros((5, 5))),
    "narrow sets": lambda tree: setattr(tree, "raw_left_cat_bitsets", np.zeros((9, 2), np.uint32)),
}


@pytest.mark.parametrize("case", HISTOGRAM)
def test_boosted_trees_that_lead_outside_are_refused(case, tmp_path):
    made = boosted()
    HISTOGRAM[case](made._predictors[1][0])
    save_model(made, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match=r"boosted trees with links that lead outside|not a readable"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "_n_features", 400),
        lambda m: setattr(m._bin_mapper, "bin_thresholds_", m._bin_mapper.bin_thresholds_[:1]),
        lambda m: setattr(m._bin_mapper, "is_categorical_", m._bin_mapper.is_categorical_[:1].copy()),
        lambda m: setattr(m, "_predictors", [r[:1] for r in m._predictors]),
        lambda m: m._bin_mapper.bin_thresholds_.__setitem__(0, np.array([9e9])),
    ],
    ids=["columns", "thresholds", "kinds", "rounds", "categories"],
)
def test_boosted_models_whose_parts_do_not_belong_together_are_refused(change, tmp_path):
    made = boosted()
    change(made)
    save_model(made, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="boosted trees"):
        load_model(tmp_path / "m.skops")


class BoosterOfAnotherLibrary(ClassifierMixin, BaseEstimator):
    """Stands in for boosted trees of libraries that keep a compiled model as bytes."""

    def fit(self, X, y):
        self.classes_, self.handle_ = np.unique(y), b"compiled"
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def foreign_models(name):
    """A fitted classifier of a library that may not be installed; the test says so and is left out."""
    if name == "stand-in":
        return BoosterOfAnotherLibrary()
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    if name == "lightgbm":
        return library.LGBMClassifier(n_estimators=2, verbose=-1)
    if name == "xgboost":
        return library.XGBClassifier(n_estimators=2)
    return library.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False)


@pytest.mark.parametrize("piped", [False, True], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize("name", ["stand-in", "lightgbm", "xgboost", "catboost"])
def test_a_model_that_could_not_be_loaded_is_not_saved(name, piped, tmp_path):
    made = foreign_models(name)
    numbered = np.unique(LABELS, return_inverse=True)[1]
    made = (make_pipeline(StandardScaler(), made) if piped else made).fit(ROWS, numbered)
    library = "BoosterOfAnotherLibrary" if name == "stand-in" else name
    with pytest.raises(ModelFileError, match=rf"is not saved: .*{library}.*--allow-pickle"):
        save_model(made, tmp_path / "m.skops")
    assert not list(tmp_path.iterdir())
