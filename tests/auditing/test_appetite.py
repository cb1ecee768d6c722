"""An appetite is declared before anything is measured, and refused where it is not what it seems."""

import pytest

from countervail.auditing import Appetite
from countervail.core.errors import DataNotFoundError, SchemaError


def test_the_shipped_example_is_an_appetite_and_survives_its_own_form():
    example = Appetite.default()
    assert [r.name for r in example.recipients] == ["public"]
    assert example.recipients[0].thresholds["singling out"] == 0.09
    assert Appetite.from_dict(example.to_dict()) == example


@pytest.mark.parametrize(
    "text, says",
    [
        ("version = 1", "names no recipient"),
        ("version = 2\n[recipients.a]\ninference = 0.1", "version = 1"),
        ("version = 1\nrecipient = 1\n[recipients.a]\ninference = 0.1", "unknown keys: recipient"),
        ("version = 1\n[recipients.a]\ninferenc = 0.1", "unknown keys: inferenc"),
        ("version = 1\n[recipients.a]\ninference = 1.5", "between 0 and 1"),
        ("version = 1\n[recipients.a]\nmax_risk = -0.1", "between 0 and 1"),
        ("version = 1\n[recipients.a]\nepsilon = 0", "above 0"),
        ("version = 1\n[recipients.a]\nasks = 1\ninference = 0.1", "'asks' is true or false"),
        ("version = 1\n[recipients.a]\ndescription = 'x'", "no threshold"),
        ("version = 1\nconfidence = 1.0\n[recipients.a]\ninference = 0.1", "'confidence'"),
        ("version = 1\nvalid_for_months = 0\n[recipients.a]\ninference = 0.1", "'valid_for_months'"),
        ("version = 1\nrecipients = 3", "names no recipient"),
        ("version = 1\n[recipients]\na = 3", "must be a part"),
        ("version = ", "not TOML"),
    ],
)
def test_what_is_no_appetite_is_refused_by_name(text, says):
    with pytest.raises(SchemaError, match=says):
        Appetite.parse(text, "mine.toml")


def test_a_missing_or_binary_file_is_said(tmp_path):
    with pytest.raises(DataNotFoundError, match="--example-appetite"):
        Appetite.read(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="UTF-8"):
        Appetite.read(tmp_path / "binary.toml")
