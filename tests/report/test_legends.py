"""Legends stand above the axes: they cover no bar and no line."""

import pytest

import countervail as cv
from countervail.report import figures, sweep_page
from countervail.testing import small_table

PICTURES = {
    "histograms": lambda: figures.histograms({"one": [1, 2, 2, 9], "two": [9, 9, 9, 9]}, "people"),
    "before_after": lambda: figures.before_after(["a", "b"], [9, 9], [9, 8], "city"),
    "rule_bars": lambda: figures.rule_bars(["x is 1", "x is 2"], [["yes"], ["no"]], [9, 8], ["yes", "no"]),
    "cost_picture": lambda: sweep_page.cost_picture(cv.measure.sweep(small_table(), [2, 5, 10], encoding="tf")),
    "model_picture": lambda: sweep_page.model_picture(cv.measure.sweep(small_table(), [2, 5, 10], encoding="tf")),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_legend_stands_above_the_axes(name, monkeypatch):
    drawn = []
    for module in (figures, sweep_page):
        monkeypatch.setattr(module, "to_svg", lambda figure, title: drawn.append(figure))
    PICTURES[name]()
    (figure,) = drawn
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_legend().get_window_extent().y0 >= axes.get_window_extent().y1
