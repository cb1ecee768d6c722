"""Every word of a public name stands in the glossary."""

import inspect
import re
from pathlib import Path

import pytest

import countervail as cv

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "glossary.md"
PLAIN = {"all", "of", "no", "at", "test", "result", "error", "point", "sampled", "refused", "parameter", "run", "load"}
GROUPS = ("attack", "measure", "published", "study")


def words(name):
    """The words of a name: `query_error`, `KCommonPatterns`."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z]|\b|_)|[A-Z]?[a-z]+|[A-Z]+|\d+", name)
    return {p.lower() for p in parts}


def public_names():
    names = {n for n in cv.__all__ if not n.endswith(("Error", "Warning")) and not inspect.ismodule(getattr(cv, n))}
    for group in GROUPS:
        module = getattr(cv, group)
        own = [n for n, o in vars(module).items() if callable(o) and not n.startswith("_")]
        names |= set(own)
    return sorted(names)


def entries():
    lines = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [(cells[1].strip(), cells[2].strip()) for cells in lines[1:]]


def known():
    text = " ".join(word for word, _ in entries()).lower()
    found = set(re.findall(r"[a-z0-9]+", text))
    return found | {w.removesuffix("s") for w in found} | {f"{w}s" for w in found}


@pytest.mark.parametrize("name", public_names())
def test_public_names_use_words_of_the_glossary(name):
    whole = name.lower() in known()
    assert whole or words(name) - PLAIN <= known()


def test_one_meaning_per_line_and_no_word_twice():
    found = [word for word, _ in entries()]
    assert len(found) == len(set(found))
    assert all(meaning for _, meaning in entries())
