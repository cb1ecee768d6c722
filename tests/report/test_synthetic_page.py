"""The tables in the guide to synthetic answers are those of the recorded results."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "studies"))

import cfk_rewards  # noqa: E402
import synthetic_page  # noqa: E402


def test_the_guide_shows_the_recorded_tables():
    page = synthetic_page.PAGE.read_text(encoding="utf-8")
    assert synthetic_page.whole_page() == page, f"run {synthetic_page.__file__}"


def test_the_page_about_cfk_shows_the_recorded_table():
    found = json.loads(cfk_rewards.RESULTS.read_text(encoding="utf-8"))
    page = cfk_rewards.PAGE.read_text(encoding="utf-8")
    assert cfk_rewards.place(cfk_rewards.table(found["sets"])) == page, f"run {cfk_rewards.__file__}"


def test_private_models_are_worth_having_where_people_are_many():
    found = json.loads(synthetic_page.MODELS.read_text(encoding="utf-8"))
    for name in ("adult", "compas"):
        right = found["sets"][name]["accuracy"]
        assert right["private, epsilon 1"]["mean"] >= right["forest"]
    assert found["million_rows_cpu_seconds"]["PrivateSynthetic"] <= 30


def test_what_was_aimed_at_on_adult_was_reached():
    found = json.loads(synthetic_page.RESULTS.read_text(encoding="utf-8"))["sets"]["adult"]
    assert found["found"]["PrivateSynthetic, sparsity"]["plaus_prox"]["value"] <= 0.30
    typical = found["found"]["PrivateSynthetic, typical"]
    assert typical["plaus_prox"]["value"] <= 0.22 and typical["changes"]["value"] <= 2.0
    assert found["synthetic_table"]["two_way"] <= 0.045
    hits = [found["synthetic_table"][n] for n in ("rows_of_training_people", "rows_of_others")]
    assert abs(hits[0] - hits[1]) <= 0.005
