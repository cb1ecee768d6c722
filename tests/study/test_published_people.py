"""Why Correctness falls as epsilon grows on Adult in the published tables: it depends on who asks."""

import warnings

import numpy as np
import pytest

import countervail as cv
from countervail.core.errors import DataNotFoundError
from countervail.model import train_paper_model


@pytest.fixture(scope="module")
def adult():
    """A sample of Adult as the paper has it, its forest, and people with a high and with a low income."""
    try:
        table = cv.data.paper_table("adult", coded=True)
    except DataNotFoundError:
        pytest.skip("the registered set adult is not on this machine")
    few, _ = table.split(test_size=len(table) - 6000, random_state=0)
    train, asking = few.split(test_size=0.3, random_state=0)
    model = train_paper_model(train, "forest", "adult", random_state=0)
    return train, model, asking.features, model.predict(asking.features)


def share(adult, now, epsilon):
    """How many of the people with this decision get another one by the answer."""
    train, model, people, said = adult
    rows = people[said == now].iloc[:400]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.PrivacyWarning)
        made = cv.published.LaplaceNoise(epsilon, target="other", random_state=0).fit(train, model)
    return float(np.mean(made.explain(rows).found))


def test_less_noise_means_fewer_valid_answers_only_for_people_with_a_high_income(adult):
    assert share(adult, ">50K", 10.0) < share(adult, ">50K", 0.01)
    assert share(adult, "<=50K", 10.0) > share(adult, "<=50K", 0.01)


def test_nice_is_near_to_people_with_a_high_income_alone(adult):
    # Reported: 0.13 +- 0.11. With all records it is that for the first and 0.5 for the others; here are fewer records.
    train, model, people, said = adult
    nice = cv.NICE("sparsity", target="other").fit(train, model)
    far = {now: np.nanmean(cv.measure.recourse_cost(nice.explain(people[said == now].iloc[:400]))) for now in set(said)}
    assert far[">50K"] < 0.25 and far["<=50K"] > 2 * far[">50K"]
