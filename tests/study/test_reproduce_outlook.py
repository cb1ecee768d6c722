"""Which full records are missing and how long they take: told by records and timed pieces, never typed."""

import re
from pathlib import Path

import pytest

from countervail.core.errors import SchemaError
from countervail.study import papers, reproduce
from countervail.study.reproduce.kept import KeptPieces
from countervail.study.reproduce.outlook import (
    TIMES,
    amount,
    like,
    missing_full,
    quick_seconds,
    read_times,
    write_times,
)
from countervail.study.reproduce.pages import index_page
from countervail.study.reproduce.record import write_record
from countervail.study.reproduce.result import NOBODY, Line, Reproduction, why
from countervail.study.reproduce.run import pieces_of
from countervail.study.reproduce.values import Piece

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "reproduce"


def recorded(folder, table, size, seconds):
    figure = {"value": 1.0, "low": 1.0, "high": 1.0, "n": 1}
    line = Line("row", "figure", "1", {"ours": figure}, "equal")
    about = {"seed": 0, "commit": "0" * 40}
    made = Reproduction("goethals", table, f"Table {table}", "a table", size, (line,), (), seconds, about)
    return write_record(made, folder, replace=False, picture=False)


@pytest.fixture
def records(tmp_path):
    """A folder with one quick record, which took a hundred seconds."""
    folder = tmp_path / "records"
    recorded(folder, "8", "quick", 100.0)
    return folder


def outlook(records, paper, table):
    return next(x for x in missing_full(records) if (x.paper, x.exhibit.id) == (paper, table))


def test_whatever_has_no_full_record_is_listed_and_nothing_else():
    listed = {(x.paper, x.exhibit.id) for x in missing_full(RECORDS)}
    every = {(p.id, e.id) for p in papers().values() for e in p.exhibits if e.entries is not None}
    there = {(p, t) for p, t in every if (RECORDS / f"{p}-{t}.json").is_file()}
    assert listed == every - there and listed and there
    page = index_page(RECORDS)
    assert all(f"| {x.paper} | {x.exhibit.name} |" in page for x in missing_full(RECORDS))


def test_without_timed_pieces_the_quick_run_is_scaled_by_what_there_is_to_do(records):
    found = outlook(records, "goethals", "8")
    quick, full = (pieces_of(papers()["goethals"].exhibit("8"), size) for size in ("quick", "full"))
    assert found.measured == 0 and found.seconds == pytest.approx(100 * 1000 / 40)
    assert sum(map(amount, full)) == 25 * sum(map(amount, quick))
    assert outlook(records, "goethals", "times").seconds is None
    assert "not known | nothing: there is no quick record" in index_page(records)


def test_a_timed_piece_stands_for_those_like_it(records, tmp_path):
    pieces = pieces_of(papers()["anonymous"].exhibit("5"), "full")
    store = KeptPieces.open(tmp_path / "store")
    first = next(p for p in pieces if dict(p.settings)["mechanism"] == "published-laplace")
    store.keep(store.path(first, 0, first.sets), {"figures": {}, "cpu_seconds": 7.0})
    assert write_times(records, tmp_path / "store").name == TIMES
    found = outlook(records, "anonymous", "5")
    assert (found.pieces, found.measured) == (10, 5)  # five splits of it; five of plain NICE are as much work
    assert found.alike and found.seconds == pytest.approx(10 * 7)
    assert "5 of 10 pieces, which were timed; the rest by the same work on the same data" in index_page(records)
    plain = next(p for p in pieces if dict(p.settings)["mechanism"] == "nice")
    store.keep(store.path(plain, 0, plain.sets), {"figures": {}, "cpu_seconds": 1.0})
    write_times(records, tmp_path / "store")
    assert outlook(records, "anonymous", "5").seconds == pytest.approx(5 * 7 + 5 * 1)
    # Another mechanism on the same data goes by what there is to do; nothing is known of another data set.
    assert outlook(records, "anonymous", "6").seconds == pytest.approx(5 * 4 + 5 * 1)
    assert outlook(records, "anonymous", "27").seconds is None


def test_times_of_an_earlier_store_stay(records, tmp_path):
    piece = pieces_of(papers()["goethals"].exhibit("4"), "full")[0]
    store = KeptPieces.open(tmp_path / "store")
    store.keep(store.path(piece, 0, piece.sets), {"figures": {}, "cpu_seconds": 2.0})
    write_times(records, tmp_path / "store")
    write_times(records, KeptPieces.open(tmp_path / "another").folder)
    assert read_times(records) == {like(piece): 2.0}


def test_a_full_record_ends_the_waiting(records, tmp_path):
    assert ("goethals", "4") in {(x.paper, x.exhibit.id) for x in missing_full(records)}
    write_record(reproduce("goethals", 4, size="full", store=tmp_path / "kept"), records, replace=False)
    assert ("goethals", "4") not in {(x.paper, x.exhibit.id) for x in missing_full(records)}


def test_quick_runs_add_up_and_what_tables_share_counts_once(records):
    assert quick_seconds(records) == pytest.approx(100)
    recorded(records, "preprint-fig4", "quick", 60.0)
    recorded(records, "preprint-fig5", "quick", 60.0)  # of the same pieces
    assert quick_seconds(records) == pytest.approx(160)


def test_of_a_full_record_alone_the_quick_part_counts(tmp_path):
    recorded(tmp_path, "8", "full", 100.0)
    assert quick_seconds(tmp_path) == pytest.approx(100 * 40 / 1000)


@pytest.mark.parametrize("text", ["{", "[]", '{"cpu_seconds": [1]}', '{"cpu_seconds": {"a": "b"}}'])
def test_a_damaged_list_of_times_is_said(records, text):
    (records.parent / TIMES).write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match="no list of times"):
        missing_full(records)


def test_work_grows_with_people_runs_and_what_is_listed():
    piece = Piece.of("private", people=20, runs=2, epsilons=(1.0, 5.0), split=3, set="adult")
    assert amount(piece) == 80 and amount(Piece.of("shallow", parts=0)) == 1
    assert like(piece) == like(Piece.of("private", people=20, runs=2, epsilons=(1.0, 5.0), split=4, set="adult"))
    assert like(piece) != like(Piece.of("private", people=20, runs=2, epsilons=(1.0,), split=3, set="adult"))


def test_where_nobody_was_answered_the_reason_is_that():
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    line = Line("epsilon 0.01", "Dist_rec", "0.73", {"ours": nothing}, "differs")
    assert why(line, {"": "another sample"}) == NOBODY
    some = {"value": 2.0, "low": 1.0, "high": 3.0, "n": 9}
    assert why(Line("a", "b", "9", {"ours": some}, "differs"), {"": "another sample"}) == "another sample"
    assert why(Line("a", "b", "2", {"ours": some}, "equal"), {"": "another sample"}) == ""


def test_the_page_has_minutes_and_hours_and_no_typed_ones():
    text = index_page(RECORDS)
    assert re.search(r"All quick runs together: \d+ minutes of one processor", text)
