"""The house stays tidy: rooms are small, names are unique, classes can be read in one sitting."""

import ast
import inspect
import sys
from collections import Counter
from pathlib import Path

import pytest

import countervail as cv
from countervail import registry
from countervail.testing import small_model, small_table

SRC = Path(cv.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
# What is asked of an answer, not how it is found: the same on every explainer.
CONSTRAINTS = {"immutable", "ranges", "monotone", "forbidden", "max_changes", "costs", "n_counterfactuals"}


def classes():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield path, node


def test_no_room_is_crowded():
    rooms = Counter(path.parent for path in FILES)
    assert {str(r.relative_to(SRC)): n for r, n in rooms.items() if n > (24 if r.name == "core" else 15)} == {}


def test_class_names_are_unique():
    names = Counter(node.name for _, node in classes())
    assert [n for n, count in names.items() if count > 1] == []


def test_classes_fit_on_a_few_screens():
    long = {node.name: node.end_lineno - node.lineno + 1 for _, node in classes()}
    assert {name: lines for name, lines in long.items() if lines > 300} == {}


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kinds in (
            registry.explainers(),
            registry.explanation_protectors(),
            registry.table_protectors(),
            registry.published(),
            registry.attacks(),
        )
        for kind in kinds.values()
    ],
)
def test_nobody_takes_more_than_fourteen_parameters(kind):
    assert len(set(inspect.signature(kind).parameters) - CONSTRAINTS) <= 14


def files_of(call):
    """The files of this package whose functions a call runs through."""
    seen = set()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(SRC)):
            seen.add(str(Path(frame.f_code.co_filename).relative_to(SRC)))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen


def walks():
    table, asked = small_table(), small_table(12, seed=1)
    protector, mondrian = cv.CFK(k=5).fit(table, small_model), cv.Mondrian(k=5).fit(table)
    protector.explain(asked)
    mondrian.protect(table)
    return {
        "CFK.fit": files_of(lambda: cv.CFK(k=5).fit(table, small_model)),
        "CFK.explain": files_of(lambda: protector.explain(asked)),
        "Mondrian.fit and protect": files_of(lambda: cv.Mondrian(k=5).fit(table).protect(table)),
    }


def test_walks_cross_as_few_files_as_the_page_on_architecture_says():
    page = (SRC.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    for walk, seen in walks().items():
        names = " and ".join(f"`{name}`" for name in walk.split(" and "))
        assert f"| {names} | {len(seen - {'testing/tables.py', '__init__.py'})} |" in page, sorted(seen)
