"""Answers at the edge: sampled pureness says so, models that give labels only, groups stored in damaged files."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.protect import ExactSearch
from countervail.protect.cfk.base import SAMPLED
from countervail.testing import small_model, small_table


def rough(frame):
    """Every third age and the city c are refused: hardly a region is pure."""
    good = (frame["age"].to_numpy(float) % 3 > 0) & (frame["city"] != "c").to_numpy()
    return np.where(good, "yes", "no")


def test_a_region_taken_for_less_than_pure_says_that_its_pureness_was_sampled():
    table, asked = small_table(120), small_table(25, seed=3)
    whole = cv.CFK(k=8, search="exact", min_pureness=0.3).fit(table, rough).explain(asked)
    few = cv.CFK(k=8, search=ExactSearch(cell_budget=4), min_pureness=0.3).fit(table, rough).explain(asked)
    assert whole.found.any() and (whole.pureness[whole.found] < 1).any()
    assert not any(SAMPLED in note for note in whole.notes)
    impure = few.found & (few.pureness < 1)
    assert impure.any()
    assert all(SAMPLED in note for note, open_ in zip(few.notes, impure) if open_)


def test_a_noisy_table_explains_a_model_that_gives_labels_only():
    def words(frame):
        return np.where(small_model(frame)[:, 1] > 0.5, "yes", "no")

    made = cv.DPTable(epsilon=5.0, random_state=0).fit(small_table(200))
    asked = small_table(20, seed=1)
    answers = made.explain(asked, words)
    assert len(answers) == 20 and answers.found.any()
    assert (words(answers.counterfactuals[answers.found].reset_index(drop=True)) == "yes").all()


@pytest.mark.parametrize("text", ["not json", "[]", '{"kind": "explanations", "version": 1}'])
def test_explanations_are_read_from_whole_json_only(text):
    with pytest.raises(cv.SchemaError, match=r"Explanations\.from_json"):
        cv.Explanations.from_json(text)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"search": cv.protect.GroupSearch(grouping="mondrian")},
        {"l": 2, "sensitive": "ill"},
        {"search": "exact"},
        {"search": "grasp"},
    ],
    ids=str,
)
def test_whatever_the_table_a_row_without_an_answer_has_a_status(settings, seeds):
    """Small tables in which often nobody may be handed out: no candidate is eligible, or k is almost everybody."""
    seen = set()
    for seed in seeds(25, 1_000):
        rng = np.random.default_rng(seed)
        n, least = int(rng.integers(4, 25)), int(rng.integers(0, 6))
        frame = pd.DataFrame({"age": rng.integers(20, 28, n), "city": rng.choice(["a", "b", "c"], n)})
        frame = frame.assign(
            pay=rng.integers(0, 4, n), ill=rng.choice(["x", "y", None], n), ok=rng.choice(["no", "yes"], n)
        )
        frame.loc[:1, "ok"] = ["no", "yes"]
        table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age", "city"])

        def decide(rows, least=least):
            return np.where(rows["pay"].to_numpy(float) + (rows["city"] == "a").to_numpy() > least, "yes", "no")

        made = cv.CFK(k=int(rng.integers(2, n)), **settings)
        try:
            seen |= set(made.fit(table, decide).explain(table).status)
        except cv.ParameterError as error:
            assert "'l' parameter" in str(error)  # fewer illnesses than l asks for
    assert seen == {"found", "already_favourable", "no_counterfactual"}


def test_the_exact_search_takes_more_columns_than_numpy_keys_have():
    """Seventy quasi-identifiers, all but two of them equal for everybody: numpy counts in 64 at most."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 60), "pay": rng.integers(0, 9, 60)})
    frame = frame.assign(**{f"q{i}": "same" for i in range(68)}, ok=np.where(frame["pay"] > 4, "y", "n"))
    quasi = [n for n in frame.columns if n not in ("pay", "ok")]
    table = cv.Table.from_frame(frame, target="ok", favourable="y", quasi_identifiers=quasi)

    def model(rows):
        return np.where(rows["pay"].to_numpy() > 4, "y", "n")

    e = cv.CFK(k=3, search="exact").fit(table, model).explain(table.frame[table.schema.features].head(5))
    assert e.found.any() and int(e.regions.count(table.frame).min()) >= 3
