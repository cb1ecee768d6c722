"""Protections side by side: the same attacks on the same people, and what could not be tried is said."""

import pytest

import countervail as cv
from countervail.testing import small_model

FEW = ["singling-out", "linkage"]


@pytest.fixture(scope="module")
def found(halves):
    members, others = halves
    tried = {"plain": cv.NICE(target="favourable"), "private": cv.CFK(k=5), "too many": cv.CFK(k=5000)}
    return cv.compare(members, small_model, control=others, protections=tried, attacks=FEW)


def test_plain_answers_stand_beside_private_ones_and_beside_what_could_not_be_tried(found):
    verdicts = {c.name: None if c.audit is None else c.audit.verdict for c in found.contenders}
    assert verdicts["plain"] == "reject" and verdicts["private"] != "reject" and verdicts["too many"] is None
    assert "'k'" in found["too many"].why
    assert found["private"].changes.value <= found["plain"].changes.value


def test_the_page_and_the_data_hold_every_contender(found, tmp_path):
    page = found.to_html(tmp_path / "compared.html")
    assert "too many: not tried" in page and found.rows()[2] == ("too many", "", "not tried", "", "", "", "")
    assert all(c.name in page for c in found.contenders) and "<svg" in page
    assert [c["name"] for c in found.to_dict()["contenders"]] == ["plain", "private", "too many"]


def test_nothing_to_compare_is_refused(halves):
    members, others = halves
    with pytest.raises(cv.ParameterError, match="'protections'"):
        cv.compare(members, small_model, control=others, protections={})
