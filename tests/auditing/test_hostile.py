"""Whatever stands in column names, values, file names or caveats, a dossier shows it as text and nothing else."""

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.attack.shared.planted import open_release
from countervail.auditing.finding import WorstGroup
from countervail.auditing.gate import GateResult, junit
from countervail.auditing.result import Audit, verify
from countervail.auditing.side_by_side import Contender, SideBySide
from countervail.auditing.written.pictures import trade_off_picture
from countervail.core.files.frames import write_frame
from countervail.report.figures import to_svg

PIECES = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</style><b>",
    "]]>",
    "<!--",
    "&amp;&#x3c;",
    "{{ 7*7 }}{% raw %}",
    "{nb}",
    "=cmd|' /C calc'!A0",
    "+1",
    "@SUM(A1)",
    "-2",
    "\t=1",
    "\r\n=1",
    "\x1b[31m",
    "\x00",
    "\x7f",
    "\u202eevil",
    "\u2066x\u2069",
    "\u2028",
    "\ufeff",
    "**bold**__u__",
    "(/JS (app.alert(1)))",
    "日本",
    "\U0001f600",
    "a" * 90,
]
hostile = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), min_size=1, max_size=3).map("".join)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Tags(HTMLParser):
    """How often each tag stands in a page, with which attributes; what a browser would run."""

    def __init__(self):
        super().__init__()
        self.found = Counter()

    def handle_starttag(self, tag, attrs):
        self.found[tag, tuple(sorted(name for name, _ in attrs))] += 1


def tags(page):
    parser = Tags()
    parser.feed(page)
    return parser.found


def with_text(audit, text):
    """The dossier with a text wherever names and values of others get into it."""
    first = replace(audit.findings[0], worst=WorstGroup(text, audit.findings[0].counts, 2), why=text, remarks=(text,))
    return replace(
        audit,
        asked={**audit.asked, "name": text, "by": text},
        leaves={**audit.leaves, "quasi_identifiers": [text], "others": [text]},
        promise={**audit.promise, "text": text},
        findings=(first, *audit.findings[1:]),
        decisions=tuple(replace(d, reasons=(text,)) for d in audit.decisions),
        caveats=(text,),
        provenance={**audit.provenance, "made": {"protector": text, "parameters": {text: text}}},
        beside={
            "groups": {
                text: {
                    "asked": 20,
                    "answered": first.counts.members.to_dict(),
                    "changes": first.counts.members.to_dict(),
                }
            },
            "influence": {"column": text, "why": text},
        },
    )


@pytest.fixture(scope="module", autouse=True)
def no_pictures():
    """Pictures hold names of attacks only, and take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("excess_picture", "sizes_picture", "roc_picture"):
            patch.setattr(f"countervail.auditing.written.dossier.{name}", lambda *_: None)
        patch.setattr("countervail.auditing.side_by_side.to_svg", lambda *_: "")
        patch.setattr("countervail.auditing.side_by_side.trade_off_picture", lambda *_: None)
        yield


@settings(max_examples=20, deadline=None)
@example("".join(PIECES))
@given(hostile)
def test_pages_keep_their_tags_and_show_no_control_characters(rejected, text):
    page = with_text(rejected, text).to_html()
    assert tags(page) == tags(with_text(rejected, "x" if text else "").to_html())
    assert not CONTROL.search(page)


@given(hostile)
def test_json_and_junit_hold_the_text_and_no_more(rejected, text):
    made = with_text(rejected, text).to_json()
    assert made.isascii() and json.loads(made)["caveats"] == [text]
    assert Audit.from_json(made).to_dict()["asked"]["name"] == text
    xml = ElementTree.fromstring(junit([GateResult(text, False, text), GateResult("b", True)]))
    assert [len(xml), len(list(xml.iter()))] == [2, 4] and not CONTROL.search(xml[0].get("name"))


@settings(max_examples=20, deadline=None)
@example("".join(PIECES))
@given(hostile)
def test_a_dossier_with_such_texts_is_verified_and_an_edit_of_one_is_found(rejected, text):
    named = replace(rejected, caveats=(text,), asked={**rejected.asked, "name": text, "by": text})
    made = named.to_json()
    assert verify(made) == []
    data = json.loads(made)
    data["caveats"] = [f"{text}!"]
    assert any("digest" in line for line in verify(json.dumps(data)))


@settings(max_examples=10, deadline=None)
@example("".join(PIECES))
@given(hostile)
def test_the_page_that_compares_keeps_its_tags(rejected, text):
    def page(words):
        spoilt = with_text(rejected, words)
        tried = Contender(words, spoilt, *(rejected.findings[0].counts.members,) * 3)
        return SideBySide((tried, Contender(words, why=words)), 200, 200).to_html()

    shown = page(text)
    assert tags(shown) == tags(page("x")) and not CONTROL.search(shown)


@settings(max_examples=5, deadline=None)
@example("=cmd|' /C calc'!A0<script>alert(1)</script>\x1b[31m\u202e")
@given(hostile)
def test_columns_and_values_with_such_texts_are_shown_as_text_by_the_whole_way(tmp_path_factory, text):
    plain, hostile_page = (_whole_way(words, tmp_path_factory) for words in ("x", text))
    assert tags(hostile_page) == tags(plain) and not CONTROL.search(hostile_page)


def _whole_way(text, tmp_path_factory):
    """A table whose column, label and file are so called, audited and written."""
    rng, name = np.random.default_rng(0), f"c{text}"
    frame = pd.DataFrame({name: rng.choice(["a", f"b{text}"], 120), "n": rng.integers(0, 9, 120), "y": ["u", "v"] * 60})
    table = cv.Table.from_frame(frame, target="y", quasi_identifiers=[name])
    members, others = table.split(test_size=0.5, random_state=0)
    made = cv.audit(
        open_release(members), members, control=others, by=name, attacks=["membership"], jobs=1, budget=None
    )
    path = tmp_path_factory.mktemp("whole") / "d.json"
    made.to_json(path)
    assert verify(path.read_text(encoding="utf-8")) == []
    return made.to_html()


@settings(max_examples=4, deadline=None)
@example("".join(PIECES))
@given(hostile)
def test_paper_runs_nothing(rejected, tmp_path_factory, text):
    path = tmp_path_factory.mktemp("pdf") / "d.pdf"
    with_text(rejected, text).to_pdf(path)
    paper = path.read_bytes()
    outside = re.sub(rb"stream\r?\n.*?endstream", b"", paper, flags=re.DOTALL)
    assert paper.startswith(b"%PDF-") and not re.search(rb"/(JS|JavaScript|Launch|URI|EmbeddedFile)\b", outside)


@example("+1-2")
@example("-3--1")
@example("-\u0663")
@example("-2\r")
@example("-.5%")
@given(hostile)
def test_no_cell_of_a_csv_begins_like_a_formula(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    write_frame(pd.DataFrame({text: [text, "x"]}), path)
    read = pd.read_csv(path, dtype=str, keep_default_na=False, header=None)
    number = r"[-+]?[0-9.,]*[0-9][0-9.,]*(e[-+]?[0-9]+)?%?"
    harmless = re.compile(rf"{number}( to {number})? *|[-+=@]")  # numbers, ranges, a mark that is all
    assert not [v for v in read[0] if v[:1] in tuple("=+-@\t\r") and not harmless.fullmatch(v)]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\x1b[31m\x00", "\u202eevil", "$\\frac{$", "]]>"])
def test_names_in_pictures_are_shown_as_text(text):
    drawn = to_svg(trade_off_picture([(text, 0.1, 0.0, 0.2, 1.0)], text), text)
    assert "<script" not in drawn and not CONTROL.search(drawn)
    ElementTree.fromstring(drawn)


def test_the_texts_are_hostile_enough(rejected):
    raw = "".join(PIECES)
    with pytest.raises(AssertionError):
        assert tags(f"<p>{raw}</p>") == tags("<p></p>")
