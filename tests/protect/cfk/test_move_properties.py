"""What holds of every private answer, on random tables: whatever the reward, the limits and the number of answers."""

import numpy as np
import pytest
from moves_twin import LIMITS, REWARDS, breaches, impure, labels, otherwise, people, permuted, scores

import countervail as cv

pytestmark = pytest.mark.usefixtures("quick_groups")

SETTINGS = [{}, *LIMITS.values(), {"max_changes": 1}, {"costs": {"pay": 5.0, "city": 0.2}}]
PARTS = 4  # of the tables, so that several processors share them


def drawn(seed):
    """Two tables that differ by a permutation within groups, the protectors fitted to them, and questions."""
    rng = np.random.default_rng([seed, 17])
    table, queries = people(seed, int(rng.integers(14, 36))), people(seed + 100_000, 6).features
    if (table.frame[["city", "ill"]].nunique() < 3).any():  # a limit may name any value
        table = people(seed, 60)
    model, k = (labels if rng.random() < 0.5 else scores)(seed), int(rng.integers(2, 6))
    one = cv.CFK(k=k).fit(table, model)
    other = permuted(table, one.search_.row_group_, seed)
    return rng, table, model, queries, one, cv.CFK(k=k).fit(other, model), other


def said(e, query):
    """All that an asker is told."""
    rows = [e[int(i)] for i in np.flatnonzero(e.query == query)]
    return [(a.status, a.to_text(), a.own, a.note) for a in rows]


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_keep_promise_constraints_and_decision_alone_or_among_others(part, seeds):
    """Private vectors that are permuted within groups change nothing; no value of a cell breaks a constraint; every
    combination leads to the decision; at least k people share what moved; a question alone gets the same answer."""
    tables, answers = seeds(16, 2_000)[part::PARTS], 0
    for seed in tables:
        rng, table, model, queries, one, two, _kept = drawn(seed)
        for reward in REWARDS:
            limits, n = SETTINGS[rng.integers(len(SETTINGS))], int(rng.choice([1, 3]))
            first, second = (otherwise(p, reward=reward, n_counterfactuals=n, **limits) for p in (one, two))
            e = first.explain(queries)
            assert e.to_json() == second.explain(queries).to_json(), (seed, reward)
            plain = {name: given for name, given in limits.items() if name not in ("max_changes", "costs")}
            assert breaches(e, table, **plain) == [], (seed, reward)
            assert impure(e, table, model) == 0, (seed, reward)
            assert not e.found.any() or (e.pureness[e.found] == 1).all(), (seed, reward)
            assert e.guarantee.refute(e, table) is None, (seed, reward)
            most = limits.get("max_changes", len(table.schema.features))
            assert all(0 < len(a.changes) <= most for a in e if a.found), (seed, reward)
            i = int(rng.integers(len(queries)))
            assert said(first.explain(queries.iloc[[i]]), 0) == said(e, i), (seed, reward)
            answers += int(e.found.sum())
    assert answers > 10 * len(tables)


@pytest.mark.parametrize("reward", REWARDS)
def test_asking_otherwise_is_as_fitting_otherwise(reward):
    """What the property above takes for granted."""
    for seed in range(3):
        table, queries = people(seed, 30), people(seed + 500, 8).features
        model, settings = scores(seed), {"reward": reward, "n_counterfactuals": 2, **LIMITS["all at once"]}
        changed = otherwise(cv.CFK(k=3).fit(table, model), **settings).explain(queries)
        assert changed.to_json() == cv.CFK(k=3, **settings).fit(table, model).explain(queries).to_json()
