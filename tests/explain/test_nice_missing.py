"""Missing numbers: a value of their own where the model takes them, refused where it does not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import countervail as cv
from countervail.core.errors import SchemaError
from countervail.core.explanation import Explanations
from countervail.explain.nice import REWARDS
from countervail.testing import small_model, small_table


def people(seed=0, n=200, holes=0.25):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.normal(40, 12, n).round(0),
            "debt": rng.integers(0, 20, n).astype(float),
            "age": rng.integers(20, 70, n),
        }
    )
    frame["ok"] = np.where(frame["income"] - frame["debt"] > 28, "yes", "no")
    for name in ("income", "debt"):
        frame.loc[rng.random(n) < holes, name] = np.nan
    return cv.Table.from_frame(frame, target="ok", favourable="yes")


@pytest.fixture(scope="module")
def boosted():
    table = people()
    return table, HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(table.features, table.target)


def slow_distance(a, b, spread):
    """HEOM with missing 1 from any number and 0 from itself, one column at a time."""
    total = 0.0
    for name in a:
        holes = pd.isna(a[name]) + pd.isna(b[name])
        total += abs(a[name] - b[name]) / spread[name] if holes == 0 else float(holes == 1)
    return total


def test_the_nearest_neighbour_is_the_slow_twins(boosted):
    table, model = boosted
    rows = people(1, 40).features
    e = cv.NICE().fit(table, model).explain(rows)
    spread = {n: table.frame[n].max() - table.frame[n].min() for n in rows}
    said = model.predict(table.features)
    right = [r for r, s, y in zip(table.features.to_dict("records"), said, table.target) if s == y]
    ok = dict(zip(map(str, right), [s for s, y in zip(said, table.target) if s == y]))
    for i, row in enumerate(rows.to_dict("records")):
        now = model.predict(rows.iloc[[i]])[0]
        best = min(slow_distance(row, r, spread) for r in right if ok[str(r)] != now)
        assert slow_distance(row, e.counterfactuals.iloc[i].to_dict(), spread) == pytest.approx(best)
    assert e.counterfactuals.isna().any(axis=None)


@pytest.mark.parametrize("reward", REWARDS)
def test_every_reward_answers_people_with_missing_numbers(boosted, reward):
    table, model = boosted
    rows = people(1, 30).features
    nice = cv.NICE(reward, target="favourable", n_counterfactuals=2).fit(table, model)
    e = nice.explain(rows)
    assert e.found.any() and "no_counterfactual" not in set(e.status)
    assert (model.predict(e.counterfactuals[e.found].astype(float)) == "yes").all()
    assert nice.explain(rows[:4]).to_text() == "\n".join(nice.explain(rows.iloc[[i]]).to_text() for i in range(4))
    assert Explanations.from_json(e.to_json()).to_json() == e.to_json()


def test_missing_is_a_word_of_the_explanation(boosted):
    table, model = boosted
    rows = people(1, 30).features
    e = cv.NICE(target="favourable", scale="std").fit(table, model).explain(rows)
    gone = [x for x in e if x.found and any(pd.isna(c) for c in x.changes.values())]
    assert gone and all("not stated" in x.sentence for x in gone)
    ranged = cv.NICE(ranges={"income": (0, 200)}).fit(table, model).explain(rows)
    given = [x for x in ranged if x.found and pd.isna(x.factual["income"]) and not pd.isna(x.cells["income"])]
    assert given and all("income" in x.changes for x in given)


def test_whole_numbers_may_be_missing_in_a_query_only(boosted):
    table, model = boosted
    rows = people(2, 20, holes=0).features.assign(age=pd.array([None] * 20, dtype="Int64"))
    e = cv.NICE("sparsity").fit(table, model).explain(rows)
    assert e.found.all() and e.factuals["age"].isna().all()


def test_constraints_know_what_is_missing(boosted):
    table, model = boosted
    rows = people(1, 40).features
    fitted = cv.NICE("sparsity", target="favourable", immutable=["debt"], monotone={"income": "up"}).fit(table, model)
    e = fitted.explain(rows)
    a, b = e.factuals[e.found], e.counterfactuals[e.found]
    same = (a == b) | (a.isna() & b.isna())
    assert len(a) and same["debt"].all() and (same["income"] | (b["income"] > a["income"])).all()
    ranged = cv.NICE("sparsity", target="favourable", ranges={"income": (0, 200)}).fit(table, model).explain(rows)
    assert ranged.found.any() and ranged.counterfactuals["income"][ranged.found].between(0, 200).all()


def test_a_model_that_cannot_take_them_is_spared():
    table = people()
    whole = table.features.fillna(0.0)
    model = LogisticRegression(max_iter=1000).fit(whole, table.target)
    with pytest.raises(cv.SchemaError, match=r"'table' given to NICE has missing values .* \['income', 'debt'\]"):
        cv.NICE().fit(table, model)
    full = people(holes=0)
    nice = cv.NICE().fit(full, model)
    with pytest.raises(cv.SchemaError, match=r"'rows' given to NICE have missing values .* \['income'\]"):
        nice.explain(full.features.assign(income=np.nan).iloc[:3])


@pytest.mark.parametrize("search", ["groups", "exact", "grasp"])
def test_protectors_explain_them_too(boosted, search):
    table, model = boosted
    table = table.with_roles(quasi=["age"])
    e = cv.CFK(k=3, search=search).fit(table, model).explain(table)
    assert (e.status != "no_counterfactual").all() and e.found.any()


def test_missing_numbers_lie_one_from_all_others_whatever_the_scale():
    t = small_table(60)
    table = cv.Table(t.frame.assign(income=t.frame["income"].where(t.frame["age"] > 30)), t.schema)

    def model(frame):
        return small_model(frame.assign(income=frame["income"].fillna(0)))

    for scale in ("minmax", "std", "iqr", "range", "quantile"):
        heom = cv.NICE(scale=scale).fit(table, model).heom_
        row = cv.NICE().fit(table, model).encoder_.encode(table.features.iloc[:1])
        hole, far = row.copy(), row.copy()
        hole[0, -1], far[0, -1] = np.nan, 40.0
        assert heom.between(hole, far).tolist() == [1.0] and heom.between(hole, hole).tolist() == [0.0]


@pytest.mark.parametrize("made", [cv.NICE(), cv.CFK(k=2)], ids=["nice", "cfk"])
def test_a_model_that_fails_on_every_row_is_not_blamed_on_missing_numbers(made):
    def broken(rows):
        raise TypeError("trained on other columns")

    frame = pd.DataFrame({"a": [0.0, 1.0, np.nan, 3.0] * 3, "b": list("xy") * 6, "ok": ["no", "yes"] * 6})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["b"])
    with pytest.raises(SchemaError, match="failed with TypeError"):
        made.fit(table, broken)
