"""Files that somebody published: grouped by their cells, judged by counts."""

import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import KAnonymity, LDiversity, SchemaError, TCloseness
from countervail.core.files.frames import write_frame
from countervail.core.files.release_file import PublishedFile, cell_key, examine
from countervail.core.guarantee.diversity import Tally

SCHEMA = cv.Schema(
    (
        cv.Column("name", role="identifier"),
        cv.Column("age", "numeric", "quasi"),
        cv.Column("job", role="quasi"),
        cv.Column("ill", "ordinal", "sensitive", levels=("1", "2", "3")),
    )
)


def published(**columns):
    return PublishedFile.of(pd.DataFrame(columns), SCHEMA)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (24, 24.0),
        (0.0, -0.0),
        (frozenset(["a", "b"]), frozenset(["b", "a"])),
        (["b", "a"], np.array(["b", "a"])),
        (None, float("nan")),
        (None, pd.NA),
    ],
)
def test_cells_that_say_the_same_are_the_same(one, other):
    assert cell_key(one) == cell_key(other)


# Whoever reads the file sees two spellings, and may know which of them is somebody's.
SPELLINGS = [
    *[("1e3", "1000"), ("7", "07"), ("1_0", "10"), ("0.1", ".1"), ("1-2", "01-02"), ("24", "24.0"), ("24", " 24")],
    *[("Infinity", "infinity"), ("\u0661\u0662", "12"), ("{b,a}", "{a,b}"), ("{a, b}", "{a,b}"), ("+1", "1")],
    *[("24-27", "24 - 27"), ("1.0000000000000001", "1"), ("True", "1"), ("\u00e9", "e\u0301"), ("nan", "NaN")],
]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *SPELLINGS,
        ("24-27", "24-28"),
        ("*", None),
        ("missing", None),
        ("{a}", "a"),
        ("", "*"),
        (True, 1),
        (["b", "a"], ["a", "b"]),
        (frozenset(["a, b"]), frozenset(["a", "b"])),
        (2**53, 2**53 + 1),
    ],
)
def test_cells_that_differ_stay_different(one, other):
    assert cell_key(one) != cell_key(other)


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("column", ["age", "job"])
def test_a_crowd_of_one_is_found_however_its_value_is_spelt(one, other, ending, column, tmp_path):
    cells = {"age": ["1"] * 4, "job": ["a"] * 4} | {column: [one, one, one, other]}
    write_frame(pd.DataFrame(cells), tmp_path / f"a{ending}")
    found = PublishedFile.read(tmp_path / f"a{ending}", SCHEMA)
    assert examine(found, KAnonymity(2)).failing_rows == 1


def test_numbers_of_a_parquet_file_are_compared_as_numbers(tmp_path):
    frame = pd.DataFrame({"age": [0.0, -0.0, None, None, 0.1 + 0.2, 0.3], "job": ["a"] * 6})
    write_frame(frame, tmp_path / "a.parquet")
    assert PublishedFile.read(tmp_path / "a.parquet", SCHEMA).classes().tolist() == [0, 0, 1, 1, 2, 3]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_we_write_ourselves_is_recognised_as_equal(ending, tmp_path):
    table = cv.load("german_credit")
    release = cv.Mondrian(10).fit(table).protect(table)
    release.write(tmp_path / f"a{ending}")
    found = PublishedFile.read(tmp_path / f"a{ending}", table.schema)
    np.testing.assert_array_equal(found.classes(), pd.factorize(release.classes())[0])
    in_memory = PublishedFile.of(release.to_frame(), table.schema)
    np.testing.assert_array_equal(in_memory.classes(), found.classes())


def test_text_with_dots_and_dashes_is_no_range():
    schema = SCHEMA.with_column("ill", type="numeric")
    frame = pd.DataFrame({"age": [1, 2], "job": ["a", "a"], "ill": ["1.2.3-4", ".-."]})
    assert not PublishedFile.of(frame, schema).seems_patterns


def test_a_missing_cell_matches_a_missing_cell_only():
    found = published(age=["1-2", "1-2", None, None], job=["a", None, "a", None], ill=["1", "2", "3", "1"])
    assert examine(found, KAnonymity(2)).failing_classes == 4


def test_failing_classes_and_rows_are_counted():
    found = published(age=["1-2"] * 3 + [3, 3.0, 4], job=["a"] * 6, ill=list("123112"))
    verdict = examine(found, KAnonymity(3))
    assert (verdict.holds, verdict.reached, verdict.classes) == (False, 1.0, 3)
    assert (verdict.failing_classes, verdict.failing_rows) == (2, 3)
    assert examine(found, KAnonymity(1)).holds


def test_declared_levels_are_recognised_as_numbers():
    found = published(age=[1] * 4, job=["a"] * 4, ill=[1, 2, 3, 3])
    assert examine(found, TCloseness(0.0, "ordered", "ill")).holds


def test_identifiers_are_noticed():
    assert published(name=["x"], age=[1], job=["a"]).identifiers == ["name"]


def test_columns_that_the_schema_does_not_know_are_noticed():
    assert published(name=["x"], age=[1], job=["a"], mail=["y"]).undeclared == ["mail"]
    assert published(age=[1], job=["a"], ill=["1"]).undeclared == []


@pytest.mark.parametrize(
    ("columns", "patterns"),
    [
        ({"age": ["1-2", "1-3"], "job": ["a", "a"], "ill": ["{1, 2}", "1"]}, True),
        ({"age": ["1-2", "1-2"], "job": ["a", "a"], "ill": ["{1, 2}", "{1, 2}"]}, False),
        ({"age": ["1-2", "1-3"], "job": ["{a, b}", "a"], "ill": ["1", "2"]}, False),
        ({"age": ["1-2", "1-3"], "job": ["a", "a"], "ill": ["1-2", None]}, False),
    ],
    ids=["sets elsewhere", "rows repeat", "only quasi-identifiers", "a dash in a label"],
)
def test_patterns_have_wide_cells_beside_the_quasi_identifiers(columns, patterns):
    assert published(**columns).seems_patterns is patterns


def test_ranges_of_other_numbers_are_patterns_too():
    schema = SCHEMA.with_column("ill", type="numeric")
    frame = pd.DataFrame({"age": [1, 2], "job": ["a", "a"], "ill": ["10-20", "-3"]})
    assert PublishedFile.of(frame, schema).seems_patterns
    assert not PublishedFile.of(frame.assign(ill=["10", "-3"]), schema).seems_patterns


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"age": [1]}), r"lacks quasi-identifiers that the schema names: \['job'\]"),
        (pd.DataFrame({"age": [], "job": []}), "no rows"),
        (pd.DataFrame([[1, 2, 3]], columns=["age", "job", "job"]), "unique"),
    ],
)
def test_unfit_files_are_refused(frame, message):
    with pytest.raises(SchemaError, match=message):
        PublishedFile.of(frame, SCHEMA)


def test_an_unordered_column_has_no_ordered_distance():
    schema = SCHEMA.with_column("ill", type="categorical")
    found = PublishedFile.of(pd.DataFrame({"age": [1, 1], "job": ["a", "a"], "ill": ["x", "y"]}), schema)
    with pytest.raises(SchemaError, match="no order"):
        examine(found, TCloseness(0.1, "ordered", "ill"))


def test_the_tally_agrees_with_a_count_by_hand():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, m = int(rng.integers(1, 60)), int(rng.integers(1, 6))
        labels = pd.factorize(rng.integers(0, 5, n))[0].astype(np.int64)
        secret = pd.Series(rng.choice(list("abcdef")[:m], n))
        tally = Tally.of(labels, secret)
        everyone = Counter(secret)
        for c in range(labels.max() + 1):
            counts = Counter(secret[labels == c])
            total, ranked = sum(counts.values()), sorted(counts.values(), reverse=True)
            assert tally.sizes[c] == total
            assert tally.distinct()[c] == len(ranked)
            assert tally.entropy()[c] == pytest.approx(
                math.exp(-sum(x / total * math.log(x / total) for x in ranked)), abs=1e-9
            )
            assert tally.reached("frequency", 2)[c] == pytest.approx(total / ranked[0])
            for size in (1, 2, 3):
                tail = sum(ranked[size - 1 :])
                assert tally.recursive(size)[c] == (pytest.approx(ranked[0] / tail) if tail else math.inf)
            gaps = {v: counts[v] / total - everyone[v] / n for v in everyone}
            column = cv.Column("s", "ordinal", levels=tuple("abcdef"))
            equal = sum(abs(g) for g in gaps.values()) / 2 if len(everyone) > 1 else 0.0
            assert tally.distances("equal", column)[c] == pytest.approx(equal, abs=1e-9)
            steps = [sum(gaps[v] for v in sorted(everyone)[: i + 1]) for i in range(len(everyone))]
            ordered = sum(map(abs, steps)) / (len(everyone) - 1) if len(everyone) > 1 else 0.0
            assert tally.distances("ordered", column)[c] == pytest.approx(ordered, abs=1e-9)


def test_hierarchical_distance_of_a_textbook_case():
    """Two groups of two values: moving inside a group costs 1/2, between groups 1 (Li et al. 2007, section 5.2)."""
    tree = (("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*"))
    tally = Tally.of(np.array([0, 0, 1, 1]), pd.Series(list("abcd")))
    column = cv.Column("s")
    assert tally.distances("hierarchical", column, tree) == pytest.approx([0.5, 0.5])
    mixed = Tally.of(np.array([0, 0, 1, 1]), pd.Series(list("acbd")))
    assert mixed.distances("hierarchical", column, tree) == pytest.approx([0.25, 0.25])


def test_l_is_examined_on_the_release_alone():
    found = published(age=[1] * 4 + [2] * 4, job=["a"] * 8, ill=list("11231112"))
    assert examine(found, LDiversity(2, "distinct", "ill")).holds
    assert examine(found, LDiversity(2, "frequency", "ill")).failing_classes == 1
    assert examine(found, LDiversity(2, "recursive", "ill", 2.0)).failing_rows == 4


@pytest.mark.parametrize("tree", [None, ()])
def test_the_hierarchical_distance_needs_its_hierarchy(tree):
    found = published(age=[1] * 2 + [2] * 2, job=["a"] * 4, ill=list("1122"))
    with pytest.raises(SchemaError, match=r"needs the hierarchy of column 'ill'.*tree="):
        examine(found, TCloseness(0.5, "hierarchical", "ill", tree=tree))


def test_values_that_the_hierarchy_misses_are_counted_and_not_shown():
    found = published(age=[1] * 2 + [2] * 2, job=["a"] * 4, ill=list("1123"))
    promise = TCloseness(0.5, "hierarchical", "ill", tree=(("1", "*"),))
    with pytest.raises(SchemaError, match="hierarchy of column 'ill' misses 2 of its 3 values"):
        examine(found, promise)


def test_a_verdict_is_json_where_the_figure_is_infinite():
    found = published(age=[1] * 2, job=["a"] * 2, ill=list("11"))
    verdict = examine(found, LDiversity(2, "recursive", "ill", 2.0))
    assert verdict.reached == math.inf
    assert json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["reached"] is None
