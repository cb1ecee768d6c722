"""Domains from codebooks: public, whole, and enough for every private protector."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import countervail as cv
from countervail.core.errors import DataNotFoundError, ParameterError
from countervail.core.files.schema_file import read_schema
from countervail.protect.dp.grid import Grid

DOMAINS = {p.stem: p for p in sorted(Path(str(files("countervail.data") / "bundled" / "domains")).glob("*.toml"))}
PRIVATE = {
    "synthetic": lambda: cv.PrivateSynthetic(5.0, rows=300),
    "histograms": lambda: cv.PrivateHistograms(5.0, records=100),
    "neighbours": lambda: cv.PrivateNeighbours(5.0, neighbours=5),
    "noisy": lambda: cv.NoisyCounterfactual(5.0),
    "table": lambda: cv.DPTableExplainer(5.0),
}


def loaded(name):
    try:
        return cv.load(name, declared=True)
    except DataNotFoundError:
        pytest.skip(f"needs the rows of {name}, which is not on this machine")


def test_three_codebooks_are_bundled():
    assert set(DOMAINS) == {"acs_income_ca_2018", "default_credit", "heloc"}


@pytest.mark.parametrize("name", DOMAINS)
def test_every_column_of_a_codebook_is_public(name):
    assert all(c.public is not None for c in read_schema(DOMAINS[name]))


@pytest.mark.parametrize("name", DOMAINS)
def test_a_codebook_names_every_column_of_the_file(name):
    table = loaded(name)
    assert set(read_schema(DOMAINS[name]).names()) == set(table.schema.names())


def test_what_nobody_has_is_in_the_domain_too():
    # Levels as the file's description has them leave out a delay of one month in May and April: read off the rows.
    table = loaded("default_credit")
    assert table.schema["PAY_5"].levels == tuple(map(str, range(-2, 10)))
    assert "1" not in set(table.frame["PAY_5"]) and "9" not in set(table.frame["PAY_0"])


def test_special_values_of_heloc_keep_places_of_their_own():
    table = loaded("heloc")
    grid = Grid.of(table, "test")
    for j, axis in enumerate(grid.axes):
        if axis.numeric:
            assert axis.values[:4] == (-9, -8, -7, 0)
            places = table.features.iloc[:, j].clip(upper=0).map({-9: 0, -8: 1, -7: 2, 0: 3})
            assert np.array_equal(np.minimum(grid.codes(table.features)[:, j], 3), places)


@pytest.mark.parametrize("made", PRIVATE)
@pytest.mark.parametrize("name", DOMAINS)
def test_every_private_protector_runs(name, made):
    table = loaded(name)
    some, asking = table.take(np.arange(1_000)), table.take(np.arange(1_000, 1_400))
    model = cv.train_private_logistic(some, 50.0, random_state=0)
    refused = asking.take(model.predict(asking.features) != table.schema.favourable[0])
    answers = PRIVATE[made]().fit(some, model).explain(refused.features.iloc[:3])
    assert len(answers) == 3 and answers.guarantee.total >= 5.0


@pytest.mark.parametrize("name", ["zoo", "iris"])
def test_sets_without_a_codebook_say_so(name):
    try:
        with pytest.raises(ParameterError, match="no codebook is bundled"):
            cv.load(name, declared=True)
    except DataNotFoundError:
        pytest.skip(f"needs the rows of {name}, which is not on this machine")


def test_without_being_asked_for_domains_stay_as_in_the_file():
    try:
        table = cv.load("heloc")
    except DataNotFoundError:
        pytest.skip("needs the rows of heloc, which is not on this machine")
    assert table.schema["NumTotalTrades"].domain is None
