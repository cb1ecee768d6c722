"""The demo's figures and pictures."""

import numpy as np
import pytest

import countervail as cv
from countervail.report.explained_page import explained_page
from countervail.report.page import render_page
from countervail.report.strips import FEW, coarse_shares, region_strip
from countervail.testing import small_model, small_table


def test_the_demo_shows_plain_explanations_exposing_people_and_private_ones_not():
    from countervail.report.demo_page import demo_page, run_demo

    summary = run_demo()
    assert summary.plain.exposed.low > 0.5
    assert (summary.private.exposed.value, summary.private.people) == (0, 0)
    assert summary.private.smallest_set >= 10
    assert summary.private.pureness.value == 1
    page = render_page(demo_page(summary))
    assert all(text.split(":")[0] in page for text in summary.story)
    assert "<script" not in page


@pytest.mark.parametrize("name", ["age", "city", "level"])
def test_pictures_draw_no_bar_for_few_people(name):
    table = small_table(40)
    bins, heights = coarse_shares(table, name)
    assert len(bins) <= 8
    assert np.isin(np.round(heights * 10, 6), np.arange(11)).all()
    for b, h in zip(bins, heights):
        column = table.frame[name]
        inside = column.between(b.left, b.right) if hasattr(b, "left") else column == b
        assert h == 0 or inside.sum() >= FEW


def test_a_strip_marks_the_region_and_the_asker():
    table = small_table(200)
    e = cv.CFK(k=8).fit(table, small_model).explain(small_table(20, seed=2))
    one = e[int(np.flatnonzero(e.found)[0])]
    svg = region_strip(one, table)
    assert svg.count("<g ") == 3
    assert "#1f6f8b" in svg
    assert svg.count("<circle") == 3
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_a_page_of_explanations_has_sentences_and_pictures():
    table = small_table(200)
    e = cv.CFK(k=8).fit(table, small_model).explain(small_table(20, seed=2))
    page = render_page(explained_page(e))
    assert "the decision would be yes" in page
    assert page.count('role="img"') >= 2
    assert 'role="img"' in render_page(explained_page(cv.Explanations.from_json(e.to_json())))
