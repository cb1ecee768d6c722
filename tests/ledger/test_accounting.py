"""What answers take from a budget: exact sums, any order, never too little."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countervail.core.errors import BudgetError, ParameterError
from countervail.core.guarantee.budget import Budget
from countervail.core.guarantee.composition import plan_epsilon, zcdp_epsilon
from countervail.ledger.accounting import UNIT, Cost, charges, lanes, left_in_words, plus, room, share_spent

ZERO = {"basic": (0, 0), "zcdp": (0,)}
EPSILONS = st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.3, 1.0])


def budget(**given):
    return Budget.of("people", **given)


def spend(of, costs):
    """The counters after these costs, one by one, or None as soon as one is refused."""
    used = (0,) * len(lanes(of))
    for cost in costs:
        taken = charges(of, used, cost, 1)
        if taken is None:
            return None
        used = plus(used, taken)
    return used


def test_ten_tenths_are_one():
    of = budget(epsilon=1.0)
    used = spend(of, [Cost(0.1)] * 10)
    assert used == (UNIT, 0)
    assert charges(of, used, Cost(1e-9), 1) is None
    assert left_in_words(of, used) == "epsilon 0 of 1"


def test_zcdp_takes_half_the_square():
    of = budget(rho=0.5)
    assert charges(of, (0,), Cost(0.1), 1) == [(5 * 10**9,)]
    assert room(of, (0,), Cost(0.1)) == 100 and room(of, (0,), Cost(1.0)) == 1 and room(of, (0,), Cost(1.1)) == 0


def test_more_digits_than_a_unit_are_rounded_up():
    assert charges(budget(epsilon=1.0), (0, 0), Cost(1e-13), 1) == [(1, 0)]
    assert charges(budget(rho=1.0), (0,), Cost(1e-7), 1) == [(1,)]


@given(st.lists(EPSILONS, min_size=1, max_size=8), st.sampled_from(["basic", "zcdp"]), st.randoms())
def test_the_order_of_answers_does_not_matter(epsilons, how, shuffler):
    of = budget(epsilon=50.0) if how == "basic" else budget(rho=50.0)
    turned = list(epsilons)
    shuffler.shuffle(turned)
    assert spend(of, map(Cost, epsilons)) == spend(of, map(Cost, turned))


@given(st.lists(EPSILONS, max_size=8), EPSILONS, st.sampled_from(["basic", "zcdp", "optimal"]))
def test_room_is_exactly_what_can_be_charged(epsilons, next_, how):
    of = {
        "basic": budget(epsilon=3.0),
        "zcdp": budget(epsilon=3.0, delta=1e-6),
        "optimal": budget(epsilon=6.0, delta=1e-6, plan={0.05: 10, 0.3: 4, 1.0: 2}),
    }[how]
    used = (0,) * len(lanes(of))
    for epsilon in epsilons:
        used = plus(used, charges(of, used, Cost(epsilon), 1) or [])
    more = room(of, used, Cost(next_))
    assert charges(of, used, Cost(next_), more) is not None
    assert charges(of, used, Cost(next_), more + 1) is None
    assert 0 <= share_spent(of, used) <= 1
    assert all(u <= lane.allowed for u, lane in zip(used, lanes(of)))


@given(st.lists(EPSILONS, max_size=12))
def test_a_larger_answer_never_takes_less(epsilons):
    for of in (budget(epsilon=50.0), budget(rho=50.0)):
        taken = [charges(of, (0,) * len(lanes(of)), Cost(e), 1)[0] for e in sorted(epsilons)]
        assert taken == sorted(taken)


@given(st.lists(EPSILONS, max_size=30))
def test_counters_are_never_below_the_exact_sum(epsilons):
    exact = sum(Fraction(repr(e)) for e in epsilons)
    assert Fraction(spend(budget(epsilon=100.0), map(Cost, epsilons))[0], UNIT) >= exact
    squares = sum(Fraction(repr(e)) ** 2 / 2 for e in epsilons)
    assert Fraction(spend(budget(rho=100.0), map(Cost, epsilons))[0], UNIT) >= squares


def test_a_plan_gives_its_cheapest_fitting_coins_first():
    of = budget(epsilon=3.0, delta=1e-6, plan={0.1: 2, 1.0: 1})
    taken = charges(of, (0, 0), Cost(0.05), 3)
    assert taken == [(1, 0), (1, 0), (0, 1)]
    assert charges(of, (0, 0), Cost(0.05), 4) is None and charges(of, (0, 0), Cost(1.5), 1) is None
    assert left_in_words(of, (1, 0)) == "1 of 2 answers of epsilon = 0.1, 1 of 1 answers of epsilon = 1"


def test_one_epsilon_for_all_answers_gives_as_many_as_fit():
    of = budget(epsilon=4.0, delta=1e-6, plan=0.1)
    ((each, answers),) = of.plan
    assert each == 0.1 and plan_epsilon({0.1: answers}, 1e-6) <= 4.0 < plan_epsilon({0.1: answers + 1}, 1e-6)
    assert answers > 40  # more than the plain sum allows


def test_a_budget_in_epsilon_and_delta_becomes_a_rho_that_keeps_it():
    of = budget(epsilon=4.0, delta=1e-6)
    assert of.composition == "zcdp" and zcdp_epsilon(of.rho, 1e-6) <= 4.0
    assert zcdp_epsilon(of.rho * 1.0001, 1e-6) > 4.0


def test_adding_and_removing_costs_twice_where_a_record_is_replaced():
    basic, rho = budget(epsilon=10.0), budget(rho=10.0)
    once, both = Cost(1.0, adjacency="add-remove"), Cost(1.0)
    assert charges(basic, (0, 0), once, 1) == [(2 * UNIT, 0)] and charges(basic, (0, 0), both, 1) == [(UNIT, 0)]
    assert charges(rho, (0,), once, 1) == [(2 * UNIT,)]
    other = budget(epsilon=10.0, adjacency="add-remove")
    assert charges(other, (0, 0), once, 1) == [(UNIT, 0)]
    with pytest.raises(BudgetError, match="adjacency='replace-one'"):
        charges(other, (0, 0), Cost(1.0, adjacency="replace-one"), 1)


def test_answers_with_a_delta_of_their_own_are_added_up_by_basic_composition_only():
    of = budget(epsilon=2.0, delta=1e-6, composition="basic")
    assert room(of, (0, 0), Cost(0.1, 4e-7)) == 2
    for other in (budget(rho=1.0), budget(epsilon=2.0, delta=1e-6, plan=0.1)):
        with pytest.raises(BudgetError, match="composition='basic'"):
            charges(other, (0,), Cost(0.1, 1e-9), 1)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({}, "epsilon"),
        ({"epsilon": 1.0, "rho": 1.0}, "epsilon"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"rho": -1.0}, "rho"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "composition": "zcdp"}, "delta"),
        ({"epsilon": 1.0, "composition": "best"}, "composition"),
        ({"rho": 1.0, "composition": "basic"}, "rho"),
        ({"epsilon": 1.0, "delta": 1e-6, "composition": "optimal"}, "plan"),
        ({"epsilon": 1.0, "delta": 1e-6, "composition": "zcdp", "plan": 0.1}, "plan"),
        ({"epsilon": 1.0, "delta": 1e-6, "plan": 2.0}, "plan"),
        ({"epsilon": 1.0, "delta": 1e-6, "plan": {0.5: 100}}, "plan"),
        ({"epsilon": 1.0, "delta": 1e-6, "plan": {0.5: 1.5}}, "plan"),
        ({"epsilon": 1.0, "adjacency": "both"}, "adjacency"),
    ],
    ids=itertools.count(),
)
def test_budgets_that_make_no_sense_name_what_is_wrong(wrong, name):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of Ledger"):
        budget(**wrong)


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_people_need_a_name(name):
    with pytest.raises(ParameterError, match="'dataset' parameter of Ledger"):
        Budget.of(name, epsilon=1.0)


@pytest.mark.parametrize("cost", [{"epsilon": 0.0}, {"epsilon": math.nan}, {"epsilon": 1.0, "delta": 1.0}])
def test_costs_must_make_sense(cost):
    with pytest.raises(ParameterError, match="'cost' parameter of Ledger"):
        Cost(**cost)
