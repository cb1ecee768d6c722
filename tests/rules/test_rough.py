"""Lower and upper approximations and reducts: the paper's example, plain twins, and what is refused."""

from itertools import combinations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.rules import approximate, reducts

TOY = cv.load("toy_evaluation")


@st.composite
def frames(draw):
    n = draw(st.integers(3, 12))
    cells = {
        "p": st.integers(0, 2),
        "c": st.sampled_from("ab"),
        "d": st.sampled_from(["x", "y", None]),
        "q": st.booleans(),
    }
    frame = pd.DataFrame({name: draw(st.lists(kind, min_size=n, max_size=n)) for name, kind in cells.items()})
    frame["q"] = frame["q"].map({True: "t", False: "f"})
    frame["y"] = draw(st.lists(st.sampled_from("uvw"), min_size=n, max_size=n))
    frame.loc[:1, "y"] = ["u", "v"]
    return frame


def blocks(frame, names):
    """For each row the rows that look the same."""
    rows = [tuple(map(str, r)) for r in frame[list(names)].itertuples(index=False)]
    return [[j for j, other in enumerate(rows) if other == row] for row in rows]


def by_definition(frame, names, union):
    alike = blocks(frame, names)
    held = [v in union for v in frame["y"]]
    return [all(held[j] for j in b) for b in alike], [any(held[j] for j in b) for b in alike]


def test_the_example_of_equation_1():
    """A = {occupation, domicile}: the lower approximation of `high` is {o1, o6}, the upper one {o1, o2, o3, o6}."""
    seen = approximate(TOY, "high", attributes=["occupation", "domicile"])
    assert (seen.lower.nonzero()[0] + 1).tolist() == [1, 6]
    assert (seen.upper.nonzero()[0] + 1).tolist() == [1, 2, 3, 6]
    assert (seen.boundary.nonzero()[0] + 1).tolist() == [2, 3] and seen.accuracy == 0.5


@given(frames(), st.frozensets(st.sampled_from("uvw"), min_size=1), st.frozensets(st.sampled_from("pcdq")))
def test_approximations_are_those_of_the_definition(frame, union, names):
    union = {c for c in union if c in set(frame["y"])} or {"u"}
    seen = approximate(frame[list("pcdq")], union, frame["y"], attributes=sorted(names))
    lower, upper = by_definition(frame, sorted(names), union)
    assert seen.lower.tolist() == lower and seen.upper.tolist() == upper


@given(frames(), st.frozensets(st.sampled_from("pcdq")))
def test_what_is_not_surely_in_a_union_is_possibly_outside(frame, names):
    classes = sorted(set(frame["y"]))
    rest = [c for c in classes if c != "u"]
    inside, outside = (approximate(frame[list("pcdq")], c, frame["y"], attributes=sorted(names)) for c in ("u", rest))
    assert (inside.lower == ~outside.upper).all() and (inside.upper == ~outside.lower).all()
    assert not (inside.lower & ~inside.upper).any() and 0 <= inside.accuracy <= 1


def preserves(frame, names):
    """Whether all approximations of all unions are those of all columns."""
    classes = sorted(set(frame["y"]))
    unions = [set(u) for size in range(1, len(classes) + 1) for u in combinations(classes, size)]
    return all(by_definition(frame, names, u) == by_definition(frame, "pcdq", u) for u in unions)


@given(frames())
def test_reducts_are_the_smallest_sets_of_columns_that_change_no_approximation(frame):
    kept = [set(c) for size in range(5) for c in combinations("pcdq", size) if preserves(frame, c)]
    smallest = {frozenset(c) for c in kept if not any(other < c for other in kept)}
    found = reducts(frame[list("pcdq")], frame["y"])
    assert {frozenset(r) for r in found} == smallest and len(found) == len(smallest)
    assert [len(r) for r in found] == sorted(len(r) for r in found)


def test_the_reducts_of_the_example():
    """By hand: o1 and o5 differ in the occupation alone, o2 and o3 in the sex alone; both together tell everybody."""
    assert reducts(TOY) == [("sex", "occupation")]


def test_columns_that_tell_nothing_give_the_empty_reduct():
    assert reducts(pd.DataFrame({"a": [1, 1]}), ["u", "v"]) == [()]


def test_german_credit_has_reducts_and_each_is_needed():
    table = cv.load("german_credit")
    some = reducts(table.frame[["duration", "purpose", "credit_amount", "age"]], table.target)
    assert some and all(len(r) <= 4 for r in some)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: approximate(TOY, "best"), "'classes' parameter of approximate must be one or several of"),
        (lambda: approximate(TOY, []), "'classes' parameter"),
        (
            lambda: approximate(TOY, "high", attributes=["salary"]),
            "'attributes' parameter of approximate must be among",
        ),
        (lambda: approximate(pd.DataFrame({"a": [1, 2]}), "u"), "'y' parameter of approximate"),
        (lambda: reducts(pd.DataFrame({"a": [1.0, None]}), list("uv")), "missing numbers in column 'a'"),
        (lambda: reducts(pd.DataFrame({"a": [frozenset("bc"), "b"]}), list("uv")), "cells hold ranges or sets"),
    ],
)
def test_what_cannot_be_answered_is_said(call, words):
    with pytest.raises(cv.CountervailError, match=words):
        call()
