"""The published mechanisms: as described, against slow twins, and labelled."""

import math
import warnings
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.guarantee import NoGuarantee
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.protect.published.columns import laplace, response, response_of_any
from countervail.protect.published.inline import REWARDS, SPLITS
from countervail.testing import small_model, small_table

P = cv.published
PER_ANSWER = [P.InlineDP, P.LaplaceNoise, P.NoisyMax, P.FeatureExponential]
EVERY = [P.LDP, *PER_ANSWER]
needs_gan = pytest.mark.skipif(
    not (find_spec("torch") and find_spec("opacus")), reason="the extra 'gan' is not installed"
)


def whole_table(n=80, seed=0):
    """A table of whole numbers and labels: what truncation leaves alone."""
    frame = small_table(n, seed).frame.drop(columns="id")
    frame["income"] = frame["income"].round().astype(int)
    domains = {
        "age": (18, 90),
        "income": (-50, 150),
        "city": ["a", "b", "c"],
        "ok": ["no", "yes"],
        "ill": ["no", "yes"],
    }
    return cv.Table.from_frame(frame, target="ok", favourable="yes", domains=domains)


def fitted(made, table=None, model=small_model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.PrivacyWarning)
        return made.fit(whole_table() if table is None else table, model)


@pytest.mark.parametrize("kind", EVERY, ids=lambda k: k.__name__)
def test_fit_warns_once_and_answers_carry_the_reason(kind):
    with pytest.warns(cv.PrivacyWarning, match=f"{kind.__name__} has no privacy guarantee") as seen:
        made = kind().fit(whole_table(), small_model)
        answers = made.explain(whole_table(10, seed=1))
    assert len(seen) == 1
    assert answers.guarantee == NoGuarantee(kind.why) and kind.why in str(answers.guarantee)


def test_response_keeps_the_truth_more_often_than_it_promises():
    # Three values, epsilon ln 3: kept with 3/4, each of the others with 1/8; the ratio is 6, not 3.
    values, n = np.array([0.0, 1.0, 2.0]), 40_000
    drawn = Counter(response(np.full(n, 1.0), values, np.full(n, math.log(3)), generator(0)).tolist())
    for value, share in ((1.0, 3 / 4), (0.0, 1 / 8), (2.0, 1 / 8)):
        found = clopper_pearson(drawn[value], n, 1 - 1e-6)
        assert found.low < share < found.high


def test_the_letter_of_algorithm_2_keeps_the_truth_still_more_often():
    # Kept with 3/4 and drawn again with 1/12: 5/6, each of the others 1/12; the ratio is 1 + 3 * 3 = 10, not 3.
    values, n = np.array([0.0, 1.0, 2.0]), 40_000
    drawn = Counter(response_of_any(np.full(n, 1.0), values, np.full(n, math.log(3)), generator(0)).tolist())
    for value, share in ((1.0, 5 / 6), (0.0, 1 / 12), (2.0, 1 / 12)):
        found = clopper_pearson(drawn[value], n, 1 - 1e-6)
        assert found.low < share < found.high


def test_a_column_of_one_value_stays():
    assert (response(np.full(5, 7.0), np.array([7.0]), np.full(5, 0.1), generator(0)) == 7).all()


@given(
    low=st.integers(-50, 50),
    width=st.integers(0, 100),
    epsilon=st.floats(0.001, 50),
    seed=st.integers(0, 2**31),
)
def test_noisy_numbers_are_whole_and_stay_in_the_range(low, width, epsilon, seed):
    rng = generator(seed)
    cells = rng.integers(low, low + width + 1, 50).astype(float)
    noisy = laplace(cells, low, low + width, np.full(50, epsilon), rng)
    assert (noisy % 1 == 0).all() and noisy.min() >= low and noisy.max() <= low + width


def test_the_scale_of_the_noise_is_the_range_over_epsilon():
    n = 40_000
    noisy = laplace(np.zeros(n), -1e6, 1e6, np.full(n, 1e5), generator(1))
    # Mean absolute deviation of Laplace noise is its scale: 2e6 / 1e5 = 20, less about a half cut off.
    assert abs(np.abs(noisy).mean() - 19.5) < 0.5


def test_with_a_sensitivity_of_one_numbers_of_wide_columns_hardly_move():
    n = 4_000
    noisy = laplace(np.zeros(n), -1e6, 1e6, np.full(n, 0.1), generator(1), 1.0)
    assert abs(np.abs(noisy).mean() - 9.5) < 0.5  # its scale is 1 / 0.1, less about a half cut off


def test_a_basis_that_is_chosen_is_the_nearest_when_epsilon_is_large_and_any_when_it_is_small():
    table, rows = whole_table(), whole_table(40, seed=1)
    near = fitted(P.InlineDP(1e9, neighbours=8, basis="exponential", reward="gain"), table)
    x = near.explainer_.encoder_.encode(rows.features)
    pool, held = near.explainer_.rows_[:8][None].repeat(len(x), axis=0), np.ones((len(x), 8), dtype=bool)
    far = np.array([near.explainer_.heom_.between(x, np.repeat(row[None], len(x), axis=0)) for row in pool[0]]).T
    chosen = near._chosen(x, pool, held, 1e9, generator(0))
    assert np.array_equal(far[np.arange(len(x)), chosen], far.min(axis=1))
    drawn = np.concatenate([near._chosen(x, pool, held, 1e-9, generator(seed)) for seed in range(100)])
    assert np.bincount(drawn, minlength=8).min() > 400  # of 500 each
    held[:, :5] = False
    assert near._chosen(x, pool, held, 1e-9, generator(0)).min() >= 5


def test_gaussian_noise_on_counts_has_the_scale_of_the_laplace_noise():
    made, counts = fitted(P.NoisyMax(1.0, noise="gaussian")), np.zeros(4)
    scores = made._scores(0, (np.arange(4.0), counts), np.zeros(20_000), np.full(20_000, 2.0), generator(3))
    assert abs(scores.std() - 4 / 2) < 0.02 and abs((np.abs(scores) < 2.0).mean() - 0.683) < 0.01


@pytest.mark.parametrize(
    "made",
    [
        P.LDP(1e300),
        P.LDP(1e300, response="any"),
        P.LaplaceNoise(1e300, response="any"),
        P.LaplaceNoise(1e300),
        P.FeatureExponential(1e300, score="nearness"),
        P.InlineDP(1e300, neighbours=1, reward="gain"),
    ],
    ids=str,
)
def test_without_noise_what_is_left_is_nice(made):
    # So large that the noise is lost in rounding: any less, and cutting to whole numbers takes one off half of them.
    table, rows = whole_table(), whole_table(40, seed=1)
    plain = cv.NICE("sparsity", target="favourable").fit(table, small_model).explain(rows)
    answers = fitted(made, table).explain(rows)
    assert (answers.status == plain.status).all()
    pd.testing.assert_frame_equal(answers.counterfactuals, plain.counterfactuals)


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_inline_walk_is_the_slow_one(split, reward):
    table, rows = whole_table(), whole_table(30, seed=1)
    made = fitted(P.InlineDP(8.0, neighbours=4, split=split, reward=reward, random_state=3), table)
    quick = made.explain(rows)
    asked = rows.take(~(quick.status == "already_favourable").to_numpy())
    x = made.explainer_.encoder_.encode(asked.features)
    wanted = np.tile([False, True], (len(x), 1))
    near = made.nearest_.nearest(x, wanted, 4)[0]
    pool, open_ = made._pool(x, near, near >= 0, generator(3))
    for i, at in enumerate(np.flatnonzero(quick.status != "already_favourable")):
        slow = slow_walk(made, x[i], pool[i], set(np.flatnonzero(open_[i])))
        got = made.explainer_.encoder_.encode(quick.counterfactuals.iloc[[at]].astype(asked.features.dtypes))[0]
        assert score(made, got) == pytest.approx(score(made, slow)) and (got != x[i]).sum() == (slow != x[i]).sum()


def score(made, row):
    return float(small_model(made.explainer_.encoder_.decode(row[None, :]))[0, 1])


def worth(made, start, trial):
    """The score; with "nearest", whatever changes the decision comes before all else, and the nearer the better."""
    value = score(made, trial)
    if made.reward == "gain" or value <= 0.5:
        return value
    return 100 - float(made.explainer_.heom_.between(start[None], trial[None])[0])


def slow_walk(made, x, pool, columns):
    """One query in plain Python: the best value of any open column, until the decision changes."""
    row = x.copy()
    while columns and score(made, row) <= 0.5:
        trials = []
        for j in sorted(columns):
            for value in sorted(set(pool[:, j].tolist())):
                trial = row.copy()
                trial[j] = value
                trials.append((worth(made, x, trial), j, trial))
        best = max(s for s, _, _ in trials)
        _, column, row = next(t for t in trials if t[0] == best)
        columns.remove(column)
    return row


def test_noise_falls_on_columns_where_the_basis_differs():
    table = whole_table()
    made = fitted(P.InlineDP(0.01, neighbours=1, random_state=0), table)
    x = made.explainer_.encoder_.encode(whole_table(20, seed=1).features)
    near = made.nearest_.nearest(x, np.tile([False, True], (len(x), 1)), 1)[0]
    pool, open_ = made._pool(x, near, near >= 0, generator(0))
    rows = made.explainer_.rows_[near[:, 0]]
    assert (open_ == (rows != x)).all()
    assert (pool[:, 0][~open_] == x[~open_]).all()


def test_noisy_max_takes_the_mode_of_the_class_when_epsilon_is_large():
    table, rows = whole_table(200), whole_table(40, seed=1)
    plain = cv.NICE("sparsity", target="favourable").fit(table, small_model).explain(rows)
    answers = fitted(P.NoisyMax(1e9), table).explain(rows)
    accepted = table.features[small_model(table.features)[:, 1] > 0.5]
    for name in ("age", "income"):
        modes = accepted[name].mode()
        changed = plain.found & differs(plain, name)
        assert answers.counterfactuals[name][changed].isin(modes).all()
        kept = plain.found & ~changed
        assert (answers.counterfactuals[name][kept] == plain.factuals[name][kept]).all()


def test_the_exponential_mechanism_draws_by_its_weights():
    made = fitted(P.FeatureExponential())
    counts = np.array([10.0, 5.0, 1.0])
    assert_drawn_by(made, (np.arange(3.0), counts), 0.0, np.exp(4.0 * counts / 10 / 2))


def test_by_nearness_the_exponential_mechanism_keeps_to_the_counterfactual():
    # The range of the column is twice the largest gap: a value at the other end weighs exp(-4 / 2).
    made = fitted(P.FeatureExponential(score="nearness"))
    wide = float(made.columns_.high[0] - made.columns_.low[0])
    values = np.array([0.0, wide / 4, wide / 2])
    assert made.columns_.numeric[0]
    assert_drawn_by(made, (values, np.ones(3)), 0.0, np.exp([0.0, -1.0, -2.0]))


def assert_drawn_by(made, held, cell, weights, n=60_000):
    scores = made._scores(0, held, np.full(n, cell), np.full(n, 4.0), generator(0))
    drawn = np.bincount(scores.argmax(axis=1), minlength=3)
    for hits, share in zip(drawn, weights / weights.sum()):
        found = clopper_pearson(int(hits), n, 1 - 1e-6)
        assert found.low < share < found.high


def test_a_swapped_response_keeps_the_truth_with_the_smaller_probability():
    table = whole_table(4000)
    made = P.LDP(len(table.schema.features) * math.log(3), response="swapped")  # ln 3 for each column
    noisy = made._reference(table, generator(0))
    kept = int((noisy.frame["city"].astype(str) == table.frame["city"].astype(str)).sum())
    found = clopper_pearson(kept, len(table), 1 - 1e-6)
    assert found.low < 1 / 4 < found.high


def test_only_changed_columns_are_drawn_anew():
    table, rows = whole_table(), whole_table(40, seed=1)
    plain = cv.NICE("sparsity", target="favourable").fit(table, small_model).explain(rows)
    for kind in (P.LaplaceNoise, P.NoisyMax, P.FeatureExponential):
        answers = fitted(kind(0.1), table).explain(rows)
        for name in answers.counterfactuals.columns:
            same = plain.found & ~differs(plain, name)
            assert (answers.counterfactuals[name][same] == plain.factuals[name][same]).all()


def differs(e, name):
    """Which answers change a column; blanks change nothing."""
    cells = zip(e.found, e.counterfactuals[name].astype(object), e.factuals[name].astype(object))
    return np.array([bool(found and a != b) for found, a, b in cells])


@pytest.mark.parametrize("kind", EVERY, ids=lambda k: k.__name__)
def test_equal_queries_get_noise_of_their_own_but_one_base(kind):
    one = whole_table(40, seed=1)
    asked = one.take(np.flatnonzero(small_model(one.features)[:, 1] < 0.4)[:1])
    many = asked.take(np.zeros(300, dtype=int))
    found = fitted(kind(20.0)).explain(many).counterfactuals.astype(str).drop_duplicates()
    assert len(found) == 1 if kind is P.LDP else len(found) > 1


@pytest.mark.parametrize("kind", EVERY, ids=lambda k: k.__name__)
def test_labels_alone_and_several_classes_are_enough(kind):
    iris = cv.load("iris")

    def labels(frame):
        return np.where(
            frame["petal_length"] < 2.5, "setosa", np.where(frame["petal_width"] < 1.7, "versicolor", "virginica")
        )

    answers = fitted(kind(5.0, target="other"), iris, labels).explain(iris)
    assert answers.found.any() and (answers.before[answers.found] != answers.after[answers.found]).all()


def test_people_for_whom_there_is_nobody_get_no_row():
    table = whole_table()
    refused = table.take(small_model(table.features)[:, 1] < 0.5)
    accepted = table.take(np.flatnonzero(small_model(table.features)[:, 1] > 0.5)[:1])
    both = cv.Table(pd.concat([refused.frame, accepted.frame]), table.schema)

    def never(frame):
        return np.column_stack([np.full(len(frame), 0.9), np.full(len(frame), 0.1)])

    for kind in EVERY:
        answers = fitted(kind(), both, never).explain(whole_table(5, seed=1))
        assert (answers.status == "no_counterfactual").all() and answers.counterfactuals.isna().all().all()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (P.LDP(0), "'epsilon' parameter of LDP"),
        (P.InlineDP(float("nan")), "'epsilon' parameter of InlineDP"),
        (P.InlineDP(neighbours=0), "'neighbours' parameter of InlineDP"),
        (P.InlineDP(split="rows"), "'split' parameter of InlineDP"),
        (P.InlineDP(basis="nearest"), "'basis' parameter of InlineDP"),
        (P.InlineDP(sensitivity=2), "'sensitivity' parameter of InlineDP"),
        (P.InlineDP(response="swapped"), "'response' parameter of InlineDP"),
        (P.LaplaceNoise(response="none"), "'response' parameter of LaplaceNoise"),
        (P.NoisyMax(noise="uniform"), "'noise' parameter of NoisyMax"),
        (P.DPGAN(delta=0), "'delta' parameter of DPGAN"),
        (P.DPGAN(steps=0), "'steps' parameter of DPGAN"),
        (P.DPGAN(rows=0), "'rows' parameter of DPGAN"),
        (P.NoisyMax(target="maybe"), "'target' parameter"),
    ],
    ids=lambda v: str(v),
)
def test_bad_parameters_are_named(made, words):
    with pytest.raises(ParameterError, match=words):
        fitted(made)


def test_bad_rows_and_late_changes_are_refused():
    made = fitted(P.LaplaceNoise())
    with pytest.raises(SchemaError, match="given to LaplaceNoise lack these columns"):
        made.explain(whole_table(5).features.drop(columns="age"))
    with pytest.raises(ParameterError, match="'table' parameter of LaplaceNoise"):
        fitted(P.LaplaceNoise(), table=whole_table().frame)
    made.set_params(epsilon=2.0)
    with pytest.raises(SchemaError, match="have changed since fit"):
        made.explain(whole_table(5))


@needs_gan
def test_the_gan_spends_what_it_may_and_another_accountant_agrees():
    import dp_accounting as dp

    made = fitted(P.DPGAN(2.0, steps=40, batch=16, rows=100, random_state=0), small_table(200))
    spent = made.spent_
    assert spent.epsilon <= 2.0 and spent.delta == 1e-5 and spent.steps == 40 and spent.sample_rate == 16 / 200
    twin = dp.pld.PLDAccountant()
    step = dp.PoissonSampledDpEvent(spent.sample_rate, dp.GaussianDpEvent(spent.noise))
    twin.compose(dp.SelfComposedDpEvent(step, spent.steps))
    # The tighter accountant must not find more than was stated.
    assert 0.5 < twin.get_epsilon(spent.delta) <= spent.epsilon
    assert isinstance(made.explain(small_table(10, seed=1)).guarantee, NoGuarantee)


@needs_gan
def test_records_reach_the_generator_only_through_noise():
    from countervail.protect.published.gan_training import Settings, synthesise

    sizes, ordered, rng = np.array([4, 101]), np.array([False, True]), generator(0)
    codes = np.column_stack([rng.integers(0, 4, 300), rng.integers(0, 101, 300)])
    made, spent = synthesise(codes, sizes, ordered, Settings(5.0, 1e-5, 4, 16), 50, generator(1))
    again, _ = synthesise(codes, sizes, ordered, Settings(5.0, 1e-5, 4, 16), 50, generator(1))
    other, _ = synthesise(codes, sizes, ordered, Settings(5.0, 1e-5, 4, 16), 50, generator(2))
    assert (made == again).all() and (made != other).any() and spent["noise"] > 0
    assert (made >= 0).all() and (made < sizes).all() and made.shape == (50, 2)


@needs_gan
def test_the_gan_learns_something_of_the_table():
    from countervail.protect.published.gan_training import Settings, synthesise

    rng = generator(0)
    codes = np.column_stack([rng.choice(4, 400, p=[0.1, 0.7, 0.1, 0.1]), rng.integers(70, 90, 400)])
    settings = Settings(20.0, 1e-5, 400, 64)
    made, _ = synthesise(codes, np.array([4, 101]), np.array([False, True]), settings, 300, generator(1))
    assert (made[:, 0] == 1).mean() > 0.4 and 60 < made[:, 1].mean() < 95


@needs_gan
def test_a_small_budget_is_reached_by_higher_orders_of_the_accountant():
    """With the accountant's own orders nothing below ln(1 / delta) / 62 can be told, whatever the noise."""
    from countervail.protect.published.gan_training import Settings, _accounted

    noise, stated = _accounted(Settings(0.01, 1e-5, 500, 64), 0.01)
    assert 0.009 < stated <= 0.01
    assert noise > _accounted(Settings(0.1, 1e-5, 500, 64), 0.01)[0]


@needs_gan
def test_a_budget_out_of_reach_is_said_so():
    with pytest.raises(ParameterError, match="must be reachable"):
        fitted(P.DPGAN(1e-4, delta=1e-12, steps=10**6, batch=100), small_table())


def test_the_gan_names_its_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(ParameterError, match=r"countervail\[gan\]"):
        fitted(P.DPGAN(), small_table())


def test_the_gan_wants_declared_domains():
    with pytest.raises(SchemaError, match="domain"):
        fitted(P.DPGAN(), small_table(domains=False))
