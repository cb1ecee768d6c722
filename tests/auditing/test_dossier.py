"""The dossier: everything on the page is in the JSON, edits are found, nothing of a person or of a script gets in."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.auditing import Audit, verify
from countervail.auditing.written.dossier import parts_of
from countervail.core.errors import DataNotFoundError, SchemaError
from countervail.core.rng import generator


def test_a_dossier_survives_its_file_and_verifies(rejected, tmp_path):
    path = tmp_path / "dossier.json"
    rejected.to_json(path)
    again = Audit.read(path)
    assert again.to_dict() == rejected.to_dict()
    assert verify(path.read_text()) == []


@pytest.mark.parametrize(
    "edit, says",
    [
        (lambda d: d["findings"][0]["counts"].update(hits=0), "do not follow from the counts"),
        (lambda d: d["findings"][0]["excess"].update(high=0.01), "do not follow from the counts"),
        (lambda d: d["decisions"][0].update(word="release"), "decisions do not follow"),
        (lambda d: d.update(verdict="release"), "verdict does not follow"),
        (lambda d: d["provenance"].update(expires="2020-01-01"), "expired"),
        (lambda d: d["provenance"].update(expires="soon"), "no date"),
        (lambda d: d["caveats"].append("all is well"), "digest"),
    ],
)
def test_an_edited_dossier_is_found_out(rejected, edit, says):
    data = rejected.to_dict()
    edit(data)
    problems = verify(json.dumps(data))
    assert any(says in p for p in problems) and any("digest" in p for p in problems)


def test_the_fields_for_people_may_be_filled_in(rejected):
    data = rejected.to_dict()
    data["fields"]["Residual risk accepted by"] = "A. Officer"
    assert verify(json.dumps(data)) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "countervail dossier", "version": 1}'])
def test_what_is_no_dossier_is_refused(text):
    with pytest.raises(SchemaError):
        verify(text)


def test_no_file_and_no_text_are_said(tmp_path):
    with pytest.raises(DataNotFoundError):
        Audit.read(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match="UTF-8"):
        Audit.read(tmp_path / "binary.json")


def test_page_and_paper_say_what_the_json_says(rejected, tmp_path):
    page = rejected.to_html(tmp_path / "dossier.html")
    assert (tmp_path / "dossier.html").read_text() == page
    for text in (rejected.verdict, rejected.promise["text"], *(f.attack for f in rejected.findings)):
        assert html.escape(text).replace("&#x27;", "&#39;") in page
    assert not re.search(r"(src|xlink:href|[^:]href)=.?http|url\(http|@import", page)
    rejected.to_pdf(tmp_path / "dossier.pdf")
    paper = (tmp_path / "dossier.pdf").read_bytes()
    assert paper.startswith(b"%PDF-") and len(paper) > 10_000


def test_every_drawing_has_words_and_a_table_behind_it(rejected):
    for part in parts_of(rejected):
        assert part.drawing is None or part.caption
    page = rejected.to_html()
    assert page.count("<svg") == page.count('role="img" aria-label=') > 0


def test_nothing_of_a_column_that_tries_to_run_gets_out_unescaped(tmp_path):
    rng, n = generator(0), 240
    evil = '<script>alert(1)</script>=cmd|"\x1b[31m'
    frame = pd.DataFrame(
        {evil: rng.integers(0, 50, n), "b": rng.choice(["<img src=x onerror=1>", "y"], n), "c": rng.normal(size=n)}
    )
    frame["ok"] = np.where(frame["c"] > 0, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=[evil, "b"])
    members, others = table.split(test_size=0.5, random_state=0)
    model = cv.NICE(target="favourable").fit(members, lambda f: np.where(f["c"] > 0, "yes", "no"))
    made = cv.audit(model, members, control=others, jobs=1, attacks=["linkage"], by="b", budget=None)
    page = made.to_html()
    assert "<script" not in page and "<img" not in page and "\x1b" not in page
    made.to_pdf(tmp_path / "d.pdf")


def test_no_value_of_a_person_stands_in_a_dossier(rejected, halves):
    members, _ = halves
    text = rejected.to_json()
    assert not any(name in text for name in members.frame["id"])
    incomes = members.frame["income"].map(lambda v: f"{v:.1f}")
    rare = [v for v in incomes[~incomes.duplicated(keep=False)] if len(v) > 4]
    assert not [v for v in rare if re.search(rf"(?<![\d.]){re.escape(v)}(?!\d)", text)]
