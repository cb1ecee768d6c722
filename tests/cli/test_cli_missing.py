"""Commands on rows without a label, damaged groups and figures that are not finite: one line, or JSON all the same."""

import json
from dataclasses import replace

import numpy as np
import pytest

import countervail as cv
from countervail.cli.shared.common import json_text, say_json
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small table as a file, and the same with three labels missing."""
    place = tmp_path_factory.mktemp("holes")
    table = small_table(120)
    holes = table.frame["ok"].where(~np.isin(np.arange(120), (3, 40, 77)))
    write_frame(table.frame, place / "people.csv")
    write_frame(replace(table, frame=table.frame.assign(ok=holes)).frame, place / "holes.csv")
    write_schema(table.schema, place / "people.toml")
    return place


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("explain", ("--method", "nice")),
        ("anonymize", ("--sweep", "k=2,5")),
        ("recommend", ("--people", "4", "--runs", "1", "--seeds", "1", "--audit-draws", "100")),
    ],
)
def test_missing_labels_end_in_one_line(run, folder, command, more):
    code, out, err = run(command, folder / "holes.csv", "--schema", folder / "people.toml", *more)
    last = [line for line in err.splitlines() if "No --model given" not in line]
    assert code == 2 and out == ""
    assert len(last) == 1 and last[0].startswith("countervail: The target column 'ok'")
    assert "missing label(s). Drop those rows" in last[0]


@pytest.mark.parametrize("text", ["no json", "[]", "3", '{"kind": "roster", "format": 3}', b"\xff\xfe{"])
def test_a_damaged_roster_ends_in_one_line_and_stays_as_it_is(run, folder, tmp_path, text):
    kept = tmp_path / "bad.json"
    kept.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = kept.read_bytes()
    words = ("explain", folder / "people.csv", "--schema", folder / "people.toml", "--previous", kept)
    code, out, err = run(*words)
    last = err.splitlines()[-1]
    assert code == 2 and out == "" and "Traceback" not in err
    assert last.startswith("countervail: The 'bad.json' is ") and "what --previous wrote" in last
    assert kept.read_bytes() == before


def test_what_is_not_finite_is_null(capsys):
    data = {"a": float("nan"), "b": [np.float64("inf"), np.int64(3)], "c": cv.KAnonymity(2), 4: {"x"}}
    say_json(data)
    out = capsys.readouterr().out
    assert out == json_text(data)

    def refuse(word):
        raise AssertionError(word)

    found = json.loads(out, parse_constant=refuse)
    assert found == {"a": None, "b": [None, 3], "c": {"k": 2, "against": "register", "centres": False}, "4": ["x"]}
