"""A model trained in private: what one record moves, in whole numbers, and what is promised with it."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from dp_mechanisms import GRID
from hypothesis import given
from hypothesis import strategies as st
from test_synthetic_exact import Silent, budget, records

import countervail as cv
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.guarantee import guarantee_from_dict
from countervail.core.guarantee.composition import decimal
from countervail.core.rng import generator
from countervail.model import load_model, save_model
from countervail.protect.dp import private_logistic
from countervail.protect.dp.private_logistic import WEIGHT, WHOLE, Shares, misses, reach, slopes, trained
from countervail.protect.dp.synthetic.accounting import root_above
from countervail.testing import small_model, small_table

HERE = [Shares.of(a) for a in GRID.axes]
WIDTH = sum(s.parts.shape[1] for s in HERE)
BIG = small_table(4_000)
ROWS = small_table(12, seed=1)
FEW = small_table(60)


def some_weights(seed, vectors):
    return (generator(seed).normal(0, 3, (vectors, WIDTH)) * WEIGHT).astype(np.int64)


def slow_slopes(codes, classes, weights):
    """One record and one number at a time."""
    out = [[0] * WIDTH for _ in weights]
    for row, label in zip(codes.tolist(), classes.tolist()):
        x = [int(v) for s, at in zip(HERE, row) for v in s.parts[at]]
        scores = [sum(a * int(b) for a, b in zip(x, w)) // WEIGHT for w in weights]
        if len(scores) == 1:
            score = min(max(scores[0], -12 * WHOLE), 12 * WHOLE)
            missed = [round(WHOLE / (1 + math.exp(-score / WHOLE))) - WHOLE * label]
        else:
            e = [round(math.exp(-min(max(scores) - s, 12 * WHOLE) / WHOLE) * 2**20) for s in scores]
            missed = [a * WHOLE // sum(e) - WHOLE * (k == label) for k, a in enumerate(e)]
        for k, m in enumerate(missed):
            out[k] = [a + m * b for a, b in zip(out[k], x)]
    return out


ONE = st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 4))


@given(st.lists(ONE, min_size=1, max_size=8), st.integers(0, 99), st.sampled_from([1, 3]))
def test_slopes_are_those_of_a_slow_twin_and_none_is_longer_than_its_noise_is_made_for(rows, seed, vectors):
    codes, weights = records(rows), some_weights(seed, vectors)
    classes = generator(seed).integers(0, max(vectors, 2), len(codes))
    assert slopes(codes, classes, HERE, weights).tolist() == slow_slopes(codes, classes, weights)
    l1, l2_squared = reach(len(HERE), vectors)
    for at in range(len(codes)):
        one = slopes(codes[at : at + 1], classes[at : at + 1], HERE, weights).astype(object)
        assert abs(one).sum() <= l1 and (one * one).sum() <= l2_squared


@pytest.mark.parametrize("vectors", [1, 3])
def test_the_bounds_are_reached(vectors):
    # A record that the weights are sure of, and wrong about: every share counts in full.
    weights = np.zeros((vectors, WIDTH), dtype=np.int64)
    weights[0] = 12 * WEIGHT
    one = slopes(records([(0, 0, 0)]), np.array([0 if vectors == 1 else 1]), HERE, weights).astype(object)
    l1, l2_squared = reach(3, vectors)
    assert abs(one).sum() > 0.99 * l1 and (one * one).sum() > 0.98 * l2_squared


@given(st.integers(2, 300))
def test_shares_of_a_position_add_up_to_a_whole(m):
    column = cv.Column("x", type="numeric", domain=(0, m - 1, m))
    parts = Shares.of(private_logistic.Axis.of(column, np.dtype(float), False)).parts
    assert (parts.sum(axis=1) == WHOLE).all() and (parts >= 0).all() and ((parts > 0).sum(axis=1) <= 2).all()
    assert parts.shape[1] == min(m, 8) and parts[0, 0] == parts[-1, -1] == WHOLE


@given(st.integers(1, 10**30))
def test_roots_are_rounded_up(square):
    root = Fraction(root_above(square))
    assert square <= root**2 <= square * (1 + Fraction(1, 10**12))


def test_misses_are_probability_less_truth():
    weights = np.zeros((1, WIDTH), dtype=np.int64)
    assert misses(records([(0, 0, 0), (1, 1, 1)]), np.array([0, 1]), HERE, weights).tolist() == [[512], [-512]]


@pytest.mark.parametrize(("delta", "adjacency"), [(1e-6, "add-remove"), (1e-6, "replace-one"), (0.0, "replace-one")])
def test_training_spends_its_budget_and_not_more(delta, adjacency):
    b = budget(2.0, delta, adjacency)
    trained(records([(0, 1, 2), (1, 2, 3)] * 50), np.array([0, 1] * 50), 2, GRID, b, 3)
    assert b.total * Fraction(999, 1000) < b.spent <= b.total


class Deaf(Silent):
    """Constants instead of sums as well."""

    def sums(self, exact, share, l1, l2_squared):
        return np.full(exact.shape, 1000, dtype=np.int64)


def test_nothing_of_the_records_passes_by_the_noise():
    tables = [records([(0, 0, 0)]), records([(1, 3, 4)] * 50), np.zeros((0, 3), dtype=np.int64)]
    noise = Deaf(5.2, 1e-6, "add-remove")
    found = [trained(t, np.ones(len(t), dtype=np.int64), 2, GRID, noise, 2).tolist() for t in tables]
    assert found[0] == found[1] == found[2] and np.any(found[0])


def test_the_model_learns_what_goes_with_the_target():
    model = cv.train_private_logistic(BIG, 2.0)
    truth = small_table(2_000, seed=7)
    assert (model.predict(truth.features) == truth.target.astype(object)).mean() > 0.9
    assert "epsilon = 2" in repr(model) and model.promise.page == "docs/decisions/dp-logistic.md"


@pytest.mark.parametrize("epsilon", [1e-300, 1e-11, 1e6, 1e300])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_budgets_without_measure_train_a_model_that_answers(epsilon, delta):
    """Whatever warns is an error here: squares of noise left the floats, and weights became no numbers."""
    scores = cv.train_private_logistic(small_table(200), epsilon, delta=delta).predict_proba(ROWS.features)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_three_labels_are_learnt():
    rng = generator(1)
    frame = pd.DataFrame({"a": rng.integers(0, 3, 6000), "b": rng.integers(0, 5, 6000)})
    frame["kind"] = np.array(["x", "y", "z"])[frame["a"]]
    table = cv.Table.from_frame(frame, target="kind", domains={"a": (0, 2), "b": (0, 4), "kind": ["x", "y", "z"]})
    model = cv.train_private_logistic(table, 2.0)
    assert (model.predict(table.features) == frame["kind"]).mean() > 0.95
    assert model.predict_proba(table.features).sum(axis=1) == pytest.approx(1)


def test_every_answer_says_whether_the_model_is_public_or_private():
    model = cv.train_private_logistic(FEW, 2.0)
    for made in (cv.PrivateSynthetic(1.0, rows=200), cv.PrivateNeighbours(0.1), cv.PrivateHistograms(1.0)):
        public = type(made)(**made.get_params()).fit(FEW, small_model).explain(ROWS)
        assert public.guarantee.given == "public model" and "given a public model" in str(public.guarantee)
    synthetic = cv.PrivateSynthetic(1.0, rows=200).fit(FEW, model).explain(ROWS).guarantee
    assert (synthetic.given, synthetic.total, synthetic.model_delta) == ("private model", 3.0, 1e-6)
    assert "epsilon = 2, delta = 1e-06 for the model; epsilon = 3, delta = 2e-06 in all" in str(synthetic)
    assert synthetic.membership_bound() == pytest.approx(math.e**3 * 0.01 + 2e-6)
    assert guarantee_from_dict(synthetic.to_dict()) == synthetic
    each = cv.PrivateNeighbours(0.1).fit(FEW, model).explain(ROWS).guarantee
    assert each.total == pytest.approx(0.1 * each.answers + 2.0) and each.adjacency == "add-remove"
    # A noisy table promises about replaced records only, this model about added ones: nothing adds up.
    noisy = cv.DPTableExplainer(1.0).fit(FEW, model).explain(ROWS).guarantee
    assert (noisy.given, noisy.adjacency) == ("public model", "replace-one")
    both = cv.train_private_logistic(FEW, 2.0, adjacency="replace-one")
    assert cv.DPTableExplainer(1.0).fit(FEW, both).explain(ROWS).guarantee.total == 3.0
    assert cv.DPTable(1.0).fit(FEW).guarantee().given == "no model"


def test_a_ledger_debits_model_and_answers():
    ledger = cv.Ledger("people", epsilon=6.0, delta=1e-5, adjacency="add-remove")
    model = cv.train_private_logistic(BIG, 2.0, ledger=ledger)
    spent = ledger.statement().used
    assert spent == (math.ceil(decimal(model.promise.rho) * 10**12),)
    again = cv.train_private_logistic(small_table(50), 2.0, ledger=ledger)  # the same weights, for nothing
    assert again.columns_ == model.columns_ and ledger.statement().used == spent
    private = cv.PrivateSynthetic(1.0, rows=300, ledger=ledger).fit(BIG, model)
    assert ledger.statement().used[0] == spent[0] + math.ceil(decimal(private._promise().rho) * 10**12)


def test_a_ledger_does_not_give_the_weights_of_one_target_for_another():
    # Both targets have the labels "no" and "yes": the second model was the first, about something else.
    ledger = cv.Ledger("people", epsilon=20.0, delta=1e-5, adjacency="add-remove")
    frame = FEW.frame.assign(ill=FEW.frame["ok"].to_numpy(), well=FEW.frame["ill"].to_numpy()).drop(columns=["ok"])
    columns = [replace(c, name="well") if c.name == "ok" else c for c in FEW.schema]
    other = cv.Table(frame, replace(FEW.schema, columns=tuple(columns)))
    first = cv.train_private_logistic(FEW, 2.0, ledger=ledger)
    assert cv.train_private_logistic(other, 2.0, ledger=ledger).columns_ != first.columns_
    assert len(ledger.history()) == 2


def test_a_budget_is_not_said_to_cover_a_model_that_it_did_not_count():
    # Before, "6 in all" stood beside "a ledger keeps all answers ever given within" less.
    model = cv.train_private_logistic(FEW, 5.0)
    ledger = cv.Ledger("people", epsilon=2.0, adjacency="add-remove")
    private = cv.PrivateHistograms(1.0, adjacency="add-remove", ledger=ledger).fit(FEW, model)
    words = str(private.explain(ROWS).guarantee)
    assert "6, delta = 1e-06 in all" in words
    assert "The model is within that only if the same ledger counted its training." in words
    assert "within that only" not in str(private.fit(FEW, small_model).guarantee())


@pytest.mark.parametrize("made", [cv.PrivateSynthetic, cv.PrivateHistograms])
def test_the_promise_of_a_private_model_covers_no_draw_with_another(made, tmp_path):
    # Both refuse every made-up record, so a ledger took one for the other; but the first tells people of the table.
    known = {tuple(row) for row in FEW.features.astype(str).to_numpy()[:20].tolist()}

    def tells(rows):
        return np.array(["yes" if tuple(r) in known else "no" for r in rows.astype(str).to_numpy().tolist()])

    private = cv.train_private_logistic(FEW, 2.0)
    for column in private.columns_:
        column["weights"] = [[-1.0] * len(w) for w in column["weights"]]
    ledger = cv.Ledger("people", rho=5.0, adjacency="add-remove")
    given = {"adjacency": "add-remove", "ledger": ledger}
    first = made(1.0, **given).fit(FEW, tells)
    spent = ledger.statement().used[0]
    assert made(1.0, **given).fit(FEW, private).guarantee().given == "private model"
    assert ledger.statement().used[0] == 2 * spent, "another draw"
    if made is cv.PrivateSynthetic:
        first.save(tmp_path / "first.json")
        with pytest.raises(SchemaError, match="The model that was given"):
            cv.load_protector(tmp_path / "first.json", private)
        made(1.0, rows=200).fit(FEW, private).save(tmp_path / "second.json")
        save_model(private, tmp_path / "model.skops")
        again = load_model(tmp_path / "model.skops")
        assert cv.load_protector(tmp_path / "second.json", again).guarantee().given == "private model"


def test_a_seeded_model_promises_nothing_and_stays_public():
    model = cv.train_private_logistic(BIG, 2.0, random_state=3)
    assert model.promise is None and "no promise" in repr(model)
    assert cv.PrivateSynthetic(1.0, rows=300).fit(BIG, model).guarantee().given == "public model"
    assert cv.train_private_logistic(BIG, 2.0, random_state=3).columns_ == model.columns_


def test_a_file_keeps_model_and_promise(tmp_path):
    model, path = cv.train_private_logistic(BIG, 2.0, missing=["city"]), tmp_path / "model.skops"
    save_model(model, path)
    again = load_model(path)
    odd = ROWS.features.assign(city=[None, "elsewhere"] * 6, income=[math.nan, 51.25, 1e9] * 4)
    assert np.array_equal(again.predict_proba(odd), model.predict_proba(odd)) and again.promise == model.promise
    with pytest.raises(SchemaError, match=r"rows do not have: \['city'\]"):
        model.predict(ROWS.features.drop(columns="city"))


def test_labels_that_are_missing_count_as_the_first_and_nobody_is_told(monkeypatch):
    seen = []
    real = private_logistic.trained
    monkeypatch.setattr(private_logistic, "trained", lambda *a: seen.append(a[1]) or real(*a))
    frame = small_table(60).frame
    frame.iloc[:5, frame.columns.get_loc("ok")] = None
    cv.train_private_logistic(cv.Table(frame, BIG.schema), 2.0)
    assert (seen[0][:5] == 0).all() and seen[0].max() == 1
    ranks = pd.Categorical(["low", None, "high", "middle"], ["low", "middle", "high"], ordered=True)
    ranked = pd.DataFrame({"age": [20, 30, 40, 50], "rank": ranks})
    domains = {"age": (18, 90), "rank": ["low", "middle", "high"]}
    cv.train_private_logistic(cv.Table.from_frame(ranked, target="rank", domains=domains), 2.0)
    assert seen[1].tolist() == [0, 0, 2, 1], "in an order too: the first, not the middle"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"epsilon": 0}, "'epsilon' parameter of train_private_logistic"),
        ({"epsilon": 1e-6, "delta": 1e-300}, "large enough for a delta"),
        ({"delta": 1}, "'delta' parameter"),
        ({"adjacency": "both"}, "'adjacency' parameter"),
        ({"steps": 0}, "'steps' parameter"),
        ({"ledger": 3}, "'ledger' parameter"),
        ({"missing": ["age", "nobody"]}, "'missing' parameter"),
        ({"table": 3}, "'table' parameter"),
        ({"table": small_table(60, domains=False)}, "declare none"),
        ({"table": cv.Table(BIG.frame, BIG.schema.with_column("ok", type="categorical", read=True))}, "labels"),
    ],
)
def test_bad_parameters_are_named(bad, words):
    with pytest.raises((ParameterError, SchemaError), match=words):
        cv.train_private_logistic(**{"table": BIG, **bad})


@pytest.mark.parametrize(
    "bad",
    [{"given": "no"}, {"model_epsilon": 1.0}, {"given": "private model"}, {"model_delta": 0.1}],
)
def test_promises_that_do_not_fit_together_are_refused(bad):
    with pytest.raises(ParameterError, match="DifferentialPrivacy"):
        cv.DifferentialPrivacy(1.0, **bad)
