"""countervail holdout: controls for an audit, drawn by people."""

import json

import numpy as np
import pandas as pd
import pytest

from countervail.core.files.schema_file import write_schema
from countervail.core.schema import Column, Schema


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    days = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9_000, 240), unit="D")
    frame = pd.DataFrame(
        {
            "number": np.repeat([f"C{i:03}" for i in range(80)], 3),
            "born": days.strftime("%d/%m/%Y"),
            "zip": [f"0{z}" for z in rng.integers(1000, 1020, 240)],
            "pay": [f"{v:.2f}".replace(".", ",") for v in rng.lognormal(7, 0.3, 240)],
            "illness": rng.choice(["flu", "cold", None], 240),
        }
    )
    frame.to_csv(tmp_path / "people.csv", sep=";", index=False)
    columns = (
        Column("number", role="identifier"),
        Column("born", "date", "quasi", order="dmy"),
        Column("zip", role="quasi"),
        Column("pay", "numeric", "quasi"),
        Column("illness", role="sensitive"),
    )
    write_schema(Schema(columns), tmp_path / "people.toml")
    return tmp_path, frame


def asked(folder, *words, members="members.csv", control="others.csv"):
    given = ("holdout", folder / "people.csv", "-s", folder / "people.toml", "--decimal", ",")
    return (*given, "--members", folder / members, "--control", folder / control, *words)


def test_all_rows_of_a_person_are_on_one_side(run, people):
    folder, frame = people
    code, out, err = run(*asked(folder, "--share", 0.25))
    assert code == 0 and "60 people in 180 rows" in out and "20 people in 60 rows" in out
    assert "keep them with the table" in err
    members, others = (pd.read_csv(folder / n, dtype=str) for n in ("members.csv", "others.csv"))
    assert not set(members.number) & set(others.number)
    both = pd.concat([members, others]).sort_values(["number", "born", "zip"], ignore_index=True)
    was = frame.assign(
        born=pd.to_datetime(frame.born, format="%d/%m/%Y").dt.strftime("%Y-%m-%d"),
        pay=frame.pay.str.replace(",", ".").astype(float),
    ).sort_values(["number", "born", "zip"], ignore_index=True)
    pd.testing.assert_frame_equal(both.assign(pay=both.pay.astype(float)), was, check_dtype=False)


def test_what_was_held_out_is_a_control_for_an_audit(run, people):
    folder, _ = people
    assert run(*asked(folder))[0] == 0
    made = ("-s", folder / "people.toml")
    release = ("anonymize", folder / "members.csv", *made, "--k", 5, "-o", folder / "public.csv")
    assert run(*release)[0] == 0
    sides = ("--against", folder / "members.csv", "--control", folder / "others.csv", "--jobs", 1)
    code, out, err = run("audit", folder / "public.csv", *made, *sides, "--json")
    assert code in (0, 1), err
    assert json.loads(out)


def test_what_cannot_be_done_is_one_line(run, people):
    folder, _ = people
    for words, message in (
        (asked(folder, "--share", 1.5), "--share must be between 0 and 1"),
        (asked(folder, members="m.xlsx"), "must end in one of"),
    ):
        code, _, err = run(*words)
        assert code == 2 and message in err and "Traceback" not in err


def test_files_are_not_written_over_the_table(run, people):
    folder, _ = people
    before = (folder / "people.csv").read_bytes()
    assert run(*asked(folder, control="people.csv"))[0] == 2
    assert run(*asked(folder, control="members.csv"))[0] == 2
    assert (folder / "people.csv").read_bytes() == before
