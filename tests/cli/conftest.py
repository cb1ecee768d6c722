"""What all tests of the commands share."""

import sys

import pytest

from countervail.cli import main


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
