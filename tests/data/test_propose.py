"""Proposed schemas: guesses with reasons, that load the file they were made from and name nobody."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.files.frames import read_frame
from countervail.core.files.schema_file import schema_toml, write_schema
from countervail.data import propose_schema
from countervail.data.public_grid import public_grid

RNG = np.random.default_rng(0)


def people(n=40):
    return pd.DataFrame(
        {
            "customer_no": RNG.permutation(n),
            "token": [f"t{i:03d}" for i in range(n)],
            "age": RNG.integers(23, 67, n),
            "birthCountry": RNG.choice(["BE", "NL"], n),
            "diagnosis": RNG.choice(["a", "b", "c"], n),
            "amount": RNG.normal(0, 1, n),
            "flag": RNG.integers(0, 2, n),
            "level": pd.Categorical(RNG.choice(["lo", "hi"], n), ["lo", "hi"], ordered=True),
            "approved": ["yes", "no"] * (n // 2),
        }
    )


def test_roles_and_types_are_guessed():
    schema = propose_schema(people()).schema
    assert {c.name: (c.type, c.role) for c in schema} == {
        "customer_no": ("numeric", "identifier"),
        "token": ("categorical", "identifier"),
        "age": ("numeric", "quasi"),
        "birthCountry": ("categorical", "quasi"),
        "diagnosis": ("categorical", "sensitive"),
        "amount": ("numeric", "attribute"),
        "flag": ("categorical", "attribute"),
        "level": ("ordinal", "attribute"),
        "approved": ("categorical", "target"),
    }
    assert schema["level"].levels == ("lo", "hi")
    assert schema["flag"].domain == (0, 1)


def test_every_guess_has_its_reason():
    proposal = propose_schema(people())
    assert set(proposal.reasons) == set(proposal.schema.names())
    for column in proposal.schema:
        why = proposal.reasons[column.name]
        assert why.startswith(column.type)
        assert {"quasi": "quasi-identifier"}.get(column.role, column.role) in why


def test_the_target_is_as_told():
    proposal = propose_schema(people(), "diagnosis")
    assert proposal.schema.target == "diagnosis"
    assert "as told" in proposal.reasons["diagnosis"]
    with pytest.raises(cv.SchemaError, match="'goal' is not a column"):
        propose_schema(people(), "goal")


def test_no_reason_and_no_domain_of_an_identifier_holds_a_value():
    proposal = propose_schema(people())
    assert proposal.schema["token"].domain is None
    assert not any("t001" in why for why in proposal.reasons.values())


@given(st.lists(st.floats(-1e9, 1e9).filter(lambda v: v == 0 or abs(v) > 1e-9), min_size=3, max_size=9, unique=True))
def test_a_proposed_range_holds_every_value(values):
    low, high = propose_schema(pd.DataFrame({"amount": values})).schema["amount"].domain
    assert low <= min(values) and max(values) <= high


@given(st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=9, unique=True))
def test_a_proposed_range_of_whole_numbers_is_whole_and_holds_every_value(values):
    low, high = propose_schema(pd.DataFrame({"amount": values})).schema["amount"].domain
    assert isinstance(low, int) and isinstance(high, int)
    assert low <= min(values) and max(values) <= high


def test_a_range_is_rounded_outward():
    assert propose_schema(pd.DataFrame({"age": [23, 41, 66]})).schema["age"].domain == (20, 70)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\nTRUE,1\nFALSE,2\nTRUE,3\n",
        "a,b\n1.0,1\n0.0,2\n1.0,3\n",
        "a,b\n01,1\n02,2\n01,3\n",
        "a,b\n1,1\n0,2\n,3\n",
        "a,b\nNA,1\n,2\nx,3\n",
        "a,b\n1.50,x\n2.25,y\n3,x\n",
    ],
)
def test_a_proposed_schema_loads_its_own_file(text, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    frame = read_frame(tmp_path / "a.csv")
    proposal = propose_schema(frame)
    write_schema(proposal.schema, tmp_path / "a.toml", proposal.reasons)
    loaded = cv.Table.read(tmp_path / "a.csv", tmp_path / "a.toml")
    assert loaded.frame["a"].dropna().tolist() == frame["a"].dropna().tolist()


def test_a_column_without_values_or_with_infinite_ones_gets_no_domain():
    schema = propose_schema(pd.DataFrame({"gone": [None, None, None], "wild": [1.0, np.inf, 3.0]})).schema
    assert schema["gone"].domain is None and schema["wild"].domain is None


def test_many_labels_get_no_domain():
    schema = propose_schema(pd.DataFrame({"word": [f"w{i}" for i in range(60)] * 2})).schema
    assert schema["word"].domain is None


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": []}), "table is empty"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"Repeated in the data: \['a'\]"),
        (pd.DataFrame({"a": [["Xanthippe"], ["x"]]}), "'a' holds lists"),
    ],
)
def test_frames_that_cannot_be_read_are_refused(frame, words):
    with pytest.raises(cv.SchemaError, match=words) as caught:
        propose_schema(frame)
    assert "Xanthippe" not in str(caught.value)


def test_german_credit_is_read_as_the_papers_read_it():
    proposed = propose_schema(cv.load("german_credit").frame).schema
    assert proposed.target == "class"
    assert {"age", "job", "housing", "foreign_worker", "personal_status"} <= set(proposed.names("quasi"))
    assert proposed.names("identifier") == []


def test_free_text_is_an_identifier_even_where_cells_are_blank():
    notes = [f"person {i} called about a loan" if i % 10 > 2 else None for i in range(100)]
    proposal = propose_schema(pd.DataFrame({"age": [30, 40, 50, 60] * 25, "notes": notes}))
    assert proposal.schema["notes"].role == "identifier"
    assert "free text (70 different long texts)" in proposal.reasons["notes"]


def test_long_texts_that_repeat_are_free_text_and_labels_are_not():
    frame = pd.DataFrame(
        {
            "notes": [f"client called on day {i % 30} about a card" for i in range(100)],
            "plan": ["a plan with quite a long name", "another plan with a longer name"] * 50,
            "word": [f"w{i % 70}" for i in range(100)],
        }
    )
    proposal = propose_schema(frame)
    assert {c.name: c.role for c in proposal.schema} == {
        "notes": "identifier",
        "plan": "attribute",
        "word": "identifier",
    }
    assert "70% of its filled cells are different texts" in proposal.reasons["word"]


def test_blanks_do_not_hide_that_the_filled_cells_are_all_different():
    frame = pd.DataFrame({"token": [f"t{i}" if i % 2 else None for i in range(60)], "no": [*range(50), *[None] * 10]})
    assert propose_schema(frame).schema.names("identifier") == ["token", "no"]


def test_a_telling_name_beats_uniqueness_of_numbers():
    n = 400
    frame = pd.DataFrame({"salary": np.arange(n) * 7 + 15_000, "age": np.arange(n), "thing": np.arange(n)})
    schema = propose_schema(frame).schema
    assert {c.name: c.role for c in schema} == {"salary": "sensitive", "age": "quasi", "thing": "identifier"}
    assert schema["salary"].type == "numeric"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["70,663", "1,975", "953,717"], "thousands separators"),
        (["70 663,00", "15 975,50", "953 717,00"], "thousands separators"),
        (["70663", "NA", "1975"], "marks for missing values"),
        (["70,663", "n/a", "1,975"], "marks for missing values .* and thousands separators"),
        (["NA", "-", "NA"], "nothing but marks for missing values"),
        (["01018", "90210", "00001"], "digits with leading zeros"),
    ],
)
def test_texts_that_look_like_numbers_are_told(texts, words):
    proposal = propose_schema(pd.DataFrame({"salary": texts * 10}))
    why = proposal.reasons["salary"]
    assert pd.Series([why]).str.contains(words).all()
    assert proposal.schema["salary"].role == "sensitive"
    assert not any(t in why for t in texts if t not in ("NA", "-"))


@pytest.mark.parametrize("texts", [["3 rooms", "4 rooms"], ["yes", "NA"], ["a", "b"]])
def test_other_texts_are_not_said_to_look_like_numbers(texts):
    assert "order: type" in propose_schema(pd.DataFrame({"x": texts})).reasons["x"]


def test_a_proposal_without_quasi_identifiers_says_so_at_its_top():
    frame = pd.DataFrame({"ikä": [30, 41, 55] * 9, "sukupuoli": ["m", "v", "v"] * 9})
    proposal = propose_schema(frame)
    text = schema_toml(proposal.schema, proposal.reasons)
    assert text.index("# No quasi-identifier was recognised") < text.index("[columns.")
    assert "English, German, French, Spanish, Dutch" in proposal.reasons["sukupuoli"]
    known = propose_schema(frame.rename(columns={"ikä": "age"}))
    assert "No quasi-identifier" not in schema_toml(known.schema, known.reasons)


def test_what_nobody_can_change_is_proposed_as_such_with_the_reason():
    frame = people().assign(
        sex=RNG.choice(["f", "m"], 40),
        race=RNG.choice(["x", "y"], 40),
        foreign_worker=RNG.choice(["no", "yes"], 40),
        ageGroup=RNG.choice(["20-30", "30-40"], 40),
        agency=RNG.choice(["p", "q"], 40),
        mortgage=RNG.integers(0, 99, 40),
        marital_status=RNG.choice(["x", "y"], 40),
        childrenBorn=RNG.integers(0, 9, 40),
        NumberOfDependents=RNG.integers(0, 9, 40),
        priors_count=RNG.integers(0, 9, 40),
        everywhere=RNG.choice(["x", "y"], 40),
        pasta=RNG.choice(["x", "y"], 40),
    )
    proposal = propose_schema(frame, "approved")
    fixed = {c.name: c.actionable for c in proposal.schema if c.actionable != "any"}
    assert fixed == {
        "age": "up",
        "birthCountry": "no",
        "sex": "no",
        "race": "no",
        "foreign_worker": "no",
        "ageGroup": "no",
        "marital_status": "no",
        "childrenBorn": "no",
        "NumberOfDependents": "no",
        "priors_count": "no",
    }
    assert all(f"actionable {way}: nobody" in proposal.reasons[n] for n, way in fixed.items())
    toml = schema_toml(proposal.schema, proposal.reasons)
    assert "# actionable up: nobody gets younger" in toml and 'actionable = "up"' in toml


def test_grids_are_proposed_from_names_alone_and_can_be_taken_as_they_are():
    each = np.tile(np.arange(20), 3)  # three people of each kind: nobody is named by a number
    frame = pd.DataFrame({"age": 20 + each, "loan amount": 100 * each, "shoe": each, "hours": each})
    said, other = (propose_schema(f).reasons for f in (frame, frame * 3 + 1))
    grids = {n: [line for line in said[n].splitlines() if "round numbers alone" in line] for n in frame}
    assert grids == {n: [line for line in other[n].splitlines() if "round numbers alone" in line] for n in frame}
    assert "domain = [0, 120]" in grids["age"][0] and "domain = [0, 168]" in grids["hours"][0] and not grids["shoe"]
    assert "cuts = [0, 100, 200, 500, 1000," in grids["loan amount"][0]
    for name in ("age", "loan amount", "duration_months"):
        grid = public_grid(name)
        cv.Column(name, type="numeric", domain=grid.domain, cuts=grid.cuts)  # a column takes it
    assert all(propose_schema(frame).schema[n].read for n in frame)  # what was read off the rows stays marked


@pytest.mark.parametrize("name", ["plz", "code postal", "zip"])
def test_a_few_numbers_named_as_codes_are_codes(name):
    column = propose_schema(pd.DataFrame({name: [10115, 80331, 50667] * 20, "x": range(60)})).schema[name]
    assert (column.type, column.role) == ("categorical", "quasi")
    # Numbers of several lengths count something, whatever they are called.
    assert propose_schema(pd.DataFrame({name: [5, 80331, 50667] * 20, "x": range(60)})).schema[name].type == "numeric"
