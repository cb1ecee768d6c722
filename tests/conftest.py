"""What all tests share: how much is drawn at random, and one way to run a command."""

import gc
import sys

import pytest
from hypothesis import settings

import countervail as cv
from countervail.cli import main
from countervail.testing import small_model, small_table

# They write what other tools answer, where these tools are installed; and fixtures have no doctests.
collect_ignore_glob = ["golden/foreign/record_*.py", "*/conftest.py"]
# A slow machine is not a failure. The ordinary run draws the same examples each time, so that it says something about
# the change at hand; new ones are drawn with --long.
settings.register_profile("short", deadline=None, max_examples=50, derandomize=True, database=None)
settings.register_profile("long", deadline=None, max_examples=1_000)


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="draw as many random tables as a night has time for")


def pytest_configure(config):
    settings.load_profile("long" if config.getoption("--long") else "short")


def pytest_collection_finish():
    """Thousands of collected tests are not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def seeds(request):
    """How many random cases: `seeds(40, 500)` are 40 in an ordinary run, 500 with --long."""
    long = request.config.getoption("--long")
    return lambda few, many: range(many if long else few)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process: exit code, output, errors."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["countervail", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return call


QUICK_ATTACKS = ["linkage", "singling-out", "membership"]


@pytest.fixture(scope="session")
def halves():
    return small_table(400).split(test_size=0.5, random_state=0)


@pytest.fixture(scope="session")
def plain(halves):
    members, _ = halves
    return cv.NICE(target="favourable").fit(members, small_model)


@pytest.fixture(scope="session")
def rejected(halves, plain):
    members, others = halves
    return cv.audit(plain, members, control=others, jobs=1, attacks=QUICK_ATTACKS, budget=None)


@pytest.fixture(scope="session")
def kept(halves):
    members, others = halves
    return cv.audit(
        cv.CFK(k=10).fit(members, small_model), members, control=others, jobs=1, attacks=QUICK_ATTACKS, budget=None
    )
