"""Release: what the outside sees of a table, stores and reads back."""

import json
import pickle
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import AllOf, KAnonymity, LDiversity, NoGuarantee, Region, Release, SchemaError, TCloseness
from countervail.core.errors import ParameterError
from countervail.core.files.frames import read_frame
from countervail.core.guarantee import guarantee_from_dict
from countervail.core.region import Regions

SCHEMA = cv.Schema(
    (
        cv.Column("pay", "numeric"),
        cv.Column("age", "numeric", "quasi"),
        cv.Column("city", role="quasi"),
        cv.Column("ill", "ordinal", "sensitive", levels=("none", "flu", "hiv")),
        cv.Column("ok", role="target"),
    ),
    ("yes",),
)


def span(low, high):
    return pd.Interval(low, high, closed="both")


def release(**changes):
    cells = [
        {"age": span(24, 27), "city": frozenset(["<b>a", "b"])},
        {"age": 30, "city": "c"},
        {"age": frozenset([span(1, 5), None]), "city": None},
        {"age": None, "city": frozenset(["c", None])},
    ]
    parts = {
        "regions": Regions.from_cells(cells, SCHEMA),
        "groups": np.array([0, 1, 0, 2, 1, 3, 3, 2]),
        "others": pd.DataFrame(
            {
                "pay": [1.5, 2, 3, 4, 5, 6, 7, 8],
                "ill": ["flu", "none", "hiv", "none", "none", "flu", "hiv", "flu"],
                "ok": ["yes", "no"] * 4,
            }
        ),
        "schema": SCHEMA,
        "guarantee": AllOf((KAnonymity(2), LDiversity(2, "distinct", "ill"))),
        "provenance": {"protector": "test", "parameters": {"k": 2}},
        "caveats": ("a <note>",),
        "audit": cv.Table.from_frame(pd.DataFrame({"age": [99], "ok": ["Xanthippe"]}), target="ok"),
    }
    return Release(**{**parts, **changes})


def test_the_frame_has_the_schemas_order_and_a_cell_of_its_class_in_every_row():
    frame = release().to_frame()
    assert list(frame.columns) == ["pay", "age", "city", "ill", "ok"]
    assert frame.index.equals(pd.RangeIndex(8))
    assert frame["age"].tolist()[:3] == [span(24, 27), 30, span(24, 27)]
    assert frame["city"].iloc[0] == frozenset(["<b>a", "b"])
    assert frame["age"].iloc[3] == frozenset([span(1, 5), None])


def test_a_column_that_is_nowhere_generalised_keeps_its_type():
    regions = Regions.from_cells([{"age": 3, "city": "a"}, {"age": 4, "city": "b"}], SCHEMA)
    frame = release(regions=regions, groups=np.array([0, 1] * 4)).to_frame()
    assert frame["age"].dtype == np.int64


def test_pickle_and_json_carry_everything_but_the_table():
    r = release()
    for copy in (pickle.loads(pickle.dumps(r)), Release.from_json(r.to_json())):
        assert copy.to_json() == r.to_json()
        assert copy.guarantee == r.guarantee
        assert copy.audit is None
        pd.testing.assert_frame_equal(copy.to_text_frame(), r.to_text_frame())
        np.testing.assert_array_equal(copy.classes(), r.classes())
    assert "Xanthippe" not in r.to_json() + repr(r) + r._repr_html_()
    assert r.without_audit().audit is None


def test_json_of_something_else_is_refused():
    with pytest.raises(SchemaError, match="does not hold a release"):
        Release.from_json('{"kind": "explanations", "version": 1}')


def test_html_is_escaped_and_well_formed():
    class Strict(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open_ = []

        def handle_starttag(self, tag, attrs):
            self.open_.append(tag)

        def handle_endtag(self, tag):
            assert self.open_.pop() == tag

    text = release()._repr_html_()
    Strict().feed(text)
    assert "&lt;b&gt;a" in text
    assert "<note>" not in text


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_files_hold_cells_as_people_read_them(tmp_path, ending):
    path = tmp_path / f"out{ending}"
    release().write(path)
    read = read_frame(path)
    assert read["age"].tolist()[:2] == ["24-27", "30"]
    assert read["city"].tolist()[:2] == ["{<b>a, b}", "c"]
    assert read["age"].iloc[3] == "{1-5, missing}"
    assert read["age"].isna().sum() == 2


def test_classes_with_equal_labels_are_one():
    regions = Regions.from_cells([{"age": 3, "city": "a"}, {"age": 3, "city": "a"}], SCHEMA)
    assert release(regions=regions, groups=np.array([0, 1] * 4)).classes().max() == 0


def test_the_measures_ask_for_the_table_after_reloading():
    with pytest.raises(SchemaError, match="Pass table="):
        release(audit=None).original_table()


def test_groups_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        release().groups[0] = 3


# ---------------------------------------------------------------- promises of tables


@pytest.mark.parametrize(
    "promise",
    [
        KAnonymity(3, against="algorithm"),
        LDiversity(2.5, "entropy", "ill"),
        LDiversity(2, "recursive", "ill", 3.0),
        TCloseness(0.25, "hierarchical", "ill", tree=(("a", "x", "*"), ("b", "x", "*"))),
        AllOf((KAnonymity(3), TCloseness(0.2, "equal", "ill"))),
        NoGuarantee("it is a test"),
    ],
)
def test_promises_round_trip(promise):
    assert guarantee_from_dict(json.loads(json.dumps(promise.to_dict()))) == promise


def test_promises_read_well():
    both = AllOf((KAnonymity(10), LDiversity(3, "distinct", "illness")))
    assert str(both) == (
        "10-anonymity and distinct 3-diversity of 'illness' against someone who holds a register of everybody's "
        "quasi-identifiers and sees the release."
    )
    mixed = AllOf((KAnonymity(10, against="algorithm"), TCloseness(0.2, "equal", "illness")))
    assert mixed.adversary is None
    assert str(mixed).count(" against ") == 2
    assert "recursive (3, 2)-diversity" in str(LDiversity(2, "recursive", "x", 3.0))


@pytest.mark.parametrize(
    ("promise", "broken"),
    [
        (KAnonymity(2), False),
        (KAnonymity(3), True),
        (LDiversity(1, "distinct", "ill"), False),
        (LDiversity(2, "distinct", "ill"), True),
        (LDiversity(1.5, "entropy", "ill"), True),
        (LDiversity(2, "recursive", "ill", 1.5), True),
        (LDiversity(2, "frequency", "ill"), True),
        (TCloseness(0.8, "equal", "ill"), False),
        (TCloseness(0.2, "equal", "ill"), True),
        (TCloseness(0.2, "ordered", "ill"), True),
        (AllOf((KAnonymity(2), LDiversity(2, "distinct", "ill"))), True),
    ],
)
def test_a_recount_finds_broken_classes_and_names_nobody(promise, broken):
    found = promise.recount(release())
    assert (found is not None) == broken
    if found is not None:
        assert " of 4 classes break " in found


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: LDiversity(2, "odd"), "kind"),
        (lambda: LDiversity(2, against="everybody"), "against"),
        (lambda: TCloseness(0.1, "odd"), "ground"),
        (lambda: AllOf(()), "parts"),
    ],
)
def test_promises_check_their_words(make, word):
    with pytest.raises(ParameterError, match=f"'{word}'"):
        make()


def test_a_refutation_counts_people_in_the_regions_too():
    """Two rows left in each class, but the register has nobody in one of the regions."""
    regions = Regions.from_cells([{"age": 3, "city": "a"}, {"age": 4, "city": "b"}], SCHEMA)
    table = cv.Table.from_frame(
        pd.DataFrame({"age": [3, 3, 3, 3], "city": ["a"] * 4}), quasi_identifiers=["age", "city"]
    )
    r = release(regions=regions, groups=np.array([0, 1] * 4))
    assert KAnonymity(2).recount(r) is None
    assert "fewer than k=2" in KAnonymity(2).refute(r, table)


def test_regions_of_a_release_are_regions():
    assert isinstance(release().regions[0], Region)


def test_a_table_without_the_regions_columns_refutes_nothing_in_silence():
    regions = Regions.from_cells([{"age": 3, "city": "a"}], SCHEMA)
    r = release(regions=regions, groups=np.zeros(8, dtype=np.int64))
    half = cv.Table.from_frame(pd.DataFrame({"age": [3] * 8}), quasi_identifiers=["age"])
    assert KAnonymity(2).refute(r, half) == "the regions name 1 column(s) that the table does not have"
    other = half.frame.assign(city=["a", *"bbbbbbb"])
    plain = cv.Table.from_frame(other, quasi_identifiers=["age"])
    assert "fewer than k=2" in KAnonymity(2).refute(r, plain)


@pytest.mark.parametrize("text", ["not json", "", "[]", "3", "null", '"release"', None])
def test_a_release_is_read_from_a_json_object_only(text):
    with pytest.raises(SchemaError, match=r"'text' given to Release.from_json is no JSON object.*Release.to_json"):
        Release.from_json(text)


WHOLE = json.loads(release().to_json())


@pytest.mark.parametrize(
    "change",
    [
        *({name: None} for name in WHOLE if name not in ("kind", "version")),
        {"groups": [0, 1]},
        {"groups": [0, 1, 0, 2, 1, 3, 3, 4]},
        {"groups": [0, 1, 0, 2, 1, 3, 3, -1]},
        {"regions": [{"name": "age"}]},
        {"others": {"pay": [1], "ok": [1, 2]}},
        {"guarantee": {"promise": "KAnonymity", "Xanthippe": 1}},
    ],
    ids=str,
)
def test_a_damaged_release_is_refused_without_its_values(change):
    with pytest.raises(SchemaError, match=r"given to Release.from_json is damaged.*Release.to_json\(\)") as caught:
        Release.from_json(json.dumps({**WHOLE, **change}))
    assert "Xanthippe" not in str(caught.value)
    lacking = {k: v for k, v in WHOLE.items() if k not in change}
    with pytest.raises(SchemaError, match="is damaged"):
        Release.from_json(json.dumps(lacking))
