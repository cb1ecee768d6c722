"""The tables of the paper on differential inference testing: those of `countervail reproduce kassem`."""

from __future__ import annotations

from typing import Any

import countervail as cv
from countervail.study.reproduce.work.inference import ADULT as ADULT
from countervail.study.reproduce.work.inference import inference_table, trees_for


def adult(rows: int | None, seed: int) -> cv.Table:
    """Complete rows of Adult: all 45,222, or some drawn at random; occupation is sensitive."""
    return inference_table("adult", rows, seed)


def internet() -> cv.Table:
    """Internet usage without those who did not say their age; household income is sensitive."""
    return inference_table("internet_usage", None, 0)


def adult_settings() -> dict[str, Any]:
    """Basic Mondrian with the hierarchies that come with the set, as the paper used it."""
    return trees_for(adult(100, 0), "adult", "hierarchies")


def internet_settings(table: cv.Table) -> dict[str, Any]:
    """Basic Mondrian with hierarchies of our own making (labels in pairs, by name): the paper names none."""
    return trees_for(table, "internet_usage", "hierarchies")
