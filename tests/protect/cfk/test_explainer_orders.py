"""CF-K with each native explainer: whose order it goes by, and that nothing of an owner shows in it."""

import numpy as np
import pytest
from sklearn.base import clone

import countervail as cv
from countervail.protect.cfk.groups import ranking
from countervail.testing import small_model, small_table

pytestmark = pytest.mark.usefixtures("quick_groups")

ORDERS = [
    cv.NearestCounterfactual(),
    cv.NearestCounterfactual("l2", costs={"age": 2.0}),
    cv.FACE(neighbours=6),
    cv.FACE(neighbours=6, density="kde"),
    cv.CaseBased(adapt=False, tolerance=0.1, cases=3),
    cv.NICE(justified=False, scale="iqr"),
]
QUASI = ("age", "city", "level")


def permuted(table, group, rng):
    """The same table with everything but quasi-identifiers permuted within groups, and its rows in another order."""
    source = np.arange(len(table))
    for g in np.unique(group):
        at = np.flatnonzero(group == g)
        source[at] = rng.permutation(at)
    frame = table.frame.copy()
    for name in frame.columns:
        if name not in QUASI:
            frame[name] = frame[name].array.take(source)
    return cv.Table(frame.iloc[rng.permutation(len(frame))], table.schema)


@pytest.mark.parametrize("explainer", ORDERS, ids=str)
@pytest.mark.parametrize("reward", ["none", "sparsity"])
def test_private_vectors_permuted_within_groups_change_no_answer(explainer, reward, seeds):
    for seed in seeds(4, 200):
        table, rows = small_table(60, seed=seed), small_table(12, seed=seed + 500)
        protector = cv.CFK(k=3, explainer=explainer, reward=reward)
        made = clone(protector).fit(table, small_model)
        other = permuted(table, made.search_.row_group_, np.random.default_rng(seed))
        again = clone(protector).fit(other, small_model)
        assert made.explain(rows).to_json() == again.explain(rows).to_json()


def test_an_explainer_of_the_rows_themselves_would_be_caught(monkeypatch):
    """The middle of a cell is the middle for all: with the owner's own value there, the worlds above differ."""
    differ = 0
    for seed in range(6):
        table, rows = small_table(60, seed=seed), small_table(12, seed=seed + 500)
        made = cv.CFK(k=3, explainer=cv.NearestCounterfactual(), reward="none").fit(table, small_model)
        other = permuted(table, made.search_.row_group_, np.random.default_rng(seed))
        plain = [cv.NearestCounterfactual(target="favourable").fit(t, small_model) for t in (table, other)]
        held = []
        for t, e in zip((table, other), plain):
            near = e.nearest(rows)[:, 0]
            group = cv.CFK(k=3).fit(t, small_model).search_.row_group_
            held.append([(int(group[n]), t.frame["income"].iloc[n]) if n >= 0 else None for n in near])
        differ += held[0] != held[1]
    assert differ >= 5


@pytest.mark.parametrize("explainer", [ORDERS[0], ORDERS[2], ORDERS[4]], ids=str)
@pytest.mark.parametrize("search", ["groups", "exact", "grasp"])
def test_every_search_takes_every_native_explainer(explainer, search):
    table, rows = small_table(120), small_table(25, seed=1)
    for reward in ("none", "sparsity"):
        made = cv.CFK(k=4, search=search, explainer=explainer, reward=reward).fit(table, small_model)
        e = made.explain(rows)
        assert e.found.any() and set(e.after[e.found]) == {"yes"}
        assert made.guarantee().refute(e, table) is None
        assert (e.regions.count(table.frame) >= 4).all()


def test_the_order_is_the_explainers():
    table, rows = small_table(120), small_table(25, seed=1)
    made = cv.CFK(k=4, explainer=cv.FACE(neighbours=6), reward="none").fit(table, small_model)
    ranks = made.search_.ranks_
    asked = made._answered(rows)[0]
    open_ = asked.only(np.flatnonzero(~asked.already))
    first = ranks.of(open_, ranking.LOOKED_AT)[:, 0]
    e, judged = made.explain(rows), made.search_.candidates_
    told = made.search_.encoder_.decode(judged.private[first])
    assert e.counterfactuals.loc[e.found, "income"].tolist() == told["income"].tolist()
    others = [cv.CFK(k=4, explainer=x, reward="none").fit(table, small_model).explain(rows).to_text() for x in ORDERS]
    assert len(set(others)) > 3


def test_what_the_schema_declares_is_for_the_moves():
    table, rows = small_table(120), small_table(25, seed=1)
    schema = table.schema.with_column("city", actionable="no").with_column("age", actionable="no")
    bound = cv.Table(table.frame, schema.with_column("level", actionable="no").with_column("ill", actionable="no"))
    e = cv.CFK(k=4, explainer=cv.NearestCounterfactual()).fit(bound, small_model).explain(rows)
    open_ = (e.status != "already_favourable").to_numpy()
    assert e.found[open_].all()  # whole rows with all of that would be nobody's
    assert (e.factuals.loc[e.found, "city"] == e.counterfactuals.loc[e.found, "city"]).all()


def test_everybody_with_one_decision_has_nobody_unlike():
    made = cv.CFK(k=4, explainer=cv.FACE()).fit(small_table(), lambda rows: np.repeat("no", len(rows)))
    assert not made.explain(small_table(5, seed=1)).found.any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"explainer": cv.SEDC()}, "'explainer' parameter of CFK must be a native explainer"),
        ({"explainer": cv.CaseBased()}, "'explainer' parameter of CFK must be a native explainer"),
        ({"explainer": cv.NICE()}, "'explainer' parameter of CFK must be one with justified=False for search='groups'"),
        (
            {"explainer": cv.NICE("sparsity"), "search": "exact"},
            "'explainer' parameter of CFK must be a native explain",
        ),
    ],
)
def test_what_cannot_be_gone_by_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        cv.CFK(k=3, **given).fit(small_table(), small_model)


def test_it_is_not_saved(tmp_path):
    made = cv.CFK(k=3, explainer=cv.FACE()).fit(small_table(), small_model)
    with pytest.raises(cv.SchemaError, match="cannot be saved"):
        made.save(tmp_path / "made.json")
    assert not list(tmp_path.iterdir())
