"""The promise is the budgeted maximum: it holds against every way to choose and to stop; a running figure does not."""

import math
from functools import cache

import pytest

import countervail as cv
from countervail.core.guarantee import Guarantee, guarantee_from_dict
from countervail.core.guarantee.budget import Budget
from countervail.core.guarantee.composition import composed_epsilon, plan_epsilon, zcdp_epsilon
from countervail.ledger import Cost, Ledger, Statement
from countervail.ledger.accounting import charges, plus


def worst_delta(of, total, choices):
    """The true delta at `total` of a budget, against one who picks each answer by what he has seen, or stops.

    Every answer is the worst there is: a coin that tells the truth e**epsilon times as often as not. What he has seen
    is worth a loss; `value` is the most that he can get beyond e**total, over all strategies.
    """

    @cache
    def value(used, loss):
        best = max(-math.expm1(total - loss / 1000), 0.0) if loss / 1000 > total else 0.0
        for epsilon in choices:
            taken = charges(of, used, Cost(epsilon), 1)
            if taken is not None:
                truth, step = 1 / (1 + math.exp(-epsilon)), round(epsilon * 1000)
                after = plus(used, taken)
                best = max(best, truth * value(after, loss + step) + (1 - truth) * value(after, loss - step))
        return best

    return value((0,) * (1 if of.composition == "zcdp" else 2), 0)


def test_a_plan_holds_in_any_order_and_however_it_is_cut_short():
    delta, plan = 0.01, {0.5: 5, 1.0: 3}
    total = plan_epsilon(plan, delta)
    of = Budget.of("people", epsilon=total, delta=delta, plan=plan)
    assert worst_delta(of, total, (0.5, 1.0)) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("rho", [0.2, 0.4])
def test_rho_holds_however_epsilons_are_chosen(rho):
    delta = 0.01
    of = Budget.of("people", rho=rho)
    worst = worst_delta(of, zcdp_epsilon(rho, delta), (0.1, 0.25, 0.5))
    assert 0 < worst <= delta


def test_a_sum_of_epsilons_holds_without_a_delta():
    of = Budget.of("people", epsilon=2.0)
    assert worst_delta(of, 2.0, (0.25, 0.5, 1.0)) == 0.0
    assert worst_delta(of, 1.9, (0.25, 0.5, 1.0)) > 0.0


def running_delta(epsilon, answers, delta):
    """The true delta of "what the answers so far cost by optimal composition", for one who stops when it suits him."""
    figure = [composed_epsilon(epsilon, t, delta) if t else 0.0 for t in range(answers + 1)]
    truth = 1 / (1 + math.exp(-epsilon))
    value = [0.0] * (answers + 2)
    for t in range(answers, -1, -1):
        for told in range(t + 1):
            now = max(-math.expm1(min(figure[t] - (2 * told - t) * epsilon, 0.0)), 0.0)
            later = truth * value[told + 1] + (1 - truth) * value[told] if t < answers else 0.0
            value[told] = max(now, later)
    return value[0]


def test_a_running_figure_would_understate_delta_many_times():
    assert running_delta(0.1, 1, 1e-6) <= 1e-6
    assert running_delta(0.1, 200, 1e-6) > 5e-6


def test_the_label_is_the_budget_before_between_and_after_the_answers():
    from countervail.testing import small_model, small_table

    ledger = Ledger("people", epsilon=1.0)
    private = cv.PrivateNeighbours(0.5, ledger=ledger)
    labels = [private.guarantee()]
    private.fit(small_table(), small_model)
    rows = small_table(20, seed=1)
    asked = rows.features[small_model(rows.features)[:, 1] < 0.5]
    for i in range(2):
        e = private.explain(asked.iloc[[i]])
        assert e.guarantee.budget == ledger.budget
        labels.append(private.guarantee())
    with pytest.raises(cv.BudgetError):
        private.explain(asked.iloc[[2]])
    labels.append(private.guarantee())
    assert len(set(map(str, labels))) == 1
    assert "within epsilon = 1 " in str(labels[0]) and "ledger.md" in str(labels[0])


def test_no_running_figure_is_offered_as_a_guarantee():
    # What a ledger tells about itself is for its owner: counters and words, neither a promise nor an epsilon.
    ledger = Ledger("people", epsilon=4.0, delta=1e-6)
    ledger.answer([b"q"], Cost(0.5), "test", lambda at: [b"a"])
    assert not issubclass(Statement, Guarantee) and not hasattr(Statement, "epsilon") and not hasattr(Ledger, "epsilon")
    assert not any(isinstance(getattr(ledger, n), Guarantee) for n in dir(ledger) if not n.startswith("_"))
    assert ledger.statement().budget == ledger.budget and "no promise" in Statement.__doc__


def test_a_label_without_a_ledger_says_so():
    assert "No ledger counts other answers" in str(cv.PrivateNeighbours(0.5).guarantee())
    assert "No ledger counts other answers" in str(cv.DPTable(0.5).guarantee())


@pytest.mark.parametrize("given", [{"epsilon": 2.0}, {"rho": 0.5}, {"epsilon": 3.0, "delta": 1e-6, "plan": {0.1: 5}}])
def test_a_label_with_a_budget_round_trips(given):
    import json

    promise = cv.DifferentialPrivacy(0.5, budget=Budget.of("people", **given))
    assert guarantee_from_dict(json.loads(json.dumps(promise.to_dict()))) == promise
    assert "'people'" in str(promise)
