"""The shallow and the deep attack: against plain definitions, and on every kind of release."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.attack import Deep, Knowledge, Linkage, Shallow
from countervail.attack.deep import deep_value
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.guarantee import NoGuarantee

DOMAINS = {"a": list("uvw"), "b": [0, 1, 2, 3], "y": list("pq")}


@st.composite
def releases(draw, most=6):
    """Pattern tables over two conditions and a decision."""
    n = draw(st.integers(1, most))
    letters = st.frozensets(st.sampled_from("uvw"), min_size=1)
    spans = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
    labels = st.frozensets(st.sampled_from("pq"), min_size=1)
    cells = [{"a": draw(letters), "b": pd.Interval(*draw(spans), closed="both"), "y": draw(labels)} for _ in range(n)]
    return release(cells)


def release(cells):
    schema = cv.Schema((cv.Column("a"), cv.Column("b", "numeric"), cv.Column("y", role="target")))
    n = len(cells)
    return cv.Release(
        cv.Regions.from_cells(cells, schema), np.arange(n), pd.DataFrame(index=range(n)), schema, NoGuarantee("test")
    )


def plain_sets(found):
    """The value sets of each row, as Python sets."""
    return [
        {n: {v for v in DOMAINS[n] if _fits(v, c)} for n, c in row.items()}
        for row in found.to_frame().to_dict("records")
    ]


def _fits(value, cell):
    if isinstance(cell, pd.Interval):
        return cell.left <= value <= cell.right
    return value in cell if isinstance(cell, frozenset) else value == cell


def slow_shallow(rows, known, name):
    """The only value that all rows which can take the known values have in common, or None."""
    matching = [r for r in rows if all(v in r[n] for n, v in known.items())]
    left = set.intersection(*[r[name] for r in matching]) if matching else set()
    return left.pop() if len(left) == 1 else None


def slow_deep(rows, conditions, name):
    """Steps d1 to d4 by going through every set of rows."""

    def smallest(candidates):
        for size in range(1, len(candidates) + 1):
            for picked in combinations(candidates, size):
                joint = {n: set.intersection(*[r[n] for r in picked]) for n in (*conditions, name)}
                if all(joint[n] for n in conditions) and len(joint[name]) == 1:
                    return joint
        return None

    joint = smallest(rows)
    if joint is None:
        return None
    (value,) = joint[name]
    against = [r for r in rows if value not in r[name]]
    if any(all(r[n] & joint[n] for n in conditions) for r in against) or smallest(against) is not None:
        return None
    return value


def known_of(values, secret):
    return Knowledge(pd.DataFrame(values), pd.DataFrame(), tuple(secret), DOMAINS)


@given(releases())
def test_the_shallow_attack_follows_its_definition(found):
    rows = plain_sets(found)
    for name, secret in (("a", ("b", "y")), ("b", ("a", "y"))):
        guess = Shallow(known=1).guess(found, known_of({name: DOMAINS[name]}, secret))
        for i, value in enumerate(DOMAINS[name]):
            for s in secret:
                assert _none(guess[s][i]) == slow_shallow(rows, {name: value}, s)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=8, unique=True)
)
def test_the_deep_attack_never_contradicts_exhaustive_search(masks):
    rows = [{n: {v for v in range(3) if m >> v & 1} for n, m in zip("tbc", row)} for row in masks]
    assert deep_value(masks, 10**6) == slow_deep(rows, "bc", "t")


@given(releases(most=8))
def test_the_deep_attack_keeps_what_the_shallow_one_finds_and_adds_what_search_finds(found):
    rows = plain_sets(found)
    known = known_of({"a": DOMAINS["a"]}, ("b", "y"))
    shallow, deep = Shallow(known=1).guess(found, known), Deep(known=1).guess(found, known)
    for i, value in enumerate(DOMAINS["a"]):
        matching = [r for r in rows if value in r["a"]]
        # Conditions are compared where the decision is attacked; the decision is one of the domains here.
        for s, others in (("b", ("a", "y")), ("y", ("a", "b"))):
            expected = _none(shallow[s][i])
            if expected is None and matching:
                expected = slow_deep(_distinct(matching), others, s)
            assert _none(deep[s][i]) == expected


def _distinct(rows):
    seen = {}
    for r in rows:
        seen.setdefault(tuple(sorted((n, tuple(sorted(map(str, v)))) for n, v in r.items())), r)
    return list(seen.values())


def _none(value):
    return None if pd.isna(value) else value


def test_a_spent_budget_means_no_guess():
    rows = [(0b011, 1), (0b101, 1)]
    assert deep_value(rows, 10**6) == 0
    assert deep_value(rows, 2) is None


def test_a_rival_set_or_a_compatible_row_stops_the_deep_attack():
    assert deep_value([(0b001, 0b01), (0b010, 0b10)], 100) is None  # two values, each singled out
    assert deep_value([(0b001, 0b01), (0b110, 0b01)], 100) is None  # compatible with the other row
    assert deep_value([(0b001, 0b01), (0b110, 0b10)], 100) == 0


def everybody(table):
    regions = cv.Regions.from_cells(table.features.astype(object).to_dict("records"), table.schema)
    others = table.frame[[table.schema.target]]
    return cv.Release(regions, np.arange(len(table)), others, table.schema, NoGuarantee("raw"))


@pytest.mark.parametrize("attack", [Shallow("conditions"), Shallow("decision"), Deep("decision")], ids=str)
def test_the_original_table_tells_most(attack):
    table = cv.load("iris")
    half, other = table.take(np.arange(0, 150, 5)), table.take(np.arange(1, 150, 5))
    protected = cv.KCommonPatterns(k=5, objects="min", random_state=0).fit(half).protect(half)
    raw, safe = (attack.run(r, half, other) for r in (everybody(half), protected))
    assert raw.members.value > safe.members.value
    assert raw.members.value > 0.4


@pytest.mark.parametrize("by_class", [False, True])
def test_mondrian_releases_can_be_attacked(by_class):
    table = cv.load("iris")
    protector = cv.published.EqualHalvesMondrian(k=5, by_class=by_class, random_state=0)
    release = protector.fit(table).protect(table)
    decision = Shallow("decision").run(release, table, table)
    # M2 keeps the classes apart, M1 does not (Inuiguchi et al., Table 10, iris k=5: .733 and .000).
    assert (decision.members.value > 0.5) == by_class
    assert decision.set_sizes.min() >= 5


def test_the_figure_of_the_paper_counts_value_combinations():
    """Known: a; somebody with a=u has y=p, so the guess p is a success for the combination, for half of its people."""
    table = cv.Table.from_frame(
        pd.DataFrame({"a": ["u", "u", "v"], "b": ["s", "t", "t"], "y": ["p", "q", "q"]}), target="y"
    )
    patterns = cv.Regions.from_cells(
        [{"a": "u", "b": frozenset("st"), "y": "p"}, {"a": "v", "b": "t", "y": frozenset("pq")}], table.schema
    )
    found = cv.Release(patterns, np.arange(2), pd.DataFrame(index=range(2)), table.schema, NoGuarantee("test"))
    result = Shallow("decision", known=1).run(found, table, table)
    # a=u -> p (right for one of two); a=v -> p or q; b=s -> p (right); b=t -> p (wrong for the two people).
    assert result.detail["value combinations"].value == 2 / 4
    assert result.members.value == pytest.approx((2 / 2 + 0 / 2 + 0 / 2) / 3)


def test_deep_reports_its_own_share():
    """All three patterns fit a=u and share no class; the two that fit each other leave p, and the third no rival."""
    people = pd.DataFrame({"a": ["u", "u", "u"], "b": ["s", "t", "t"], "y": ["p", "q", "r"]})
    table = cv.Table.from_frame(people, target="y")
    cells = [("s", frozenset("pq")), ("s", frozenset("pr")), ("t", frozenset("qr"))]
    patterns = cv.Regions.from_cells([{"a": "u", "b": b, "y": y} for b, y in cells], table.schema)
    found = cv.Release(patterns, np.arange(3), pd.DataFrame(index=range(3)), table.schema, NoGuarantee("test"))
    result = Deep("decision", known=1).run(found, table, table)
    # The first person is found by both columns: b=s is enough for the shallow attack, a=u takes the deep one.
    assert result.detail["shallow"].value == pytest.approx((1 / 2) / 3)
    assert result.detail["deep only"].value == pytest.approx((1 / 2) / 3)
    assert result.members.value == pytest.approx(1 / 3)
    assert set(result.to_dict()["detail"]) >= {"shallow", "deep only", "value combinations"}


def test_guesses_see_no_more_than_is_known():
    table = cv.load("iris").take(np.arange(0, 150, 15))
    seen = []

    class Spy(Shallow):
        def guess(self, release, known):
            seen.append((release.audit, set(known.targets), set(known.register), set(known.secret)))
            return super().guess(release, known)

    Spy().run(cv.KCommonPatterns(k=2).fit(table).protect(table), table, table)
    assert seen
    assert all(audit is None and not (t | r) & s for audit, t, r, s in seen)


def test_linkage_works_on_a_table_release():
    table = cv.load("german_credit")
    raw = Linkage().run(_quasi_release(table), table, table)
    safe = Linkage().run(cv.Mondrian(k=5, random_state=0).fit(table).protect(table), table, table)
    assert raw.members.value > 0.8 and safe.members.value == 0


def _quasi_release(table):
    quasi = table.schema.names("quasi")
    regions = cv.Regions.from_cells(table.frame[quasi].astype(object).to_dict("records"), table.schema)
    others = table.frame[[n for n in table.schema.names() if n not in quasi]]
    return cv.Release(regions, np.arange(len(table)), others, table.schema, NoGuarantee("raw"))


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (Shallow("secrets"), "'attacked' parameter of Shallow"),
        (Shallow(known=0), "'known' parameter of Shallow must be a whole number from 1 to 3"),
        (Shallow(known=4), "'known' parameter"),
        (Deep(budget=0), "'budget' parameter of Deep"),
    ],
)
def test_bad_parameters_are_named(attack, words):
    table = cv.load("iris")
    with pytest.raises(ParameterError, match=words):
        attack.run(everybody(table), table, table)


def test_the_decision_needs_a_target():
    table = cv.Table.from_frame(pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2]}))
    with pytest.raises(SchemaError, match="needs a target"):
        Shallow("decision").run(release([{"a": "u", "b": 1, "y": "p"}]), table, table)
