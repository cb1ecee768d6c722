"""A model that is the wrong way round is explained, but not in silence."""

import json
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.explain.agreement import _standardised
from countervail.report.explained_page import explained_page
from countervail.report.page import render_page
from countervail.testing import small_model, small_table

WORDS = "agree less often than by chance"


def inverted(frame):
    return small_model(frame)[:, ::-1]


def inverted_labels(frame):
    return np.where(small_model(frame)[:, 1] > 0.5, "no", "yes")


@pytest.mark.parametrize("model", [inverted, inverted_labels])
def test_an_inverted_model_is_warned_of_and_the_answers_say_so(model):
    with pytest.warns(cv.ModelWarning, match=f"target 'ok': the two {WORDS}"):
        nice = cv.NICE().fit(small_table(), model)
    e = nice.explain(small_table(5, seed=1))
    assert len(e.caveats) == 1 and WORDS in e.caveats[0]
    assert WORDS in json.loads(e.to_json())["caveats"][0]
    assert cv.Explanations.from_json(e.to_json()).caveats == e.caveats
    assert WORDS in render_page(explained_page(e))
    assert WORDS in e._repr_html_()


def test_a_model_that_is_read_right_has_no_caveat():
    assert cv.NICE().fit(small_table(), small_model).explain(small_table(5, seed=1)).caveats == ()


def test_a_refit_forgets_the_doubt():
    with pytest.warns(cv.ModelWarning):
        nice = cv.NICE().fit(small_table(), inverted)
    assert nice.fit(small_table(), small_model).explain(small_table(5, seed=1)).caveats == ()


def test_models_that_know_nothing_are_not_accused(seeds):
    for seed in seeds(300, 20_000):
        rng = np.random.default_rng(seed)
        n, classes = int(rng.integers(2, 200)), int(rng.integers(2, 5))
        shares = rng.dirichlet(np.ones(classes))
        said, truth = rng.choice(classes, n, p=shares), rng.choice(classes, n, p=rng.dirichlet(np.ones(classes)))
        assert _standardised(said, truth, classes) > -5


@pytest.mark.parametrize("seed", range(5))
def test_the_yardstick_is_that_of_shuffled_labels(seed):
    rng = np.random.default_rng(seed)
    said, truth = rng.integers(0, 3, 50), rng.choice(3, 50, p=[0.6, 0.3, 0.1])
    agreed = np.array([(rng.permutation(said) == truth).mean() for _ in range(20_000)])
    expected = ((said == truth).mean() - agreed.mean()) / agreed.std()
    assert _standardised(said, truth, 3) == pytest.approx(expected, abs=0.05)


def test_one_class_or_one_row_is_no_reason_for_doubt():
    assert _standardised(np.zeros(9, int), np.array([0, 1] * 4 + [1]), 2) == 0
    assert _standardised(np.array([1]), np.array([0]), 2) == 0


@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_regions_around_rows_come_with_the_doubt(search):
    with pytest.warns(cv.ModelWarning):
        protector = cv.CFK(k=4, search=search).fit(small_table(), inverted)
    assert any(WORDS in c for c in protector.explain(small_table(5, seed=1)).caveats)


@pytest.mark.parametrize(
    "protector", [cv.CFK(k=4), cv.CFK(k=4, search=cv.protect.GroupSearch(grouping="mondrian"))], ids=str
)
def test_whoever_may_not_ask_about_peoples_rows_does_not_compare(protector):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = protector.fit(small_table(), inverted).explain(small_table(5, seed=1))
    assert not any(WORDS in c for c in e.caveats)


@pytest.mark.parametrize(
    "kind", [cv.PrivateNeighbours, cv.PrivateHistograms, cv.DPTableExplainer, cv.NoisyCounterfactual]
)
def test_private_ones_do_not_compare(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = kind(epsilon=5.0).fit(small_table(), inverted).explain(small_table(5, seed=1))
    assert not any(WORDS in c for c in e.caveats)


class Turned:
    """The small model the wrong way round, in a file."""

    def predict(self, frame):
        return inverted_labels(frame)


def test_the_command_says_it_in_one_line(run, tmp_path):
    table = small_table()
    write_frame(table.frame, tmp_path / "people.csv")
    write_schema(table.schema, tmp_path / "people.toml")
    write_frame(small_table(4, seed=1).features, tmp_path / "asked.csv")
    joblib.dump(Turned(), tmp_path / "m.joblib")
    words = ["explain", tmp_path / "people.csv", "-s", tmp_path / "people.toml", "-r", tmp_path / "asked.csv"]
    code, _, err = run(*words, "-m", tmp_path / "m.joblib", "--allow-pickle", "--method", "nice")
    said = [line for line in err.splitlines() if WORDS in line]
    assert code == 0 and len(said) == 1 and said[0].startswith("The 'model' given to NICE")


def test_a_target_with_blanks_is_compared_where_it_is_known():
    table = small_table()
    frame = table.frame.assign(ok=table.frame["ok"].where(np.arange(len(table)) % 3 > 0))
    with pytest.warns(cv.ModelWarning):
        cv.NICE().fit(cv.Table(pd.DataFrame(frame), table.schema), inverted)
