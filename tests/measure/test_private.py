"""The figures for private explanations, on answers whose figures can be counted by hand."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import ParameterError
from countervail.report.trade_off import trade_off
from countervail.testing import small_model, small_table


@pytest.fixture(scope="module")
def plain():
    return (
        cv.NICE("none", target="favourable", justified=False)
        .fit(small_table(), small_model)
        .explain(small_table(20, seed=1))
    )


def test_records_of_the_table_are_matched_once(plain):
    q = cv.measure.private_quality(plain, small_model)
    asked = int((plain.status != "already_favourable").sum())
    # Every answer is a training row, and no two rows of this table are equal.
    assert q.m0.value == 0 and q.m1.value == 1 and q.m1.n == asked
    assert q.d_min.mean.value == 0 and q.correctness.value == 1
    assert q.dist_rec.mean.value == pytest.approx(np.nanmean(cv.measure.recourse_cost(plain)))
    assert q.plaus_prox.mean.value == pytest.approx(np.nanmean(cv.measure.plausibility(plain, neighbours=5)))
    assert q.dist_rec.deviation == pytest.approx(np.nanstd(cv.measure.recourse_cost(plain), ddof=1))
    assert q.dist_rec.mean.low < q.dist_rec.mean.value < q.dist_rec.mean.high and "±" in str(q.dist_rec)


def test_invalid_answers_count_as_answers_but_not_as_correct(plain):
    asked = (plain.status != "already_favourable").to_numpy()
    back = plain.counterfactuals.copy()
    for name in back.columns:  # half of the people get their own row back
        column = back[name].astype(object)
        column[asked & (np.arange(len(back)) % 2 == 0)] = plain.factuals[name].astype(object)
        back[name] = column.infer_objects()
    status = plain.status.where(~asked | (np.arange(len(back)) % 2 == 1), "no_counterfactual")
    q = cv.measure.private_quality(replace(plain, counterfactuals=back, status=status), small_model)
    wrong = int((asked & (np.arange(len(back)) % 2 == 0)).sum())
    assert q.correctness.n == asked.sum() and q.correctness.value == pytest.approx(1 - wrong / asked.sum())
    assert q.dist_rec.mean.value < cv.measure.private_quality(plain, small_model).dist_rec.mean.value


def test_the_quick_figures_are_the_slow_ones():
    made = cv.NoisyCounterfactual(20.0, random_state=0).fit(small_table(), small_model)
    answers = made.explain(small_table(30, seed=1))
    quick = cv.measure.answer_figures(answers, small_model, neighbours=3)
    rows = small_table().features.reset_index(drop=True)
    spans = {n: float(rows[n].max() - rows[n].min()) for n in ("age", "income")}

    def away(a, b):
        total = sum(abs(float(a[n]) - float(b[n])) / spans[n] for n in spans) + sum(
            a[n] != b[n] for n in ("city", "ill")
        )
        return total + abs(["low", "mid", "high"].index(a["level"]) - ["low", "mid", "high"].index(b["level"])) / 2

    for i, row in enumerate(quick.row):
        x, y = (f.iloc[int(row)].to_dict() for f in (answers.factuals, answers.counterfactuals))
        near = sorted(away(y, r) for r in rows.to_dict("records"))
        assert quick.dist_rec[i] == pytest.approx(away(x, y))
        assert quick.d_min[i] == pytest.approx(near[0]) and quick.plaus_prox[i] == pytest.approx(np.mean(near[:3]))
        assert quick.matches[i] == sum(d == 0 for d in near)
        assert quick.correct[i] == (answers.before.iloc[int(row)] != answers.after.iloc[int(row)])
    with pytest.raises(ParameterError, match="'neighbours' parameter of answer_figures"):
        cv.measure.answer_figures(answers, small_model, neighbours=0)


def test_duplicates_are_counted(plain):
    table = small_table()
    twice = cv.Table(pd.concat([table.frame, table.frame]), table.schema)
    found = plain.counterfactuals.notna().all(axis=1).to_numpy()
    shown = replace(
        plain,
        counterfactuals=plain.counterfactuals[found].reset_index(drop=True),
        factuals=plain.factuals[found].reset_index(drop=True),
    )
    assert (cv.measure.exact_matches(shown, table=twice) == 2).all()
    assert (cv.measure.exact_matches(shown) == 1).all()


def test_noisy_answers_are_measured_too():
    made = cv.PrivateNeighbours().fit(small_table(), small_model)
    q = cv.measure.private_quality(made.explain(small_table(20, seed=1)), small_model)
    assert 0 <= q.m0.value <= 1 and q.d_min.mean.value <= q.plaus_prox.mean.value
    assert set(q.to_dict()) == {"dist_rec", "plaus_prox", "correctness", "m0", "m1", "d_min"}


def test_the_picture_shows_every_budget_and_the_open_explainer():
    from countervail.core.stats import mean_interval

    points = {e: mean_interval([1.0, 2.0 / e]) for e in (0.1, 1.0, 10.0)}
    svg = trade_off({"all": points, "sampled": points}, "Dist_rec", without_noise=mean_interval([0.5, 0.6]))
    assert all(text in svg for text in ("0.1", "10", "sampled", "no noise", "Dist_rec")) and svg == trade_off(
        {"all": points, "sampled": points}, "Dist_rec", without_noise=mean_interval([0.5, 0.6])
    )


def test_the_figures_of_a_single_answer_are_json(plain):
    nice = cv.NICE("none", target="favourable").fit(small_table(), small_model)
    one = nice.explain(plain.factuals[plain.found].head(1))
    found = cv.measure.private_quality(one, small_model)
    assert np.isnan(found.dist_rec.deviation) and found.dist_rec.mean.low == -np.inf
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert read["dist_rec"]["deviation"] is None and read["dist_rec"]["mean"]["low"] is None
    assert read["m1"] == found.m1.to_dict()


def test_missing_numbers_are_matched_like_any_other():
    frame = pd.DataFrame({"x": [1.0, None, 2.0, None, 1.0], "ok": ["no", "yes", "no", "yes", "no"]})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["x"])

    def says(rows):
        return np.where(rows["x"].isna(), "yes", "no")

    answers = cv.NICE("none", target="favourable", justified=False).fit(table, says).explain(table.features)
    assert cv.measure.answer_figures(answers, says, neighbours=1).matches.tolist() == [2.0] * int(answers.found.sum())


def test_where_nobody_is_answered_there_are_no_figures(plain):
    nobody = replace(plain, status=plain.status.where(plain.status == "already_favourable", "no_counterfactual"))
    nobody = replace(nobody, after=nobody.after.where(plain.status == "already_favourable", None))
    assert not len(cv.measure.answer_figures(nobody, small_model).row)
    found = cv.measure.private_quality(nobody, small_model)
    assert found.correctness.n == 0 and np.isnan(found.dist_rec.mean.value)
