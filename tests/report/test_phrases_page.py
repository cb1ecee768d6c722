"""The guide's pages on words: what they show is what comes out."""

import re
import tomllib
from pathlib import Path

import pandas as pd

from countervail import Column, Explanations, KAnonymity, Phrases, Schema
from countervail.core.phrase import sentence
from countervail.core.words.catalogue import catalogue

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def page(name):
    return (GUIDE / f"{name}.md").read_text(encoding="utf-8")


def schema():
    text = "\n".join(re.findall(r"```toml\n(.*?)```", page("phrases"), re.DOTALL))
    return Schema.from_dict({"version": 1, **tomllib.loads(text)})


def say(before, after, language="en"):
    return sentence(before, after, schema(), "good", language)


def test_the_schema_of_the_page_speaks():
    assert say({"credit_amount": 12169}, {"credit_amount": 7582}) == (
        "If you asked for 4,587 DM less (from 12,169 to 7,582), your application would be approved."
    )
    assert say({"duration": 3}, {"duration": 4}).startswith("If you asked for 1 month more (from 3 to 4),")
    assert say({"employment": "<1"}, {"employment": ">=4"}).startswith(
        "If you had been in your job for 4 years or more (instead of less than a year),"
    )
    assert say({"telephone": False}, {"telephone": True}).startswith("If you had a telephone,")
    assert say({"credit_amount": 12169}, {"credit_amount": 7582}, "de") == (
        "Wenn Sie 4.587 DM weniger beantragt hätten (7.582 statt 12.169), würde Ihr Antrag bewilligt."
    )


def test_the_rows_of_the_table_say_what_comes_out():
    for key, shown in re.findall(r"\| (nothing|`[^|]*`) \| (If .*?)(?:, \.\.\.)? \|", page("phrases")):
        entry = {} if key == "nothing" else tomllib.loads(key.strip("`"))
        words = Phrases.from_dict("credit_amount", entry)
        column = Column("credit_amount", "numeric", unit=entry.get("unit", ""), phrases=words)
        text = sentence({"credit_amount": 12169}, {"credit_amount": 7582}, Schema((column,)), "good")
        assert text.startswith(shown)


def test_the_template_of_the_page_makes_letters(tmp_path):
    (template,) = re.findall(r"```html\n(.*?)```", page("explaining"), re.DOTALL)
    (tmp_path / "own.html.j2").write_text(template)
    column = Column("age", "numeric")
    label = pd.Series(["yes"], dtype=object)
    frames = pd.DataFrame({"age": [20]}), pd.DataFrame({"age": [30]})
    e = Explanations(*frames, pd.Series(["found"]), label, label, Schema((column,)), KAnonymity(5))
    (letter,) = e.to_letters(template=tmp_path / "own.html.j2")
    assert "<li>your age: 20, 30</li>" in letter and "Confidential" in letter


def test_the_page_lists_what_a_template_may_use():
    words = {n.removeprefix("letter.") for n in catalogue("en").templates if n.startswith("letter.")}
    listed = re.search(r"`words` \((.*?)\)", page("explaining"), re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", listed)) == words - {"date", "decision"}
