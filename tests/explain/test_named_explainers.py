"""What every explainer that the papers name must do: constraints, labels of any kind, missing numbers, bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from test_nice_constraints import broken, drawn_constraints, people
from test_nice_missing import people as people_with_holes
from test_nice_properties import linear_model

import countervail as cv
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.registry import explainers
from countervail.testing import small_model, small_table

NATIVE = [
    cv.NearestCounterfactual(),
    cv.NearestCounterfactual("l2"),
    cv.CaseBased(tolerance=0.1, adapt=False),
    cv.FACE(neighbours=6),
    cv.FACE(neighbours=6, density="kde"),
    cv.FACE(graph="epsilon", density="epsilon", neighbours=6),
]
EVERY = [*NATIVE, cv.CaseBased(tolerance=0.1, cases=3), cv.SEDC()]


def named(explainer):
    return " ".join(str(explainer).split())


def test_the_four_are_registered():
    assert {"nearest", "case-based", "sedc", "face"} <= set(explainers())


@pytest.mark.parametrize("explainer", EVERY, ids=named)
def test_no_answer_breaks_any_constraint(explainer, seeds):
    answered = 0
    for seed in seeds(12, 400):
        rng = np.random.default_rng(seed)
        table, model, rows = people(seed, 40), linear_model(seed), people(seed + 7, 12).features
        given, n = drawn_constraints(rng), int(rng.integers(1, 4))
        own = [drawn_constraints(rng) if rng.random() < 0.3 else None for _ in range(len(rows))]
        fitted = clone(explainer).set_params(n_counterfactuals=n, **given).fit(table, model)
        e = fitted.explain(rows, constraints=own)
        whole = {tuple(r) for r in table.features.astype(object).to_numpy().tolist()}
        for i in np.flatnonzero(e.found):
            a, b = e.factuals.iloc[i].to_dict(), e.counterfactuals.iloc[i].to_dict()
            asked = {**given}
            for name, value in (own[e.query[i]] or {}).items():
                asked[name] = {**given.get(name, {}), **value} if isinstance(value, dict) else value
                if name == "immutable":
                    asked[name] = [*given.get(name, ()), *value]
            assert broken(asked, a, b) == []
            row = pd.DataFrame([b]).astype(rows.dtypes.to_dict())
            assert model(row).argmax() != model(rows.iloc[[e.query[i]]]).argmax()
            if getattr(fitted, "native", False):
                assert tuple(b.values()) in whole
        for q in np.unique(e.query):
            assert not e.counterfactuals[(e.query == q) & e.found].duplicated().any()
        answered += int(e.found.sum())
    assert answered > 15


@pytest.mark.parametrize("explainer", EVERY, ids=named)
def test_the_order_of_the_rows_changes_nothing(explainer):
    rows = small_table(15, seed=1)
    table = small_table(80)
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    first = clone(explainer).fit(table, small_model).explain(rows)
    assert clone(explainer).fit(shuffled, small_model).explain(rows).to_text() == first.to_text()


@pytest.mark.parametrize("explainer", EVERY, ids=named)
def test_three_classes_and_any_labels_serve(explainer):
    iris = cv.load("iris")
    model = LogisticRegression(max_iter=1000).fit(iris.features, iris.target)
    e = clone(explainer).fit(iris, model).explain(iris.take(np.arange(0, 150, 5)))
    assert (model.predict(e.counterfactuals[e.found]) == e.after[e.found]).all()
    # In a graph by epsilon setosa is an island.
    assert (e.after[e.found] != e.before[e.found]).all() and e.found.mean() >= 0.5
    aimed = clone(explainer).set_params(target="virginica").fit(iris, model).explain(iris.take(np.arange(0, 150, 5)))
    assert set(aimed.after[aimed.found]) <= {"virginica"} and "already_favourable" in set(aimed.status)


@pytest.mark.parametrize("explainer", EVERY, ids=named)
def test_missing_numbers_are_explained_where_the_model_takes_them(explainer):
    table, rows = people_with_holes(), people_with_holes(1, 30).features
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(table.features, table.target)
    e = clone(explainer).fit(table, model).explain(rows)
    assert e.found.sum() >= 9 and (e.after[e.found] != e.before[e.found]).all()
    plain = LogisticRegression().fit(table.features.fillna(0), table.target)
    with pytest.raises(cv.SchemaError, match="missing values in numeric columns"):
        clone(explainer).fit(table, plain)


@pytest.mark.parametrize("explainer", EVERY, ids=named)
def test_a_model_that_gives_labels_only_is_enough(explainer):
    def model(frame):
        return np.where(small_model(frame)[:, 1] > 0.5, "yes", "no")

    e = clone(explainer).fit(small_table(), model).explain(small_table(20, seed=1))
    assert e.found.any() and e.scores is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cv.NearestCounterfactual("l3"), "'norm' parameter of NearestCounterfactual must be one of"),
        (lambda: cv.NearestCounterfactual(n_counterfactuals=0), "'n_counterfactuals' parameter of NearestC"),
        (lambda: cv.NearestCounterfactual(immutable=["shoe"]), "'immutable' parameter of NearestCounterfactual"),
        (lambda: cv.NearestCounterfactual(target="maybe"), "'target' parameter of NearestCounterfactual must be among"),
        (lambda: cv.CaseBased(max_differences=0), "'max_differences' parameter of CaseBased"),
        (lambda: cv.CaseBased(cases=1.5), "'cases' parameter of CaseBased"),
        (lambda: cv.CaseBased(tolerance=1.0), "'tolerance' parameter of CaseBased must be a share of the range"),
        (lambda: cv.SEDC(neutral={"shoe": 1}), "'neutral' parameter of SEDC must be made of feature columns"),
        (lambda: cv.SEDC(neutral={"income": "much"}), "'neutral' parameter of SEDC must be a finite number"),
        (lambda: cv.SEDC(neutral={"age": 30.5}), "'neutral' parameter of SEDC must be a whole number"),
        (lambda: cv.SEDC(neutral={"city": "z"}), "'neutral' parameter of SEDC must be a value that column 'city' has"),
        (lambda: cv.SEDC(max_iterations=0), "'max_iterations' parameter of SEDC"),
        (lambda: cv.FACE(graph="tree"), "'graph' parameter of FACE must be one of"),
        (lambda: cv.FACE(density="flat"), "'density' parameter of FACE must be one of"),
        (lambda: cv.FACE(neighbours=0), "'neighbours' parameter of FACE"),
        (lambda: cv.FACE(radius=0), "'radius' parameter of FACE must be a finite number above 0"),
        (lambda: cv.FACE(bandwidth=float("inf")), "'bandwidth' parameter of FACE must be a finite number above 0"),
        (lambda: cv.FACE(min_score=2), "'min_score' parameter of FACE must be between 0 and 1"),
        (lambda: cv.FACE(min_density=1), "'min_density' parameter of FACE must be at least 0 and below 1"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make().fit(small_table(), small_model)


@pytest.mark.parametrize("name", ["nearest", "case-based", "sedc", "face"])
def test_each_answers_on_the_command_line(run, tmp_path, name):
    table = small_table(80)
    write_frame(table.frame, tmp_path / "people.csv")
    write_schema(table.schema, tmp_path / "people.toml")
    write_frame(small_table(4, seed=1).features, tmp_path / "asked.csv")
    words = ("explain", tmp_path / "people.csv", "--schema", tmp_path / "people.toml", "--rows", tmp_path / "asked.csv")
    code, _, err = run(*words, "--method", name, "--immutable", "city", "-o", tmp_path / "out.json")
    assert code == 0, err
    read = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert read["guarantee"]["promise"] == "NoGuarantee" and read["provenance"]["explainer"] == name
    code, _, err = run(*words, "--method", name, "--letters", tmp_path / "letters")
    assert code == 2 and f"--method {name} promises nothing" in err
