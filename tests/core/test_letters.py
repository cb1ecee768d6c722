"""Letters, tables and identifiers: an answer reaches the person who asked, with nothing of anybody else."""

import datetime
import json
import re

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import Column, Explanations, KAnonymity, NoGuarantee, ParameterError, Phrases, RefusedError, Schema
from countervail.core.errors import DataNotFoundError
from countervail.core.words.catalogue import LANGUAGES
from countervail.core.words.letters import letter_names
from countervail.core.words.people import change_cost, nearest
from countervail.testing import small_model, small_table

SCHEMA = Schema(
    (
        Column("income", "numeric", unit="euros", phrases=Phrases(subject="your income")),
        Column("level", "ordinal", levels=("low", "mid", "high")),
        Column("ok", role="target", phrases=Phrases(labels={"no": "refused", "yes": "granted"})),
    ),
    ("yes",),
)


UPPER = frozenset(["mid", "high"])


def span(low, high):
    return pd.Interval(low, high, closed="both")


def answers(**changes):
    parts = {
        "factuals": pd.DataFrame({"income": [2100, 2100, 2100, 9000, 10], "level": ["low"] * 5}),
        "counterfactuals": pd.DataFrame(
            {
                "income": pd.Series([span(6000, 8000), 2100, 2100, None, None], dtype=object),
                "level": pd.Series(
                    ["low", frozenset(["mid", "high"]), frozenset(["mid", "high"]), None, None], dtype=object
                ),
            }
        ),
        "status": pd.Series(["found"] * 3 + ["already_favourable", "no_counterfactual"], dtype=object),
        "before": pd.Series(["no"] * 3 + ["yes", "no"], dtype=object),
        "after": pd.Series(["yes"] * 3 + [None] * 2, dtype=object),
        "schema": SCHEMA,
        "guarantee": KAnonymity(5),
        "query": np.array([0, 0, 0, 1, 2]),
    }
    return Explanations(**{**parts, **changes})


def named():
    return answers().with_ids(pd.Series(["0017", "A/../18", "19\x1b[31m"], name="application_id"))


def test_a_letter_tells_the_decision_the_changes_and_that_it_is_confidential():
    text = named().to_letters(sender="The Bank", date=datetime.date(2025, 3, 1))[0]
    assert text == (
        "The Bank\n\n1 March 2025\n\nYour reference: 0017\n\nReasons for a decision\n\nDear Sir or Madam,\n\n"
        "You asked for the reasons for our decision. It is: refused.\n\n"
        "This is what would have to be different for another decision:\n\n"
        "If your income were 3,900 to 5,900 euros higher (between 6,000 and 8,000 instead of 2,100), the\n"
        "decision would be granted.\n\n"
        "  What         Now          Instead\n"
        "  your income  2,100 euros  between 6,000 and 8,000 euros\n\n"
        "Or: if your level were mid or high (instead of low), the decision would be granted.\n\n"
        "  What        Now  Instead\n"
        "  your level  low  mid or high\n\n"
        "This says how the decision would come out if these details alone were different. It is no promise\n"
        "about a new application.\n\n"
        "Confidential: this answer is meant for you alone. It shows what you told us, so please keep it to\n"
        "yourself. It was made so that it points at no other person.\n\nYours faithfully\nThe Bank\n"
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_everybody_gets_a_letter_in_every_language(language):
    letters = named().to_letters(language, date=datetime.date(2025, 12, 31))
    private = {"de": "Vertraulich", "en": "Confidential", "fr": "Confidentiel", "nl": "Vertrouwelijk"}[language]
    assert len(letters) == 3 and all(private in text and "2025" in text for text in letters)
    assert not any("\x1b" in text or "\n\n\n" in text for text in letters)


def test_a_letter_holds_nothing_of_the_others():
    letters = named().to_letters()
    assert [n for n, text in enumerate(letters) if "0017" in text] == [0]
    assert [n for n, text in enumerate(letters) if "6,000" in text] == [0]
    table = small_table()
    e = cv.CFK(k=5).fit(table, small_model).explain(small_table(8, seed=1))
    both = {q: e.to_letters()[q] for q in range(8)}
    alone = [cv.CFK(k=5).fit(table, small_model).explain(small_table(8, seed=1).features.iloc[[q]]) for q in range(8)]
    assert [both[q] for q in range(8)] == [one.to_letters()[0] for one in alone]
    assert not any("person-" in text for text in both.values())


def test_answers_without_a_promise_go_into_no_letter():
    with pytest.raises(RefusedError, match="promise nothing: it is a test"):
        answers(guarantee=NoGuarantee("it is a test")).to_letters()


def test_a_template_of_ones_own_takes_the_place_of_ours(tmp_path):
    own = tmp_path / "own.html.j2"
    own.write_text(
        "<p>{{ id }}: {% for a in answers %}{{ a.text }}{% for c in a.changes %}[{{ c.now }}]{% endfor %}"
        "{% endfor %} {{ words.private }}</p>"
    )
    e = answers(
        schema=SCHEMA.with_column("level", levels=("low", "mid", "high"), phrases=Phrases(labels={"mid": "<b>"}))
    )
    text = e.with_ids(["<i>", "b", "c"]).to_letters(template=own)[0]
    assert text.startswith("<p>&lt;i&gt;: If your income") and "&lt;b&gt; or high" in text and "[2,100 euros]" in text
    assert letter_names(e, own) == ["0001.html", "0002.html", "0003.html"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ income }}", "'income' is undefined"),
        ("{% if %}", "cannot be read"),
        ("{{ answers.__class__.__mro__ }}", "unsafe"),
        ("{{ answers.append(1) }}", "unsafe"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ id + 1 }}", "TypeError"),
        ("{{ found | nothing }}", "cannot be read"),
    ],
)
def test_a_template_that_asks_for_more_is_refused(text, message, tmp_path):
    (tmp_path / "own.txt").write_text(text)
    with pytest.raises(ParameterError, match=message):
        answers().to_letters(template=tmp_path / "own.txt")


def test_a_template_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(DataNotFoundError, match="No letter template at"):
        answers().to_letters(template=tmp_path / "none.txt")
    (tmp_path / "own.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParameterError, match="UTF-8"):
        answers().to_letters(template=tmp_path / "own.txt")


def test_file_names_hold_what_a_file_name_can_hold():
    assert letter_names(named()) == ["0001-0017.txt", "0002-A_18.txt", "0003-19_31m.txt"]
    assert letter_names(answers()) == ["0001.txt", "0002.txt", "0003.txt"]


def test_identifiers_come_back_with_every_form_of_the_answer():
    e = named()
    assert e.to_frame()["application_id"].tolist() == ["0017"] * 3 + ["A/../18", "19\x1b[31m"]
    assert [line.split(": ")[0] for line in e.to_text().splitlines()] == ["0017", "Or", "A/../18", "19\\x1b[31m"]
    assert [p["id"] for p in json.loads(e.to_json())["people"]] == ["0017", "A/../18", "19\x1b[31m"]
    assert e.to_table()["application_id"].tolist() == ["0017"] * 3
    assert "<th>0017</th>" in e._repr_html_() and "<th>application_id</th>" in e._repr_html_()
    back = Explanations.from_json(e.to_json())
    assert back.to_json() == e.to_json() and back.ids.name == "application_id"


def test_the_table_of_changes_has_a_row_for_each():
    table = answers().to_table()
    assert list(table) == ["query", "answer", "feature", "what", "now", "instead", "decision"]
    assert table.iloc[0].tolist() == [
        0,
        1,
        "income",
        "your income",
        "2,100 euros",
        "between 6,000 and 8,000 euros",
        "yes",
    ]
    assert table["answer"].tolist() == [1, 2, 3]
    assert list(answers(status=pd.Series(["no_counterfactual"] * 5, dtype=object)).to_table()) == list(table)


@pytest.mark.parametrize(
    ("column", "value", "to", "cost"),
    [
        (Column("a"), "x", "y", 1.0),
        (Column("a", "numeric", domain=(0, 200)), 50, 100, 0.25),
        (Column("a", "numeric", domain=(0, 200, 8)), 100, 50.0, 0.25),
        (Column("a", "numeric", domain=(5, 5)), 5, 6, None),
        (Column("a", "numeric"), 50, 100, None),
        (Column("a", "numeric", domain=(0, 200), read=True), 50, 100, None),  # of the rows: it would tell about them
        (Column("a", "numeric"), None, 100, 1.0),
        (Column("a", "ordinal", levels=("x", "y", "z", "w")), "w", "y", 2 / 3),
        (Column("a", "ordinal", levels=("x", "y")), "y", None, 1.0),
        (Column("a", "ordinal", levels=("x", "y")), "old", "y", None),
        (Column("a", "ordinal"), "x", "y", None),
    ],
)
def test_a_change_costs_the_part_of_the_declared_range_that_it_crosses(column, value, to, cost):
    assert change_cost(value, to, column) == cost


def test_json_lists_the_changes_of_each_person_once():
    people = json.loads(answers().to_json())["people"]
    assert [p["status"] for p in people] == ["found", "already_favourable", "no_counterfactual"]
    assert [a["changes"] for a in people[0]["answers"]] == [
        [{"feature": "income", "from": 2100, "to": 6000, "cell": {"from": 6000, "to": 8000}, "cost": None}],
        [{"feature": "level", "from": "low", "to": "mid", "cell": {"any_of": ["high", "mid"]}, "cost": 0.5}],
    ]
    assert people[0]["answers"][0]["sentence"] == answers()[0].sentence
    assert people[0]["before"] == "no" and people[0]["answers"][0]["after"] == "yes"
    assert people[1]["answers"] == [] and "id" not in people[0]


def test_json_in_another_language_is_read_as_well():
    text = answers().to_json("de")
    assert json.loads(text)["language"] == "de" and "Wenn " in text
    assert Explanations.from_json(text).to_text() == answers().to_text()


def test_json_of_the_first_version_is_still_read():
    data = json.loads(answers().to_json())
    old = {n: v for n, v in data.items() if n not in ("ids", "language", "people")} | {"version": 1}
    assert Explanations.from_json(json.dumps(old)).to_text() == answers().to_text()
    with pytest.raises(cv.SchemaError, match="version 1 or 2"):
        Explanations.from_json(json.dumps({**old, "version": 3}))


@pytest.mark.parametrize("ids", [["a"], ["a", "b", None], []])
def test_identifiers_must_be_one_for_each_query(ids):
    with pytest.raises(ParameterError, match="one identifier for each of the 3 queries"):
        answers().with_ids(ids)


@pytest.mark.parametrize("name", ["income", "ok", "status"])
def test_an_identifier_is_called_unlike_what_is_explained(name):
    with pytest.raises(ParameterError, match="no column that is explained"):
        answers().with_ids(list("abc"), name)


@pytest.mark.parametrize(
    ("value", "cell", "near"),
    [
        (1, 3, 3), (1, span(2, 4), 2), (9, span(2, 4), 4), (None, span(2, 4), 2), (5, frozenset([1, 7]), 7),
        (3, frozenset([None, span(7, 9)]), 7), (3, None, None), (3, frozenset(), None),
    ],
)  # fmt: skip
def test_the_nearest_value_is_the_least_change(value, cell, near):
    assert nearest(value, cell, Column("x", "numeric")) == near


def test_the_nearest_level_is_the_one_of_least_steps():
    column = Column("x", "ordinal", levels=tuple("abcd"))
    assert nearest("a", frozenset("cdb"), column) == "b" and nearest("d", frozenset("ab"), column) == "b"
    assert nearest("z", frozenset("cb"), Column("x")) == "b"


def test_no_identifier_reaches_the_model():
    seen = set()

    def model(frame):
        seen.update(frame.columns)
        return small_model(frame)

    asked = small_table(5, seed=1).features
    e = cv.CFK(k=5).fit(small_table(), model).explain(asked).with_ids([f"secret {i}" for i in range(5)])
    assert "id" not in seen and e.ids is not None
    assert not re.search("secret", repr(e))
