"""PrivateSynthetic: one draw, and nothing of the table but through it."""

import json
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.tree import DecisionTreeClassifier

import countervail as cv
from countervail.core.errors import BudgetError, ParameterError, PrivacyWarning, SchemaError
from countervail.core.guarantee.composition import decimal
from countervail.core.rng import generator
from countervail.core.schema import Column
from countervail.protect.dp.synthetic import private_synthetic
from countervail.testing import small_model, small_table

ROWS = small_table(12, seed=1)
BIG = small_table(4_000)


def fitted(table=BIG, model=small_model, **given):
    return cv.PrivateSynthetic(**{"epsilon": 5.0, "rows": 500, **given}).fit(table, model)


def leaves(private, tmp_path, model=small_model):
    """All that anybody sees of a fitted protector."""
    private.save(tmp_path / "private.json")
    answers = private.explain(ROWS)
    return (
        answers.to_json(),
        answers.to_text(),
        private.protect().to_json(),
        (tmp_path / "private.json").read_text(),
        repr(private),
        str(private.guarantee()),
        pickle.loads(pickle.dumps(private)).explain(ROWS).to_json(),
    )


def surprising():
    """Other people altogether: fewer, of one kind, and with values that are missing or fractions."""
    frame = small_table(7, seed=9).frame.copy()
    frame["age"], frame["income"] = 30.5, np.nan
    frame.loc[frame.index[:3], "city"] = None
    return cv.Table(frame, BIG.schema)


def test_values_outside_the_domain_go_to_its_ends_record_by_record(monkeypatch):
    # A Table refuses them by itself; what reaches the mechanism another way is not told.
    seen = []
    real = private_synthetic.draw_counts
    monkeypatch.setattr(private_synthetic, "draw_counts", lambda codes, *rest: seen.append(codes) or real(codes, *rest))
    table = small_table(50)
    fitted(table)
    table.frame.iloc[0, table.frame.columns.get_loc("age")] = 900
    fitted(table)
    assert seen[1][0, 0] == 72 and np.array_equal(seen[0][1:], seen[1][1:])


@pytest.mark.parametrize("reward", ["sparsity", "typical", "plausibility"])
def test_nothing_depends_on_the_table_but_through_the_draw(monkeypatch, tmp_path, reward):
    held = fitted(reward=reward).draw_
    monkeypatch.setattr(private_synthetic, "draw_counts", lambda *records: held)
    worlds = [leaves(fitted(t, reward=reward), tmp_path) for t in (BIG, surprising(), small_table(1, seed=4))]
    assert worlds[0] == worlds[1] == worlds[2]


class Numbering:
    """The rule of the small table, with labels that are numbers."""

    classes_ = np.array([0, 1])

    def predict_proba(self, rows):
        return small_model(rows)

    def predict(self, rows):
        return small_model(rows).argmax(axis=1)


def numbered(missing):
    """Labels that are numbers and declared nowhere; a missing one makes them fractions."""
    target = pd.Series((BIG.frame["ok"] == "yes").astype(int))
    if missing:
        target = target.astype(float).mask(target.index == 7)
    columns = tuple(Column("ok", "numeric", "target") if c.name == "ok" else c for c in BIG.schema)
    return cv.Table(BIG.frame.assign(ok=target), cv.Schema(columns, (1,)))


def test_one_missing_target_does_not_show_in_files(monkeypatch, tmp_path):
    # The favourable label was stored as the rows spell it: 1, or 1.0 where somebody has none.
    held = fitted(numbered(False), Numbering()).draw_
    monkeypatch.setattr(private_synthetic, "draw_counts", lambda *records: held)
    worlds = [leaves(fitted(numbered(missing), Numbering()), tmp_path) for missing in (False, True)]
    assert worlds[0] == worlds[1]


@pytest.mark.parametrize("bad", [{"immutable": ["nobody"]}, {"target": "perhaps"}, {"rows": 0}, {"missing": ["age"]}])
def test_errors_are_the_same_whatever_the_table_holds(bad):
    said = []
    for table in (BIG, surprising()):
        with pytest.raises((ParameterError, SchemaError)) as error:
            fitted(table, **bad)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_every_level_is_told_by_the_noisy_total_alone():
    few, many = (fitted(small_table(n), epsilon=e) for n, e in ((30, 0.2), (4_000, 5.0)))
    some = fitted(small_table(200), epsilon=1.0, random_state=0)  # with five columns hardly any number is between
    assert (few.level_, some.level_, many.level_) == ("nothing", "columns", "pairs")
    words = [" ".join(p.explain(ROWS).caveats) for p in (few, some, many)]
    assert "count anything" in words[0] and "columns together" in words[1] and "too few" not in words[2]
    assert "count anything" in " ".join(few.protect().caveats)
    assert few.codes_.tolist() == fitted(small_table(30, seed=3), epsilon=0.2).codes_.tolist()  # public rows


def test_the_synthetic_table_carries_what_goes_with_what():
    rng = generator(0)
    n = 20_000
    wealth = rng.integers(0, 5, n)
    frame = pd.DataFrame({"wealth": wealth, "house": np.where(rng.random(n) < 0.9, wealth, rng.integers(0, 5, n))})
    frame["noise"] = rng.integers(0, 3, n)
    frame["ok"] = np.where(wealth >= 3, "yes", "no")
    domains = {"wealth": (0, 4), "house": (0, 4), "noise": (0, 2), "ok": ["no", "yes"]}
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", domains=domains)

    def model(rows):
        return np.where(rows["wealth"].to_numpy() >= 3, "yes", "no")

    made = cv.PrivateSynthetic(1.0).fit(table, model).protect().to_frame()
    assert (made["wealth"] == made["house"]).mean() == pytest.approx(0.92, abs=0.03)
    assert abs((made["noise"] == 0).mean() - 1 / 3) < 0.02
    assert len(made) == pytest.approx(n, rel=0.01)


def test_answers_are_synthetic_values_or_the_askers_own():
    private = fitted(reward="typical")
    answers, made = private.explain(ROWS), private.protect().to_frame()
    for one in answers:
        if one.found:
            assert all(v == one.factual[n] or v in set(made[n]) for n, v in one.cells.items())
    assert (answers.status != "no_counterfactual").all()


def test_answers_cost_nothing_more_and_are_the_same_again():
    private = fitted()
    first = private.explain(ROWS).to_json()
    assert private.explain(ROWS).to_json() == first
    promise = private.explain(ROWS).guarantee
    assert promise.answers is None and promise.total == 5.0 and promise.delta == 1e-6
    assert promise.page == "docs/decisions/dp-synthetic.md" and promise.adjacency == "add-remove"
    assert fitted(adjacency="replace-one").guarantee().adjacency == "both"


def test_pure_epsilon_has_no_delta_and_no_rho():
    promise = fitted(delta=0.0).guarantee()
    assert promise.delta == 0 and promise.rho is None and "delta" not in promise.claim


def test_a_file_gives_the_same_answers_and_holds_no_row(tmp_path):
    private, path = fitted(missing=["city"], n_counterfactuals=2, max_changes=2), tmp_path / "private.json"
    private.save(path)
    again = cv.load_protector(path, small_model)
    assert again.explain(ROWS).to_json() == private.explain(ROWS).to_json()
    assert again.protect().to_json() == private.protect().to_json()
    data = json.loads(path.read_text())
    assert set(data["draw"]) == {"total", "edges", "ones", "pairs"}
    assert not any(v in path.read_text() for v in BIG.frame["id"])
    with pytest.raises(ParameterError, match="'model' parameter of load_protector"):
        cv.load_protector(path)
    with pytest.raises(SchemaError, match="decides otherwise"):
        cv.load_protector(path, lambda frame: small_model(frame)[:, ::-1])


@pytest.mark.parametrize("seed", [7, generator(7)], ids=["number", "generator"])
def test_a_file_makes_no_promise_of_noise_that_was_seeded(tmp_path, seed):
    private = fitted(random_state=seed)
    private.save(tmp_path / "private.json")
    again = cv.load_protector(tmp_path / "private.json", small_model)
    assert isinstance(again.guarantee(), cv.NoGuarantee) and str(again.guarantee()) == str(private.guarantee())
    assert any("seeded" in text for text in again.explain(ROWS).caveats)
    assert again.explain(ROWS).counterfactuals.equals(private.explain(ROWS).counterfactuals)


@pytest.mark.parametrize("part", ["total", "edges", "ones", "pairs"])
def test_damaged_files_are_refused(tmp_path, part):
    path = tmp_path / "private.json"
    fitted().save(path)
    data = json.loads(path.read_text())
    for damage in (None, -1, [[0.5]], [["x"]]):
        path.write_text(json.dumps(data | {"draw": data["draw"] | {part: damage}}))
        with pytest.raises(SchemaError, match="damaged"):
            cv.load_protector(path, small_model)


def test_a_protector_holds_no_table():
    table = small_table(400)
    private = fitted(table)
    assert pickle.loads(pickle.dumps(private)).explain(ROWS).audit is None
    with pytest.raises(ParameterError, match="the fitted table itself"):
        private.protect(small_table(5))
    assert len(private.protect(table)) == 500


def test_a_model_that_decides_all_alike_leaves_everybody_without_an_answer():
    def never(frame):
        return np.column_stack([np.ones(len(frame)), np.zeros(len(frame))])

    answers = fitted(model=never).explain(ROWS)
    assert (answers.status == "no_counterfactual").all()


def test_where_synthetic_rows_are_decided_alike_public_ones_answer():
    def rich_only(frame):
        yes = (frame["income"].to_numpy(float) > 140).astype(float)  # nobody in the table
        return np.column_stack([1 - yes, yes])

    private = fitted(model=rich_only, epsilon=500.0)  # hardly any noise, or somebody rich might be made up
    assert (private.explain(ROWS).status == "found").all()
    assert private.protect().to_frame()["income"].max() <= 140  # public rows are no part of the release


def test_label_only_models_are_served():
    def labels(frame):
        return np.where(small_model(frame)[:, 1] > 0.5, "yes", "no")

    for reward in ("sparsity", "typical"):
        answers = fitted(model=labels, reward=reward).explain(ROWS)
        assert set(answers.status) == {"found", "already_favourable"}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"epsilon": 0}, "'epsilon' parameter of PrivateSynthetic"),
        ({"epsilon": float("inf")}, "'epsilon' parameter"),
        ({"epsilon": 1e-6, "delta": 1e-300}, "large enough for a delta"),
        ({"delta": 1.0}, "'delta' parameter"),
        ({"delta": -1e-9}, "'delta' parameter"),
        ({"delta": "small"}, "'delta' parameter"),
        ({"adjacency": "both"}, "'adjacency' parameter"),
        ({"reward": "none"}, "'reward' parameter"),
        ({"rows": 2.5}, "'rows' parameter"),
        ({"n_counterfactuals": 0}, "'n_counterfactuals' parameter"),
        ({"ledger": "mine"}, "'ledger' parameter"),
        ({"immutable": ["shoe size"]}, "PrivateSynthetic"),
    ],
)
def test_bad_parameters_are_named(bad, words):
    with pytest.raises((ParameterError, SchemaError), match=words):
        fitted(**bad)


def test_undeclared_and_read_domains_are_refused():
    with pytest.raises(SchemaError, match="declare none"):
        fitted(small_table(60, domains=False))
    schema = replace(BIG.schema, columns=tuple(replace(c, read=c.name == "city") for c in BIG.schema))
    with pytest.raises(SchemaError, match=r"declare none: \['city'\]"):
        fitted(cv.Table(BIG.frame, schema))


def test_a_grid_that_does_not_fit_memory_is_refused_before_it_is_built():
    schema = BIG.schema.with_column("income", domain=(-50.0, 150.0, 10**12))
    with pytest.raises(SchemaError, match="coarser grid"):
        fitted(cv.Table(BIG.frame, schema))


def test_a_delta_that_is_not_small_beside_the_people_warns():
    with pytest.warns(PrivacyWarning, match="delta is not small"):
        private = fitted(delta=0.01)
    assert any("delta is not small" in c for c in private.explain(ROWS).caveats)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(delta=1e-6)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-11, 1e6, 1e300])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_budgets_without_measure_are_answered_for_and_nothing_overflows(epsilon, delta):
    """Whatever warns is an error here: at epsilon 1e300 no noise is left, at 1e-300 counts end where integers do."""
    private = fitted(small_table(200), epsilon=epsilon, delta=delta, rows=50)
    assert private.explain(ROWS).guarantee.epsilon == epsilon
    assert private.level_ == ("pairs" if epsilon > 1 else "nothing")


def test_fewer_rows_than_columns_are_answered_for():
    assert len(fitted(small_table(2)).explain(ROWS)) == len(ROWS)


def test_one_column_has_no_pairs():
    frame = pd.DataFrame({"age": generator(0).integers(18, 90, 3000)})
    frame["ok"] = np.where(frame["age"] > 50, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", domains={"age": (18, 90), "ok": ["no", "yes"]})

    def model(rows):
        return np.where(rows["age"].to_numpy() > 50, "yes", "no")

    private = cv.PrivateSynthetic(1.0).fit(table, model)
    assert private.level_ == "columns" and private.explain({"age": 20}).found.all()


def test_a_ledger_keeps_the_draw_and_counts_rho():
    ledger = cv.Ledger("people", epsilon=6.0, delta=1e-6, adjacency="add-remove")
    first = fitted(ledger=ledger)
    used = ledger.statement().used
    assert used == (math.ceil(decimal(first.guarantee().rho) * 10**12),)
    again = fitted(small_table(4_000, seed=5), ledger=ledger, reward="typical")  # other answers from the same draw
    assert again.draw_.to_dict() == first.draw_.to_dict() and ledger.statement().used == used
    assert "A ledger keeps" in str(first.guarantee())
    with pytest.raises(BudgetError):
        fitted(ledger=ledger, epsilon=4.0)


@pytest.mark.parametrize(("adjacency", "times"), [("add-remove", 4), ("replace-one", 1)])
def test_a_ledger_for_replaced_records_counts_two_steps(adjacency, times):
    ledger = cv.Ledger("people", rho=10.0)
    rho = fitted(ledger=ledger, adjacency=adjacency).guarantee().rho
    assert ledger.statement().used == (math.ceil(times * decimal(rho) * 10**12),)


def test_a_ledger_of_epsilon_counts_epsilon_and_delta():
    ledger = cv.Ledger("people", epsilon=6.0, delta=1e-5, composition="basic", adjacency="add-remove")
    fitted(ledger=ledger)
    assert ledger.statement().used == (5 * 10**12, 10**12)
    with pytest.raises(BudgetError, match="with a delta"):
        fitted(ledger=cv.Ledger("others", epsilon=20.0, delta=1e-5, composition="basic"))


def test_a_public_model_may_tell_more_of_its_people_than_epsilon_says():
    """The sentence on every page said of answers as a whole what holds of what they tell beside the model."""
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"a": rng.integers(0, 10_001, 500), "ok": rng.choice(["no", "yes"], 500)}) for _ in "ab"]
    domains = {"a": (0, 10_000, 10_001), "ok": ["no", "yes"]}
    trained = cv.Table.from_frame(frames[0], target="ok", favourable="yes", domains=domains)
    private = cv.PrivateSynthetic(epsilon=0.1).fit(
        trained, DecisionTreeClassifier().fit(frames[0][["a"]], frames[0].ok)
    )
    told = [private.explain(f[["a"]]).status.eq("already_favourable").eq(f["ok"].eq("yes")).mean() for f in frames]
    promise = private.guarantee()
    assert told[0] / told[1] > 1.5 > promise.membership_bound() / 0.01, "of 1% false alarms more than the bound"
    assert "what the model itself tells left aside" in promise.meaning


def test_what_epsilon_means_for_one_person_is_said():
    words = fitted(epsilon=1.0).guarantee().meaning
    assert "at most 2.8 of 100" in words and "5.44 times (but for a chance of 3e-06)" in words
    assert "one record, what the model itself tells left aside: " in words
    assert "aside" not in cv.DPTable(epsilon=1.0).guarantee().meaning, "no model takes part"
    assert cv.DifferentialPrivacy(1000.0).membership_bound() == 1.0
    assert "rules nothing out" in cv.DifferentialPrivacy(1000.0).meaning
    # By hand: e * 0.01 + 1e-6, and nobody is told apart at a small epsilon.
    assert fitted(epsilon=1.0).guarantee().membership_bound() == pytest.approx(np.e * 0.01 + 1e-6)
    assert cv.DifferentialPrivacy(1e-9).membership_bound(0.3) == pytest.approx(0.3)


def test_a_delta_is_not_told_as_the_chance_of_a_larger_loss():
    # Gaussian noise of this rho has the loss N(rho, 2 rho): above epsilon five times as often as delta says.
    promise = fitted(epsilon=1.0).guarantee()
    loss = norm(promise.rho, math.sqrt(2 * promise.rho))
    assert loss.sf(promise.epsilon) > 4 * promise.delta
    times, chance = promise.odds_bound
    assert loss.sf(math.log(times)) + loss.cdf(-math.log(times)) <= chance
    assert cv.DifferentialPrivacy(1.0, None).odds_bound == (math.e, 0.0)
    # The worst of all: the whole delta gives the record away, and all else is exactly at epsilon.
    assert 2 * promise.delta + promise.delta * math.exp(-1) <= chance


def test_constraints_hold_and_several_answers_differ():
    private = fitted(n_counterfactuals=3, immutable=["city"], monotone={"age": "up"}, reward="typical")
    answers = private.explain(ROWS, constraints={"ranges": {"income": (0.0, 100.0)}})
    assert len(answers) > len(ROWS)
    for one in answers:
        if one.found:
            assert one.cells["city"] == one.factual["city"] and one.cells["age"] >= one.factual["age"]
            assert 0 <= one.cells["income"] <= 100
    with pytest.raises(ParameterError, match="PrivateSynthetic"):
        private.explain(ROWS, constraints={"nothing": 1})


def with_holes(n, seed=0):
    table = small_table(n, seed=seed)
    rng, frame = generator(seed), table.frame.copy()
    frame["income"] = frame["income"].where(rng.random(n) > 0.2)
    frame["age"] = frame["age"].astype(float).where(rng.random(n) > 0.1)
    return cv.Table(frame, table.schema)


def test_missing_numbers_are_a_level_of_their_own_where_that_is_declared(tmp_path):
    holes, asked = ["income", "age"], with_holes(12, 3).features
    table = with_holes(4_000)
    model = cv.train_private_logistic(table, 5.0, missing=holes)
    private = fitted(table, model, missing=holes, reward="typical", rows=2_000)
    made = private.protect().to_frame()
    assert made["income"].isna().mean() == pytest.approx(0.2, abs=0.05)
    assert made["age"].isna().mean() == pytest.approx(0.1, abs=0.05)
    answers = private.explain(asked)
    assert set(answers.status) == {"found", "already_favourable"} and "nan" not in answers.to_text().lower()
    private.save(tmp_path / "private.json")
    assert cv.load_protector(tmp_path / "private.json", model).explain(asked).to_json() == answers.to_json()
    with pytest.raises(SchemaError, match="name the columns in 'missing'"):
        fitted(table, model, missing=["age"]).explain(asked)


def test_missing_numbers_are_refused_where_nobody_can_answer_for_them():
    with pytest.raises(ParameterError, match="the model takes missing numbers"):
        fitted(BIG, small_model, missing=["income"])  # its scores would be NaN
    with pytest.raises(ParameterError, match="train_private_logistic take missing numbers"):
        cv.PrivateNeighbours(1.0, missing=["income"]).fit(BIG, small_model)
    with pytest.raises(SchemaError, match=r"missing values in numeric columns: \['age', 'income'\]"):
        fitted().explain(with_holes(12, 3).features)
