"""The demo's figures and pictures."""

import html
import json
import re
import sys
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

import countervail as cv
from countervail import report
from countervail.cli import main
from countervail.report.demo_page import demo_page, run_demo
from countervail.report.explained_page import explained_page
from countervail.report.page import render_page
from countervail.report.strips import FEW, coarse_shares, region_strip
from countervail.testing import small_model, small_table


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The command run once, whole: its exit code, what it said, its folder, and the summary behind it."""
    folder, said, kept = tmp_path_factory.mktemp("story") / "demo", StringIO(), []

    def remembered(**settings):
        kept.append(run_demo(**settings))
        return kept[0]

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
        patch.setattr(report.demo_page, "run_demo", remembered)
        patch.setattr(sys, "argv", ["countervail", "demo", "-o", str(folder)])
        with pytest.raises(SystemExit) as left:
            main()
    return left.value.code or 0, said.getvalue(), folder, kept[0]


def test_the_demo_shows_plain_explanations_exposing_people_and_private_ones_not(demo):
    summary = demo[-1]
    assert summary.plain.exposed.low > 0.5
    assert (summary.private.exposed.value, summary.private.people) == (0, 0)
    assert summary.private.smallest_set >= 10
    assert summary.private.pureness.value == 1
    page = render_page(demo_page(summary))
    assert all(text.split(":")[0] in page for text in summary.story)
    assert "<script" not in page


def test_the_demo_tells_its_story_and_writes_a_page(demo):
    code, out, folder, _ = demo
    assert code == 0 and "A random forest trained on 600 people refuses" in out and "10-anonymity" in out
    assert out.count("  If ") == 5
    assert "May the plain explanations leave? reject" in out and "May the k-anonymous ones leave? not shown" in out
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_the_page_of_the_demo_shows_no_value_of_few_people_but_in_its_sentences(demo):
    """Sentences are the answers themselves, of public data; pictures and tables show nobody's own values."""
    folder, summary = demo[2], demo[3]
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    for text in (*summary.sentences, summary.before, summary.after):
        page = page.replace(text, "")
    train, _ = cv.load("german_credit").split(test_size=0.4, random_state=0)
    amounts = train.frame["credit_amount"].value_counts()
    few = {str(v) for v in amounts.index[amounts < FEW]}
    assert not few & set(re.findall(r"\d+", re.sub(r"(?<=\d),(?=\d)", "", re.sub(r'="[^"]*"', "", page))))


def test_the_dossier_of_the_demo_shows_no_value_of_few_people(demo):
    folder, train = demo[2], cv.load("german_credit").split(test_size=0.4, random_state=0)[0]
    amounts = train.frame["credit_amount"].value_counts()
    few = {str(v) for v in amounts.index[amounts < FEW]}
    for name in ("dossier.html", "dossier.json"):
        text = html.unescape((folder / name).read_text(encoding="utf-8"))
        text = re.sub(r"[0-9a-f]{8,}|\d{4}-\d\d-\d\d\S*|\d*\.\d+", "", text) if name.endswith("json") else text
        text = re.sub(r'"(hits|n)(_control)?": \d+', "", text)  # how often an attack succeeds is nobody's amount
        plain = re.sub(r"(?<=\d),(?=\d)", "", re.sub(r'="[^"]*"', "", text))
        assert not few & set(re.findall(r"\b\d{4,}\b", plain)), name


@pytest.fixture
def quick(demo, monkeypatch):
    """The command gives what it gave when it was run whole."""
    audits = iter([cv.Audit.read(demo[2] / "dossier.json")] * 2)

    def again(answered, **_):
        for_both = (None, None, None, None)
        answered(*for_both)
        return demo[3]

    monkeypatch.setattr(report.demo_page, "run_demo", again)
    monkeypatch.setattr("countervail.auditing.audit", lambda *_, **__: next(audits))


@pytest.mark.usefixtures("quick")
def test_the_demo_tells_its_story_first_and_its_notes_behind(run, monkeypatch, tmp_path):
    from countervail.cli.shared import common

    told = []
    monkeypatch.setattr(common.out, "print", lambda text, **_: told.append(("out", str(text))))
    monkeypatch.setattr(common.err, "print", lambda text, **_: told.append(("err", str(text))))
    assert run("demo", "-o", tmp_path / "again")[0] == 0
    notes = [i for i, (where, text) in enumerate(told) if where == "err" and text.startswith("Note: ")]
    story = [i for i, (where, _) in enumerate(told) if where == "out"]
    assert notes and story and max(story) < min(notes)


@pytest.mark.usefixtures("quick")
def test_what_the_demo_is_warned_of_is_on_the_terminal_in_json_and_on_the_page(run, tmp_path):
    code, out, err = run("demo", "-o", tmp_path / "again", "--json")
    said, page = json.loads(out), html.unescape((tmp_path / "again" / "report.html").read_text(encoding="utf-8"))
    told = [line.removeprefix("Note: ") for line in err.splitlines() if line.startswith("Note: ")]
    assert code == 0 and told and all(any(t in n for n in said["notes"]) and t in page for t in told)
    assert any("more people" in t for t in told), told


def test_the_demo_is_told_at_once_that_its_folder_is_taken(run, monkeypatch, tmp_path):
    monkeypatch.setattr(report.demo_page, "run_demo", lambda **_: pytest.fail("the folder must be looked at first"))
    (tmp_path / "taken").write_text("")
    code, _, err = run("demo", "-o", tmp_path / "taken")
    assert code == 2 and "taken" in err and "Traceback" not in err


@pytest.mark.parametrize("name", ["age", "city", "level"])
def test_pictures_draw_no_bar_for_few_people(name):
    table = small_table(40)
    bins, heights = coarse_shares(table, name)
    assert len(bins) <= 8
    assert np.isin(np.round(heights * 10, 6), np.arange(11)).all()
    for b, h in zip(bins, heights):
        column = table.frame[name]
        inside = column.between(b.left, b.right) if hasattr(b, "left") else column == b
        assert h == 0 or inside.sum() >= FEW


def test_a_strip_marks_the_region_and_the_asker():
    table = small_table(200)
    e = cv.CFK(k=8).fit(table, small_model).explain(small_table(20, seed=2))
    one = e[int(np.flatnonzero(e.found)[0])]
    svg = region_strip(one, table)
    assert svg.count("<g ") == 3
    assert "#1f6f8b" in svg
    assert svg.count("<circle") == 3
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_a_page_of_explanations_has_sentences_and_pictures():
    table = small_table(200)
    e = cv.CFK(k=8).fit(table, small_model).explain(small_table(20, seed=2))
    page = render_page(explained_page(e))
    assert "the decision would be yes" in page
    assert page.count('role="img"') >= 2
    assert 'role="img"' in render_page(explained_page(cv.Explanations.from_json(e.to_json())))
