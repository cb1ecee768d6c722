"""The table of explainers is the one that the record gives, and natives are found by linkage there."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = runpy.run_path(str(ROOT / "benchmarks" / "studies" / "explainers_page.py"))


def test_the_table_is_that_of_the_record():
    if not PAGE["RESULTS"].exists():
        pytest.skip("not recorded yet")
    assert PAGE["whole_page"]() == PAGE["PAGE"].read_text(encoding="utf-8"), "run benchmarks/studies/explainers_page.py"


def test_natives_are_found_and_groups_hold():
    if not PAGE["RESULTS"].exists():
        pytest.skip("not recorded yet")
    rows = json.loads(PAGE["RESULTS"].read_text(encoding="utf-8"))["rows"]
    whole = ("NICE", "NearestCounterfactual", "FACE", "CaseBased, as it is")
    for r in (r for r in rows if r["explainer"] in whole):
        exposed = r["linkage"]["exposed"]["value"]
        assert exposed > 0.05 if r["protector"] == "none" else exposed == 0
        if "groups" in r["protector"]:
            assert r["inversion"]["detail"]["below k after bisectors"]["value"] == 0
