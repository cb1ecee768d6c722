"""Numbers beyond all measure and values of no use are refused in one line that names them."""

import gzip

import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.files.frames import read_frame, write_frame
from countervail.core.files.schema_file import write_schema
from countervail.core.files.unpacked import LIMIT
from countervail.testing import small_model, small_table

HUGE = "99999999999999999999"


@pytest.fixture
def people(tmp_path):
    frame = pd.DataFrame({"age": range(20, 60), "town": ["a", "b"] * 20, "ill": ["x", "y", "z", "w"] * 10})
    write_frame(frame, tmp_path / "people.csv")
    for name, cells in (("lists", [["x"], ["y"]]), ("structs", [{"q": 1}, {"q": 2}])):
        write_frame(frame.assign(ill=cells * 20), tmp_path / f"{name}.parquet")
    columns = (
        cv.Column("age", "numeric", "quasi"),
        cv.Column("town", role="quasi"),
        cv.Column("ill", role="sensitive"),
    )
    write_schema(cv.Schema(columns), tmp_path / "people.toml")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("hierarchy", "people.csv", "age", "--widths", "0"), "--widths must"),
        (("hierarchy", "people.csv", "age", "--widths", "nan"), "--widths takes numbers"),
        (("hierarchy", "people.csv", "age", "--widths", "5,inf"), "--widths takes numbers"),
        (("hierarchy", "people.csv", "age", "--kind", "quantiles", "--parts", HUGE), "--parts must"),
        (("hierarchy", "people.csv", "town", "--kind", "prefixes", "--lengths", "nan"), "--lengths takes numbers"),
        (("hierarchy", "people.csv", "town", "--kind", "prefixes", "--lengths", "1.5"), "--lengths takes whole"),
        (("hierarchy", "people.csv", "town", "--kind", "prefixes", "--lengths", "1e400"), "--lengths takes numbers"),
        (("anonymize", "people.csv", "-s", "people.toml", "-o", "out.csv", "--k", HUGE), "--k must"),
        (("anonymize", "people.csv", "-s", "people.toml", "--sweep", f"k=2,{HUGE}"), "--sweep takes numbers"),
        (("anonymize", "people.csv", "-s", "people.toml", "--sweep", "k=nan"), "--sweep takes numbers"),
        (("anonymize", "people.csv", "-s", "people.toml", "--sweep", "k=2.5"), "--sweep takes whole numbers"),
        (("check", "lists.parquet", "-s", "people.toml", "--k", "2", "--l", "2"), "Column 'ill' holds lists"),
        (("check", "structs.parquet", "-s", "people.toml", "--k", "2", "--t", "0.2"), "Column 'ill' holds lists"),
        (("check", "people.csv", "-s", "people.toml", "--k", "1", "--l", "nan"), "--l must"),
        (("check", "people.csv", "-s", "people.toml", "--k", "1", "--l", "inf"), "--l must"),
        (
            ("check", "people.csv", "-s", "people.toml", "--l", "2", "--diversity", "recursive", "--c", "nan"),
            "--c must",
        ),
        (("dit", "people.csv", "-s", "people.toml", "--k", HUGE), "--k takes numbers"),
        (("dit", "people.csv", "-s", "people.toml", "--k", "2", "--seed", "-1"), "--seed"),
        (
            (
                "ledger",
                "create",
                "a",
                "--dataset",
                "x",
                "--epsilon",
                "4",
                "--delta",
                "1e-6",
                "--plan",
                "0.1:1000000000",
            ),
            "--plan must be of at most 4,194,304 answers",
        ),
        (
            ("ledger", "create", "a", "--dataset", "x", "--epsilon", "4", "--delta", "1e-6", "--plan", f"0.1:{HUGE}"),
            "--plan must be of at most 4,194,304 answers",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(words, message, run, people, monkeypatch):
    monkeypatch.chdir(people)
    code, _, err = run(*words)
    assert code == 2 and message in err
    assert not (people / "out.csv").exists() and not (people / "a").exists()


@pytest.mark.parametrize(
    "epsilon", [10**400, -(10**400), float("nan"), float("inf"), 10**5000], ids=["large", "below", "nan", "inf", "vast"]
)
@pytest.mark.parametrize(
    "use",
    [
        lambda e: cv.PrivateNeighbours(epsilon=e).fit(small_table(), small_model),
        lambda e: cv.PrivateHistograms(epsilon=e).fit(small_table(), small_model),
        lambda e: cv.NoisyCounterfactual(epsilon=e).fit(small_table(), small_model),
        lambda e: cv.DPTable(epsilon=e).fit(small_table()),
        lambda e: cv.Ledger("people", epsilon=e),
        lambda e: cv.Ledger("people", rho=e),
        lambda e: cv.DifferentialPrivacy(e),
    ],
    ids=["neighbours", "histograms", "noisy", "table", "ledger", "rho", "promise"],
)
def test_an_epsilon_that_no_float_holds_is_refused(use, epsilon):
    with pytest.raises(ParameterError, match=r"'(epsilon|rho)' parameter") as caught:
        use(epsilon)
    assert len(str(caught.value)) < 500


def test_a_small_file_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(b"age\n" + b"41\n" * 100_000))
    assert len(read_frame(path)) == 100_000
    monkeypatch.setenv(LIMIT, "100000")
    with pytest.raises(SchemaError, match=f"unpacks to more than 100,000 bytes.*{LIMIT}"):
        read_frame(path)
    monkeypatch.setenv(LIMIT, "300004")
    assert len(read_frame(path)) == 100_000
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(ParameterError, match=f"{LIMIT} must be a number of bytes"):
        read_frame(path)


def test_a_parquet_file_of_mixed_values_is_refused_by_the_name_of_the_column(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Series([1, "Xanthippe"], dtype=object)})
    with pytest.raises(SchemaError, match=r"columns \['b'\] hold values of several kinds") as caught:
        write_frame(frame, tmp_path / "a.parquet")
    assert "Xanthippe" not in str(caught.value) and not list(tmp_path.iterdir())
