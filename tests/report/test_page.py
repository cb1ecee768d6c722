"""Reports: escaped, well formed, self-contained, and the same every time."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import countervail as cv
from countervail.report import Fact, Page, Section, write_page
from countervail.report.explained_page import explained_page
from countervail.report.figures import bars, histograms
from countervail.report.page import render_page
from countervail.testing import small_model, small_table

EVIL = '<script>alert("x")</script>&\''
VOID = {"meta"}


class Reader(HTMLParser):
    """Checks that every tag closes, and collects text, tags and references."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.references, self.words = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.references += [v for k, v in attrs if k in ("href", "src", "xlink:href", "action", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @classmethod
    def of(cls, text):
        reader = cls()
        reader.feed(text)
        reader.close()
        assert reader.open == []
        return reader


def evil_page():
    return Page(
        EVIL,
        EVIL,
        [
            Section(EVIL, [EVIL], [Fact(EVIL, EVIL)], [EVIL], [[EVIL]], [EVIL], bars([EVIL], [1.0], EVIL), EVIL),
            Section("plain"),
        ],
        EVIL,
        EVIL,
    )


def self_contained(text):
    assert not re.findall(r"url\((?!#)", text)
    assert "@import" not in text
    return all(r.startswith("#") for r in Reader.of(text).references)


def test_every_text_is_escaped():
    page = Reader.of(render_page(evil_page()))
    assert "script" not in page.seen
    # Title, heading, lead, promise, section, paragraph, fact twice, header, cell, quotation, caption, footer, and the
    # bar's name and axis in the picture.
    assert sum(word.strip() == EVIL for word in page.words) == 15


def test_the_page_is_well_formed_and_self_contained():
    text = render_page(evil_page())
    assert text.startswith("<!doctype html>")
    assert self_contained(text)


def test_an_empty_section_leaves_only_its_heading():
    page = Reader.of(render_page(Page("t", "l", [Section("h")], "p")))
    assert not {"table", "figure", "blockquote", "footer"} & set(page.seen)


def test_a_page_is_written_whole(tmp_path):
    write_page(evil_page(), tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == render_page(evil_page())
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


DRAW = {
    "bars": lambda: bars(["a<b", "c&d", "cost_$_per_$", ""], [1.0, 2.5, 0.0, 3.0], "share"),
    "no bars": lambda: bars([], [], "share"),
    "histograms": lambda: histograms({"one": [1.0, 2.0, np.nan], "two": [0.5, 3.0, 3.0]}, "cost"),
    "one value": lambda: histograms({"one": [1.0]}, "cost"),
    "no value": lambda: histograms({"one": [np.nan], "two": []}, "cost"),
}


@pytest.mark.parametrize("picture", DRAW)
def test_a_picture_is_well_formed_self_contained_and_always_the_same(picture):
    text = DRAW[picture]()
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert text.startswith('<svg role="img" ')
    assert self_contained(text)
    assert DRAW[picture]() == text


def test_names_are_drawn_as_they_are():
    words = "".join(ElementTree.fromstring(DRAW["bars"]()).itertext())
    assert all(name in words for name in ("a<b", "c&d", "cost_$_per_$", "share"))


def test_the_page_of_explanations_tells_sentences_and_changes():
    e = cv.NICE(target="favourable").fit(small_table(), small_model).explain(small_table(150, seed=1))
    page = explained_page(e)
    text = render_page(page)
    assert self_contained(text)
    asked = int((e.status != "already_favourable").sum())
    assert f"The first 50 of {asked} are shown." in text
    assert len(page.sections[0].quotes) == 50 and page.sections[0].quotes[0] == next(x for x in e if x.found).to_text()
    assert page.promise == str(e.guarantee) and "found" in page.lead
    assert "person-" not in text


def test_a_long_page_shows_those_who_have_something_to_change():
    asked = small_table(200, seed=1)
    e = cv.CFK(k=3).fit(small_table(), small_model).explain(asked)
    done = (e.status == "already_favourable").sum()
    page = explained_page(e)
    assert done and f"{done} already favourable" in page.lead
    assert not any("already favourable" in q for q in page.sections[0].quotes)


def test_the_page_says_each_sentence_once_and_shows_what_changes():
    asked = small_table(20, seed=1)
    table = small_table()
    e = cv.CFK(k=5).fit(table, small_model).explain(asked)
    e = replace(e, caveats=("Mind the <gap>.",)).with_ids([f"case {i:02d}" for i in range(20)], "number")
    page = explained_page(e, language="de")
    text = render_page(page)
    assert text.count("<blockquote>") == 20 and "Mind the &lt;gap&gt;." in text
    assert all(text.count(f"case {i:02d}: ") == 1 for i in range(20))
    first = int(e.found.argmax())
    assert page.sections[1].heading == f"Erklärung 1: case {first:02d}"
    assert text.count('lang="de"') == 1 and text.count('lang="en"') == 1  # the promise is in English
    assert [s.heading for s in (page.sections[0], page.sections[-1])] == ["In Worten", "Was anders sein müsste"]
    assert list(page.sections[1].header) == ["Was", "Jetzt", "Stattdessen"] and "gefunden" in page.lead
    assert [row[0] for row in page.sections[1].rows] == [f"der Wert für „{n}“" for n in e[first].changes]
    assert page.sections[1].picture and not page.sections[1].quotes


def test_without_answers_there_is_no_picture():
    people = small_table(60, seed=1).features
    e = cv.NICE(target="favourable").fit(small_table(), small_model).explain(people)
    none = cv.NICE(target="favourable").fit(small_table(), small_model).explain(people[~e.found])
    assert [s.picture for s in explained_page(none).sections] == [""]


def test_on_a_phone_every_line_says_what_its_first_cell_is():
    page = Page("t", "l", [Section("s", header=("k", "classes", "NCP", "risk"), rows=[("5", "9", "1%", "2%")])], "")
    text = render_page(page)
    assert 'data-of="k">5' in text and '.stack td:first-child:not([data-of=""])::before' in text
