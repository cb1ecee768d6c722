"""Reproductions: what is offered, that runs go on and are never mixed, and that records stay as they were."""

import json
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import countervail as cv
from countervail.core.errors import DataNotFoundError, ParameterError, SchemaError
from countervail.study import papers, reproduce
from countervail.study.reproduce import kept, record
from countervail.study.reproduce import run as running
from countervail.study.reproduce.catalogue import find_paper, missing
from countervail.study.reproduce.lessons import LESSONS
from countervail.study.reproduce.pages import paper_page, write_pages
from countervail.study.reproduce.result import Reproduction, rounding, verdict
from countervail.study.reproduce.together import HOW
from countervail.study.reproduce.values import Piece, printed
from countervail.testing import small_model, small_table

ROOT = Path(__file__).resolve().parents[2]
# Every table and figure that must be offered.
WANTED = {
    "goethals": [
        *map(str, range(1, 13)),
        "fig4",
        "fig5",
        "times",
        "forest",
        *(f"preprint-fig{i}" for i in range(4, 8)),
    ],
    "kassem": [*(f"fig{i}" for i in range(2, 11)), *map(str, range(1, 5))],
    "inuiguchi": [*map(str, range(1, 7)), *map(str, range(8, 13))],
    "anonymous": [*map(str, range(2, 9)), "10", "11", *map(str, range(13, 30)), "fig3", "fig4"],
}


@pytest.fixture
def without_data(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTERVAIL_DATA", str(tmp_path))
    monkeypatch.setattr("countervail.data.registry.places", lambda: [tmp_path])


@pytest.mark.parametrize("paper", WANTED)
def test_everything_that_is_asked_for_is_offered_and_shown(paper):
    offered = {e.id: e for e in papers()[paper].exhibits}
    assert set(WANTED[paper]) <= set(offered)
    page = (ROOT / "docs" / "studies" / f"{paper}.md").read_text(encoding="utf-8")
    for exhibit in offered.values():
        assert exhibit.entries is not None or exhibit.why_not
        assert f"## {exhibit.name}: {exhibit.title}" in page


def test_the_pages_are_those_of_the_records(tmp_path):
    for path in write_pages(ROOT / "benchmarks" / "results" / "reproduce", tmp_path):
        assert path.read_text(encoding="utf-8") == (ROOT / "docs" / "studies" / path.name).read_text(encoding="utf-8")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.title)
def test_every_finding_names_a_test_that_exists(lesson):
    path, _, name = lesson.test.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert lesson.paper in papers()


@pytest.mark.parametrize(
    ("paper", "table"),
    [*(("goethals", t) for t in ("1", "2", "4", "example")), *(("inuiguchi", t) for t in ("1", "2", "3", "5", "6"))],
)
def test_small_tables_come_out_as_printed(paper, table, tmp_path):
    found = reproduce(paper, table, size="tiny", store=tmp_path)
    assert {line.verdict for line in found.lines} == {"equal"}


def test_slips_of_the_text_are_said(tmp_path):
    found = reproduce("kassem", "examples", store=tmp_path)
    assert {line.row: line.verdict for line in found.lines}["TF of r1 for r_t"] == "equal"
    assert all("slip" in line.reason or "half" in line.reason for line in found.differing())
    assert len(found.differing()) == 4


@pytest.mark.parametrize(
    ("paper", "table"), [("goethals", "preprint-fig6"), ("anonymous", "fig4"), ("inuiguchi", "12")]
)
def test_a_tiny_one_of_each_paper_runs(paper, table, tmp_path):
    if missing(find_paper(paper).exhibit(table)):
        pytest.skip("its data are not on this machine")
    found = reproduce(paper, table, size="tiny", store=tmp_path)
    assert found.lines and found.about["seed"] == 0 and found.cpu_seconds > 0
    ElementTree.fromstring(found.plot())
    frame = found.to_frame()
    assert {"row", "figure", "reported", "ours", "low", "high", "reason"} <= set(frame.columns)
    assert Reproduction.from_dict(json.loads(found.to_json())).to_json() == found.to_json()


def test_unknown_papers_and_tables_are_told_what_there_is():
    with pytest.raises(ParameterError, match=r"goethals.*kassem.*inuiguchi.*anonymous"):
        reproduce("nobody", 1)
    with pytest.raises(ParameterError, match=r"There are: 1, 2, 3, 4, example"):
        reproduce("goethals", 99)
    with pytest.raises(ParameterError, match="cannot be reproduced: a drawing"):
        reproduce("kassem", "fig1")
    with pytest.raises(ParameterError, match="'size' parameter of reproduce"):
        reproduce("goethals", 4, size="huge")


@pytest.mark.parametrize("name", ["CF-K", "linkage", "goethals"])
def test_papers_go_by_several_names(name):
    assert find_paper(name).id == "goethals"
    assert find_paper(name).exhibit("Figure 4").id == "fig4"
    assert find_paper(name).exhibit("Table 6").id == "6"


def test_a_set_that_is_not_here_says_where_it_comes_from_and_what_runs_without(without_data):
    with pytest.raises(DataNotFoundError, match=r"Contraceptive.*Without it, these run: 1, 2, 3, 4, example, 8, fig4"):
        reproduce("goethals", "preprint-fig6")


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    done = []

    def work(piece, seed):
        done.append(piece)
        if len(done) == 3:
            raise KeyboardInterrupt
        return {"figures": {}, "cpu_seconds": 0.0}

    monkeypatch.setattr(running, "perform", work)
    pieces = [Piece.of("risk", number=i) for i in range(5)]
    store = kept.KeptPieces.open(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        running._all(pieces, 0, store, 1, None)
    told = []
    assert set(running._all(pieces, 0, store, 1, lambda n, of: told.append((n, of)))) == set(pieces)
    assert told[0] == (2, 5) and told[-1] == (5, 5)
    assert len(done) == 6  # the two finished ones were not done again


def test_pieces_of_another_version_are_refused(tmp_path, monkeypatch):
    kept.KeptPieces.open(tmp_path)
    monkeypatch.setattr(kept, "code_digest", lambda: "another")
    with pytest.raises(SchemaError, match="another version of the code"):
        reproduce("goethals", 4, store=tmp_path)


def test_a_damaged_piece_is_said(tmp_path):
    reproduce("goethals", 4, store=tmp_path)
    path = next(tmp_path.glob("toy-*.json"))
    path.write_text("{", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"damaged\. Delete it"):
        reproduce("goethals", 4, store=tmp_path)


def test_a_record_is_written_over_only_when_told(tmp_path):
    found = reproduce("goethals", 4, store=tmp_path / "kept")
    path = record.write_record(found, tmp_path / "out", replace=False)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="never written over unless --record"):
        record.write_record(found, tmp_path / "out", replace=False)
    assert path.read_bytes() == before
    assert record.read_record(record.write_record(found, tmp_path / "out", replace=True)) == found


def test_a_record_of_another_form_is_refused(tmp_path):
    found = reproduce("goethals", 4, store=tmp_path / "kept")
    path = record.write_record(found, tmp_path, replace=False)
    path.write_text(path.read_text(encoding="utf-8").replace('"format": 1', '"format": 2'), encoding="utf-8")
    with pytest.raises(SchemaError, match="Record it anew"):
        record.read_record(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(SchemaError, match="no record of a reproduction"):
        record.read_record(path)


def test_nothing_is_recorded_from_a_changed_tree(monkeypatch):
    monkeypatch.setattr(record, "checkout", lambda: ROOT)
    monkeypatch.setattr(record, "uncommitted", lambda: ["src/new.py"])
    with pytest.raises(ParameterError, match="uncommitted changes"):
        record.check_recordable()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "results" / "reproduce").glob("*.json")), ids=lambda p: p.stem
)
def test_records_come_from_commits_and_say_all_about_themselves(path):
    found = record.read_record(path)
    about = found.about
    assert not about["uncommitted_changes"] and len(about["commit"]) == 40 and len(about["code_sha256"]) == 64
    assert {"python", "countervail", "numpy"} <= set(about["versions"])
    exhibit = find_paper(found.paper).exhibit(found.id)
    assert set(about["data_sha256"]) == set(exhibit.needs)
    assert all(line.reason for line in found.differing())


@pytest.mark.parametrize(
    ("said", "ours", "word"),
    [
        ("0.55", {"value": 0.554, "low": 0.554, "high": 0.554, "n": 1}, "equal"),
        ("0.55", {"value": 0.9, "low": 0.5, "high": 1.3, "n": 9}, "within"),
        ("0.55", {"value": 0.9, "low": 0.8, "high": 1.3, "n": 9}, "differs"),
        ("0.55", {"value": None, "low": None, "high": None, "n": 0}, "differs"),
        ("rises", {"text": "rises"}, "equal"),
        ("rises", {"text": "falls"}, "differs"),
        (None, {"value": 1.0, "low": 1.0, "high": 1.0, "n": 1}, "ours alone"),
    ],
)
def test_verdicts_go_by_interval_and_rounding(said, ours, word):
    assert verdict(said, ours) == word
    assert rounding("100") == pytest.approx(0.5)


# Spot checks of the figures as printed: paper, table, row, figure, value.
@pytest.mark.parametrize(
    ("paper", "table", "row", "figure", "value"),
    [
        ("goethals", "6", "German", "NCP %", "21.41"),
        ("goethals", "12", "Informs", "CM", "0.33"),
        ("kassem", "3", "k=20", "largest d_pp", "0.512"),
        ("inuiguchi", "8", "zoo, k=10", "cT4", "0.6656"),
        ("inuiguchi", "11", "hayes-roth, k=4, deep", "M1", "0.3747"),
        ("anonymous", "4", "epsilon 5, K 10", "Dist_rec", "0.642"),
        ("anonymous", "21", "epsilon 10, K 20", "d_min", "0.34"),
        ("anonymous", "29", "epsilon 10", "Correctness %", "49.88"),
    ],
)
def test_printed_figures_are_the_papers(paper, table, row, figure, value):
    assert printed(paper)[table][row, figure] == value


def test_no_reading_of_internet_usage_gives_both_of_its_figures():
    found = [record.read_record(p) for p in (ROOT / "benchmarks" / "results" / "reproduce").glob("kassem-3*.json")]
    assert found
    for lines in ({(x.row, x.figure): x for x in r.lines} for r in found):
        share, largest = lines["k=5", "people above 10^-2.5 %"].ours, lines["k=20", "largest d_pp"].ours
        assert abs(share["labels in pairs"]["value"] - 35) < 2 and largest["labels in pairs"]["value"] < 0.512 / 4
        assert share["no hierarchies"]["value"] > 60 and abs(largest["no hierarchies"]["value"] - 0.512) < 0.1


def test_another_mondrian_takes_much_of_the_gap_away():
    folder = ROOT / "benchmarks" / "results" / "reproduce"
    tables, answers = (
        {(x.row, x.figure): next(iter(x.ours.values()))["value"] for x in record.read_record(p).lines}
        for p in (sorted(folder.glob("goethals-7*.json"))[0], sorted(folder.glob("goethals-6*.json"))[0])
    )
    assert tables["German", "NCP %"] < 59.55 * 2 / 3 and tables["Heart", "NCP %"] < 53.01 / 5
    assert all(answers[name, "NCP %"] < tables[name, "NCP %"] for name in ("German", "Heart"))


def test_printed_deep_attacks_fall_below_the_shallow_ones_they_contain():
    known = printed("inuiguchi")["12"]
    pairs = [(float(v), float(known[r.replace("shallow", "deep"), m])) for (r, m), v in known.items() if "shallow" in r]
    assert len(pairs) == 54 and sum(deep < shallow for shallow, deep in pairs) == 15


def test_the_local_search_of_the_text_finds_smaller_regions_than_their_code():
    table, asked = small_table(200), small_table(40, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.PrivacyWarning)
        text = cv.CFK(k=8, search="grasp", reward="none").fit(table, small_model).explain(asked)
        code = cv.published.GraspCFK(k=8).fit(table, small_model).explain(asked)
    both = text.found & code.found
    assert both.sum() > 5
    assert np.mean(cv.measure.ncp(text)[both]) < np.mean(cv.measure.ncp(code)[both])


def test_a_paper_without_records_says_how_to_record_it():
    paper = papers()["kassem"]
    assert "Not recorded yet: `countervail reproduce kassem 1 --record`" in paper_page(paper, {})


@pytest.mark.parametrize(("first", "second", "word"), [(1.0, 2.0, "lower"), (2.0, 1.0, "higher"), (2.0, 2.0, "equal")])
def test_two_figures_stand_beside_each_other_in_a_word(first, second, word):
    found = [{"figures": {"NCP %": {"value": v}}} for v in (first, second)]
    assert HOW["beside"](found, "NCP %") == {"text": word}


@pytest.mark.parametrize("table", ["preprint-fig4", "preprint-fig5"])
def test_what_the_preprint_says_of_its_figures_is_compared_on_every_set(table):
    entries = papers()["goethals"].exhibit(table).entries("quick")
    words = {b.row: b.printed for b in entries if b.figure == "mean of CF-K beside Mondrian's"}
    assert len(words) == 6 and words["Heart"] == ("lower" if table == "preprint-fig4" else "equal")
    assert words["Hospital"] == ("lower" if table == "preprint-fig4" else "higher")
