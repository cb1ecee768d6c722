"""Records of benchmarks and studies belong to a commit; asking a script for help runs nothing."""

import argparse
import hashlib
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEED = ROOT / "benchmarks" / "speed"
RESULTS = ROOT / "benchmarks" / "results"
SCRIPTS = sorted(p for f in ("speed", "studies") for p in (ROOT / "benchmarks" / f).glob("[a-z]*.py"))
PAGES = (
    "explainers_page",
    "published_page",
    "synthetic_page",
    "tables_page",
)  # they write pages from records, and no record
# Taken from trees with uncommitted changes before such runs were refused. The list only shrinks.
TO_BE_RECORDED_ANEW = {
    "cfk.json",
    "dp_utility.json",
    "mondrian.json",
    "nice.json",
    "rules_study.json",
    "utility.json",
}
sys.path.insert(0, str(SPEED))

import _record  # noqa: E402
from _first_use_commands import check_complete  # noqa: E402


def run(script, monkeypatch, *words):
    """The script as if it were called, in this process."""
    monkeypatch.setattr(sys, "argv", [script.name, *words])
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(script), run_name="__main__")
    return stopped.value.code


def written():
    folders = [RESULTS, *(ROOT / "docs" / f for f in ("guide", "figures", "decisions"))]
    return {p: hashlib.sha256(p.read_bytes()).hexdigest() for f in folders for p in f.iterdir() if p.is_file()}


def ids(scripts):
    return [f"{p.parent.name}/{p.stem}" for p in scripts]


@pytest.mark.parametrize("script", SCRIPTS, ids=ids(SCRIPTS))
def test_asking_for_help_runs_nothing_and_writes_nothing(script, monkeypatch, capsys):
    before = written()
    assert run(script, monkeypatch, "--help") == 0
    assert "usage:" in capsys.readouterr().out
    assert written() == before


RECORDING = [p for p in SCRIPTS if p.stem not in PAGES]


@pytest.mark.parametrize("script", RECORDING, ids=ids(RECORDING))
def test_a_changed_tree_is_refused_before_the_run(script, monkeypatch):
    monkeypatch.setattr(_record, "uncommitted", lambda: ["src/countervail/new.py"])
    says = run(script, monkeypatch)
    assert "uncommitted changes" in says
    assert "--allow-uncommitted" in says


@pytest.mark.parametrize("words", [["--allow-uncommitted"], ["--quick"]])
def test_a_run_for_the_eye_writes_nothing(words, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_record, "uncommitted", lambda: ["src/countervail/new.py"])
    monkeypatch.setattr(sys, "argv", ["bench.py", *words])
    given = _record.parse(argparse.ArgumentParser(), tmp_path / "found.json", quick="few rows")
    _record.write(given, {"figure": 1})
    assert not (tmp_path / "found.json").exists()
    assert "Nothing written" in capsys.readouterr().out


def test_a_clean_tree_is_recorded(monkeypatch, tmp_path):
    monkeypatch.setattr(_record, "uncommitted", list)
    monkeypatch.setattr(sys, "argv", ["bench.py"])
    given = _record.parse(argparse.ArgumentParser(), tmp_path / "new" / "found.json")
    _record.write(given, {"figure": 1})
    assert json.loads((tmp_path / "new" / "found.json").read_text(encoding="utf-8")) == {"figure": 1}


def test_changes_of_code_and_scripts_count_and_records_do_not(monkeypatch, tmp_path):
    for name in ("src/a.py", "benchmarks/speed/b.py", "benchmarks/results/c.json", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(_record, "ROOT", tmp_path)
    (tmp_path / "benchmarks/results/c.json").write_text("2\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("2\n", encoding="utf-8")
    assert _record.uncommitted() == []
    (tmp_path / "src/new.py").write_text("2\n", encoding="utf-8")
    (tmp_path / "benchmarks/speed/b.py").write_text("2\n", encoding="utf-8")
    assert sorted(_record.uncommitted()) == ["benchmarks/speed/b.py", "src/new.py"]
    assert _record.code()["uncommitted_changes"]


def changed(data):
    """Whether a record, or a part that was taken later, says that its tree was changed."""
    if isinstance(data, dict):
        return data.get("uncommitted_changes") is True or any(changed(v) for v in data.values())
    return isinstance(data, list) and any(changed(v) for v in data)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda p: p.name)
def test_records_come_from_commits(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    assert "uncommitted_changes" in data
    listed = path.name in TO_BE_RECORDED_ANEW
    assert changed(data) == listed, f"take {path.name} off the list" if listed else "record it from a commit"


def test_the_list_names_records_that_exist():
    assert {p.name for p in RESULTS.glob("*.json")} >= TO_BE_RECORDED_ANEW


def test_every_command_is_timed():
    check_complete()


def test_a_single_repetition_of_the_rules_study_is_shown_without_an_interval(capsys):
    study = runpy.run_path(str(ROOT / "benchmarks" / "studies" / "rules.py"), run_name="rules")
    one = {"value": 0.94, "low": None, "high": None, "reported": 0.9287}
    study["show"]("iris", {f"k={k}": {"Ori": one} for k in study["REPORTED"]})
    assert "0.9400 " in capsys.readouterr().out
