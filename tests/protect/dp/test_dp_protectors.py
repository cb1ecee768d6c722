"""Private protectors: bad input, what an adversary who has read the code would try, and their own promises."""

import json
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import countervail as cv
from countervail.core.errors import ParameterError
from countervail.protect.dp import public
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.pool import Pool
from countervail.testing import small_model, small_table

KINDS = [cv.PrivateNeighbours, cv.NoisyCounterfactual, cv.PrivateHistograms]
EVERY = [*KINDS, cv.DPTable]


def fitted(kind, table=None, **parameters):
    table = small_table() if table is None else table
    made = kind(**parameters)
    return made.fit(table) if kind is cv.DPTable else made.fit(table, small_model)


# Bad input: clear errors at fit.


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_a_budget_must_be_a_finite_number_above_zero(kind, epsilon):
    with pytest.raises(ParameterError, match=f"'epsilon' parameter of {kind.__name__} must be a finite number above 0"):
        fitted(kind, epsilon=epsilon)


@pytest.mark.parametrize("kind", EVERY)
def test_without_declared_domains_nothing_is_fitted(kind):
    with pytest.raises(cv.SchemaError, match=r"declare none: \['age', 'city', 'level', 'ill', 'income'\]"):
        fitted(kind, small_table(domains=False))


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        (cv.PrivateNeighbours, {"neighbours": 0}, "'neighbours' parameter of PrivateNeighbours"),
        (cv.PrivateNeighbours, {"neighbours": 2.5}, "'neighbours' parameter"),
        (cv.PrivateNeighbours, {"pool": "ranked"}, "'pool' parameter"),
        (cv.PrivateNeighbours, {"neighbours": 3, "slots": 4}, "'slots' parameter"),
        (cv.PrivateNeighbours, {"features": 0}, "'features' parameter"),
        (cv.PrivateNeighbours, {"pool": "features", "split": {"age": 1.0}}, "'split' parameter"),
        (cv.PrivateNeighbours, {"target": "perhaps"}, "'target' parameter"),
        (cv.NoisyCounterfactual, {"stop": 0}, "'stop' parameter"),
        (cv.NoisyCounterfactual, {"explainer": cv.CFK()}, "'explainer' parameter"),
        (cv.PrivateHistograms, {"adjacency": "both"}, "'adjacency' parameter"),
        (cv.PrivateHistograms, {"records": 0}, "'records' parameter"),
        *[(kind, {"split": {"age": 1.0}}, "'split' parameter") for kind in EVERY],
        *[
            (kind, {"split": dict.fromkeys(("age", "city", "level", "ill", "income"), 0.0)}, "above 0")
            for kind in EVERY
        ],
        *[(kind, {"missing": ["income"]}, "'missing' parameter") for kind in EVERY],
        *[(kind, {"missing": "city"}, "'missing' parameter") for kind in EVERY],
    ],
)
def test_bad_parameters_are_named(kind, parameters, words):
    with pytest.raises(ParameterError, match=words):
        fitted(kind, **parameters)


@pytest.mark.parametrize("kind", EVERY)
def test_only_tables_are_protected(kind):
    with pytest.raises(ParameterError, match="must be a Table"):
        fitted(kind, small_table().frame)


def test_labels_are_never_learnt_from_the_rows():
    table = small_table()
    undeclared = cv.Table(table.frame, table.schema.with_column("ok", domain=None))
    with pytest.raises(cv.SchemaError, match="labels of the target 'ok' from somewhere other than the rows"):
        fitted(cv.PrivateNeighbours, undeclared)


def test_queries_with_fractions_in_a_whole_domain_are_explained():
    made = fitted(cv.PrivateNeighbours)
    rows = small_table(3).features.assign(age=[30.5, 40.0, 50.0])
    with pytest.raises(cv.SchemaError, match="Write its bounds with decimals"):
        made.explain(rows)


def test_a_noisy_table_protects_the_fitted_rows_only():
    with pytest.raises(ParameterError, match="the fitted table itself"):
        fitted(cv.DPTable).protect(small_table(10))


# What the table could give away at query time.


def with_row(table, **values):
    """The table with its first record changed."""
    frame = table.frame.copy()
    for name, value in values.items():
        column = frame[name].astype(float) if pd.api.types.is_numeric_dtype(frame[name].dtype) else frame[name].copy()
        column.iloc[0] = np.nan if value is None else value
        frame[name] = column
    return cv.Table(frame, table.schema)


SURPRISES = {
    "missing label": lambda t: with_row(t, city=None),
    "missing level": lambda t: with_row(t, level=None),
    "missing number": lambda t: with_row(t, income=None),
    "fraction among whole numbers": lambda t: with_row(t, age=30.5),
    "nobody with the wanted decision": lambda t: t.take(np.flatnonzero(t.frame["income"] < 20)),
    "one row": lambda t: t.take([0]),
}


@pytest.mark.parametrize("surprise", list(SURPRISES))
@pytest.mark.parametrize("pool", ["all", "sampled", "features"])
def test_no_record_changes_what_an_answer_looks_like(pool, surprise):
    rows = small_table(12, seed=1)
    plain = cv.PrivateNeighbours(pool=pool).fit(small_table(), small_model).explain(rows)
    odd = cv.PrivateNeighbours(pool=pool).fit(SURPRISES[surprise](small_table()), small_model).explain(rows)
    assert odd.counterfactuals.dtypes.equals(plain.counterfactuals.dtypes)
    assert odd.schema == plain.schema and odd.guarantee == plain.guarantee and odd.caveats == plain.caveats
    assert odd.provenance == plain.provenance
    assert ((odd.status == "already_favourable") == (plain.status == "already_favourable")).all()


@pytest.mark.parametrize("surprise", ["missing label", "missing number", "nobody with the wanted decision", "one row"])
def test_histograms_answer_whatever_the_table_holds(surprise):
    answers = fitted(cv.PrivateHistograms, SURPRISES[surprise](small_table()), records=50).explain(
        small_table(4, seed=1)
    )
    assert len(answers) == 4


@pytest.mark.parametrize("surprise", ["missing label", "missing number", "fraction among whole numbers"])
def test_a_noisy_table_looks_the_same_whatever_a_record_holds(surprise):
    usual, odd = small_table(), SURPRISES[surprise](small_table())
    a, b = (fitted(cv.DPTable, t).protect(t).to_frame() for t in (usual, odd))
    assert a.dtypes.equals(b.dtypes) and len(a) == len(b)


class Decided:
    """A model that decides about everybody alike, though it knows more than one label."""

    def __init__(self, labels, at):
        self.classes_, self._at = np.array(labels), at

    def predict(self, frame):
        return np.repeat(self.classes_[self._at], len(frame))


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (False, True)], ids=str)
@pytest.mark.parametrize(("at", "status"), [(0, "no_counterfactual"), (1, "already_favourable")])
def test_noisy_rows_that_are_all_decided_alike_end_in_no_error(labels, at, status):
    table = small_table()
    frame = table.frame.assign(ok=np.where(table.target == "yes", labels[1], labels[0]))
    target = cv.Table.from_frame(frame[["ok"]], target="ok").schema["ok"]
    columns = tuple(target if c.role == "target" else c for c in table.schema)
    known = cv.Table(frame, cv.Schema(columns, (labels[1],)))
    answers = cv.DPTableExplainer().fit(known, Decided(labels, at)).explain(small_table(4, seed=1).features)
    assert answers.status.tolist() == [status] * 4
    assert cv.Explanations.from_json(answers.to_json()).to_text() == answers.to_text()


class Fails(cv.NICE):
    """Fails at query time when the table holds somebody rich."""

    def explain(self, rows, *, progress=None):
        if self.table_.frame["income"].max() > 80 or len(rows) > 1:
            raise RuntimeError("there is somebody with an income above 80")
        return super().explain(rows, progress=progress)


def test_an_explainer_that_fails_because_of_the_table_does_not_show():
    answers = fitted(cv.NoisyCounterfactual, explainer=Fails()).explain(small_table(6, seed=1))
    assert len(answers) == 6 and "80" not in answers.to_json().split('"factuals"')[0]


def test_a_missing_label_is_a_level_where_that_is_declared():
    table = SURPRISES["missing label"](small_table())
    grid = Grid.of(table, "test", ["city"])
    assert grid.sizes.tolist() == [73, 4, 3, 2, 101]
    assert grid.codes(table.features)[0, 1] == 3 and Grid.of(table, "test").codes(table.features)[0, 1] == 0
    noisy = [fitted(cv.DPTable, table, epsilon=0.01, missing=["city"]).noisy_["city"].isna().any() for _ in range(5)]
    assert any(noisy)


def test_a_model_that_looks_at_the_batch_is_refused():
    def above_average(frame):
        income = frame["income"].to_numpy(dtype=float)
        return np.where(income > income.mean(), "yes", "no")

    with pytest.raises(cv.SchemaError, match="looking at the other rows"):
        cv.PrivateNeighbours().fit(small_table(), above_average)


def test_a_records_class_depends_on_its_content_alone(monkeypatch):
    # The place of a record in its batch follows from the record, whoever else is there.
    made = fitted(cv.PrivateNeighbours)
    codes = made.public_.grid.codes(small_table(200, seed=4).features)
    seen = {}

    def record_places(self, rows):
        for place, row in enumerate(map(tuple, rows)):
            if row in wanted:
                seen.setdefault(row, set()).add((place, len(rows)))
        return np.zeros(len(rows), dtype=np.int64)

    monkeypatch.setattr(public.Public, "decide", record_places)
    wanted = set(map(tuple, codes[:20])) - {tuple(made.public_.grid.default)}
    for rows in (codes, codes[:20], codes[:20][::-1], np.vstack([codes[:20], codes[:20]])):
        made.public_.classes_of(rows)
    assert len(seen) == len(wanted) and all(len(places) == 1 for places in seen.values())


def test_the_order_of_the_rows_leaves_no_trace():
    table = small_table()
    turned = table.take(np.arange(len(table))[::-1])
    a, b = (cv.PrivateNeighbours(random_state=1).fit(t, small_model) for t in (table, turned))
    rows = small_table(12, seed=1)
    assert a.explain(rows).to_json() == b.explain(rows).to_json()


def test_the_true_target_is_never_looked_at():
    table = small_table()
    flipped = cv.Table(table.frame.assign(ok=np.where(table.frame["ok"] == "yes", "no", "yes")), table.schema)
    rows = small_table(12, seed=1)
    for kind in (cv.PrivateNeighbours, cv.PrivateHistograms):
        a, b = (kind(random_state=1).fit(t, small_model).explain(rows).to_json() for t in (table, flipped))
        assert a == b


# Promises.


def test_answers_add_up_in_the_promise():
    promise = fitted(cv.PrivateNeighbours, epsilon=0.5).explain(small_table(12, seed=1)).guarantee
    assert promise.epsilon == 0.5 and promise.answers == 8 and promise.total == 4.0
    assert "8 answers, 4 in total" in str(promise) and "given a public model" in str(promise)
    assert promise.proof == "docs/decisions/dp-neighbours.md"


def test_every_proof_page_exists():
    root = next(p for p in Path(__file__).parents if (p / "pyproject.toml").is_file())
    for kind in EVERY:
        assert (root / kind().guarantee().proof).is_file()


def test_retrying_costs_twice():
    assert cv.NoisyCounterfactual(1.5, stop=0.1).guarantee().epsilon == 3.0
    answers = fitted(cv.NoisyCounterfactual, stop=0.1).explain(small_table(6, seed=1))
    assert any("must not be visible" in c for c in answers.caveats)


def test_giving_up_at_once_means_one_draw():
    answers = fitted(cv.NoisyCounterfactual, stop=1.0).explain(small_table(30, seed=1))
    assert (answers.status == "no_counterfactual").any()


def test_one_draw_serves_any_number_of_answers():
    made = fitted(cv.PrivateHistograms)
    rows = small_table(5, seed=1)
    assert made.explain(rows).to_json() == made.explain(rows).to_json()
    assert made.guarantee().over(1000).total == 1.0
    table = small_table()
    noisy = fitted(cv.DPTable, table)
    assert pickle.loads(pickle.dumps(noisy)).noisy_.equals(noisy.noisy_)


@pytest.mark.parametrize("kind", [cv.DPTable, cv.DPTableExplainer, cv.PrivateHistograms, cv.PrivateSynthetic])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_pickle_of_one_draw_names_nobody(kind, ordered):
    """Identifiers that were stored as ordered categories stood in it as levels, each of them."""
    table = small_table()
    ids = pd.Categorical(table.frame["id"], ordered=ordered)
    named = cv.Table.from_frame(
        table.frame.assign(id=ids),
        target="ok",
        favourable="yes",
        identifiers=["id"],
        domains={c.name: c.domain if c.numeric else list(c.values) for c in table.schema if c.public},
    )
    made = fitted(kind, named)
    held = [made, made.protect() if hasattr(made, "protect") else made.explain(small_table(3, seed=2))]
    assert not any(b"person-" in pickle.dumps(part) for part in held)


def test_every_query_is_drawn_afresh_even_an_equal_one():
    rows = pd.concat([small_table(12, seed=1).features.iloc[[0]]] * 40)
    answers = fitted(cv.PrivateNeighbours).explain(rows)
    assert len(answers.counterfactuals.drop_duplicates()) > 1


def test_a_seed_takes_the_promise_and_stays_untold():
    for kind in EVERY:
        made = kind(random_state=4242)
        assert isinstance(made.guarantee(), cv.NoGuarantee)
    answers = fitted(cv.PrivateNeighbours, random_state=4242).explain(small_table(3, seed=1))
    assert "4242" not in answers.to_json() and answers.provenance["parameters"]["random_state"] == "given"


class Quiet(cv.PrivateNeighbours):
    """Promises epsilon = 1 and spends a thousand."""

    def _learn(self, table, model, codes):
        super()._learn(table, model, codes)
        self.pool_ = Pool.of(self.public_.grid, "all", self.shares_, Fraction(1000), self.neighbours, 1, 1)


def test_a_broken_promise_refutes_itself():
    table = small_table()
    quiet = Quiet(neighbours=1)

    def again(t):
        return clone(quiet).fit(t, small_model).explain(small_table(4, seed=1))

    assert "epsilon >=" in quiet.guarantee().refute(again(table), table, again)
    assert quiet.guarantee().refute(again(table), table) is None


class Bare(cv.DPTable):
    """Promises noise and adds none."""

    def _learn(self, table):
        super()._learn(table)
        self.noisy_ = self.grid_.frame(self.grid_.codes(table.features))


def test_a_table_without_noise_refutes_itself():
    table = small_table()
    # Values on the grid, so that an unchanged record can be told.
    table = cv.Table(table.frame.assign(income=table.frame["income"].round(-1)), table.schema)
    bare = Bare().fit(table)
    found = bare.guarantee().refute(bare.protect(table), table, lambda t: Bare().fit(t).protect(t))
    assert found is not None


# Utility.


def test_noise_shrinks_with_the_budget():
    table = small_table(400)
    grid = Grid.of(table, "test")
    true = np.sort(grid.codes(table.features)[:, 4])
    errors = []
    for epsilon in (0.1, 10.0, 200.0):
        noisy = np.sort(grid.codes(fitted(cv.DPTable, table, epsilon=epsilon).noisy_)[:, 4])
        errors.append(np.abs(noisy - true).mean())
    assert errors[0] > errors[1] > errors[2]


def test_a_split_moves_noise_between_columns():
    table = small_table(400)
    split = {"age": 1.0, "city": 1.0, "level": 1.0, "ill": 1.0, "income": 1000.0}
    release = cv.DPTable(60.0, split=split).fit(table)
    columns = release.grid_.codes(table.features), release.grid_.codes(release.noisy_)
    gap = [np.abs(np.sort(columns[0][:, j]) - np.sort(columns[1][:, j])).mean() for j in (0, 4)]
    assert gap[1] < 0.5 < gap[0]


@pytest.mark.parametrize("pool", ["all", "features"])
def test_pools_lead_to_valid_answers(pool):
    rows = small_table(60, seed=1)
    answers = fitted(cv.PrivateNeighbours, pool=pool, features=3).explain(rows)
    asked = answers.status != "already_favourable"
    assert (answers.status[asked] == "found").mean() > 0.9
    assert (answers.after[answers.found] == "yes").all()


def test_with_almost_no_noise_answers_are_at_least_as_near_as_the_nearest_record():
    table, rows = small_table(), small_table(30, seed=1)
    private = cv.PrivateNeighbours(2000.0, neighbours=1).fit(table, small_model).explain(rows)
    plain = cv.NICE("none", justified=False, target="favourable").fit(table, small_model).explain(rows)
    a, b = (np.nanmean(cv.measure.recourse_cost(e)) for e in (private, plain))
    assert private.found.sum() == plain.found.sum() and a <= b + 0.05


def test_label_only_models_are_served():
    def label(frame):
        return np.where(small_model(frame)[:, 1] > 0.5, "yes", "no")

    for kind in KINDS:
        assert len(kind().fit(small_table(), label).explain(small_table(10, seed=1))) == 10


def test_any_other_class_can_be_the_aim():
    answers = fitted(cv.PrivateNeighbours, target="other").explain(small_table(20, seed=1))
    assert (answers.before[answers.found] != answers.after[answers.found]).all() and answers.found.any()
    assert not (answers.status == "already_favourable").any()


def test_a_noisy_table_feeds_any_explainer():
    table = small_table(200)
    made = fitted(cv.DPTable, table)
    answers = made.explain(small_table(10, seed=1), small_model, cv.NICE("none", target="favourable"))
    assert answers.guarantee == made.answers_guarantee() and answers.guarantee.answers is None
    labelled = made.labelled(small_model)
    assert set(labelled.frame["ok"]) <= {"yes", "no"} and "id" not in labelled.frame


def test_results_round_trip():
    for kind in KINDS:
        answers = fitted(kind).explain(small_table(5, seed=1))
        read = cv.Explanations.from_json(answers.to_json())
        assert read.guarantee == answers.guarantee and json.loads(answers.to_json())["guarantee"]["epsilon"] == 1.0


def test_progress_is_told():
    told = []
    fitted(cv.PrivateNeighbours).explain(small_table(300, seed=1), progress=lambda done, of: told.append((done, of)))
    assert told == [(256, 300), (300, 300)]
