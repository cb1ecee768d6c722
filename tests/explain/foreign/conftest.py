"""What other tools wrote about German credit, recorded by the scripts in `tests/golden/foreign`."""

import json
from pathlib import Path

import pytest

import countervail as cv

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "foreign"
TRAIN = 600  # the rows before it are what the tools looked at


@pytest.fixture(scope="session")
def recorded():
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


@pytest.fixture(scope="session")
def everybody():
    return cv.load("german_credit")


@pytest.fixture(scope="session")
def people(everybody):
    return everybody.take(range(TRAIN))


@pytest.fixture(scope="session")
def strangers(everybody):
    return everybody.take(range(TRAIN, len(everybody)))


@pytest.fixture(scope="session")
def only(people):
    """The people with some of the columns."""

    def some(names):
        kept = [c for c in people.schema if c.name in names or c.role == "target"]
        frame = people.frame[[c.name for c in kept]]
        return cv.Table(frame, cv.Schema(tuple(kept), people.schema.favourable))

    return some
