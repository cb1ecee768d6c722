"""What all tests share: how many examples hypothesis draws, and one way to run a command."""

import sys

import pytest
from hypothesis import settings

from countervail.cli import main

# A slow machine is not a failure; the number of examples keeps the whole set short.
settings.register_profile("countervail", deadline=None, max_examples=50)
settings.load_profile("countervail")


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
