"""Legends stand above the axes: they cover no bar and no line."""

import pytest

import countervail as cv
from countervail.core.stats import mean_interval
from countervail.report import differential_page, figures, sweep_page, trade_off
from countervail.testing import small_table


def differences():
    test = cv.DifferentialInferenceTest(cv.Mondrian(k=2), n_records=5)
    return {"k=2": test.run(small_table(), "ill")}


PICTURES = {
    "histograms": lambda: figures.histograms({"one": [1, 2, 2, 9], "two": [9, 9, 9, 9]}, "people"),
    "before_after": lambda: figures.before_after(["a", "b"], [9, 9], [9, 8], "city"),
    "rule_bars": lambda: figures.rule_bars(["x is 1", "x is 2"], [["yes"], ["no"]], [9, 8], ["yes", "no"]),
    "trade_off": lambda: trade_off.trade_off({"a": {0.1: mean_interval([1, 2]), 1.0: mean_interval([1, 1.5])}}, "d"),
    "cdf_picture": lambda: differential_page.cdf_picture(differences()),
    "cost_picture": lambda: sweep_page.cost_picture(cv.measure.sweep(small_table(), [2, 5, 10], encoding="tf")),
    "model_picture": lambda: sweep_page.model_picture(cv.measure.sweep(small_table(), [2, 5, 10], encoding="tf")),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_legend_stands_above_the_axes(name, monkeypatch):
    drawn = []
    for module in (figures, sweep_page, trade_off, differential_page):
        monkeypatch.setattr(module, "to_svg", lambda figure, title: drawn.append(figure))
    PICTURES[name]()
    (figure,) = drawn
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_legend().get_window_extent().y0 >= axes.get_window_extent().y1
