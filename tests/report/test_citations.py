"""Papers are cited by authors and title: a number or a path of somebody's folder tells a reader nothing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    p
    for folder in ("src", "docs", "benchmarks", "tests")
    for ending in ("*.py", "*.md")
    for p in (ROOT / folder).rglob(ending)
    if p != Path(__file__).resolve()
)
NUMBERED = re.compile(r"paper[ _]0\d\d|shared/specs|\bspecs/", re.IGNORECASE)


@pytest.mark.parametrize("folder", ["src", "docs", "benchmarks", "tests"])
def test_papers_have_names(folder):
    held = [p for p in FILES if p.is_relative_to(ROOT / folder)]
    assert held
    assert [p.name for p in held if NUMBERED.search(p.name) or NUMBERED.search(p.read_text(encoding="utf-8"))] == []
