"""Reruns that look for a broken promise: they end early, and find what all of them would have found."""

import math

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.guarantee import evidence
from countervail.core.guarantee.evidence import rerun_evidence
from countervail.core.guarantee.two_shares import share_above, share_below

RERUNS, ALPHA = 40, 1e-3
TABLE = cv.Table.from_frame(pd.DataFrame({"x": [1, 2, 3], "y": ["a", "b", "c"]}), target="y")


@pytest.fixture(autouse=True)
def held(monkeypatch):
    """An outcome is whether the first record is held: what is counted here is not how frames are compared."""
    monkeypatch.setattr(evidence, "_outcome", lambda held, table: held)


class Reruns:
    """The first record comes back with one chance from the table itself, and with another from its neighbour."""

    def __init__(self, seed, here, there):
        rng = np.random.default_rng(seed)
        self.drawn = {True: (rng.random(RERUNS) < here).tolist(), False: (rng.random(RERUNS) < there).tolist()}
        self.hits, self.misses = (sum(self.drawn[side]) for side in (True, False))
        self.done = 0

    def __call__(self, table):
        self.done += 1
        return self.drawn[table is TABLE].pop(0)

    def proof(self, epsilon):
        """The bound from all reruns, by the definition; None where it proves nothing."""
        low, high = share_below(self.hits, RERUNS, ALPHA / 2), share_above(self.misses, RERUNS, ALPHA / 2)
        bound = math.log(low / high) if low > 0 else -math.inf
        return bound if bound > epsilon else None


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 1.2])
def test_an_early_end_finds_what_all_reruns_find(epsilon):
    proofs = 0
    for seed in range(150):
        here, there = np.random.default_rng(seed).choice([0.0, 0.2, 0.6, 0.8, 0.9, 1.0], 2)
        again = Reruns(seed, here, there)
        due = again.proof(epsilon)
        found = rerun_evidence(True, TABLE, again, epsilon, reruns=RERUNS, alpha=ALPHA)
        assert (None if found is None else found.epsilon) == (due if due is None else pytest.approx(due))
        if found is not None:
            assert (found.hits, found.misses, again.done) == (again.hits, again.misses, 2 * RERUNS)
            assert found.refutes(epsilon)
            proofs += 1
    assert proofs > 5


def test_nothing_is_run_where_so_few_reruns_could_prove_nothing():
    again = Reruns(0, 1.0, 0.0)
    assert rerun_evidence(True, TABLE, again, 5.0, reruns=RERUNS) is None
    assert again.done == 0


def test_an_answer_that_never_comes_again_ends_the_reruns_soon():
    again = Reruns(0, 0.0, 0.0)
    assert rerun_evidence(True, TABLE, again, 1.0, reruns=RERUNS) is None
    assert again.done < RERUNS / 2
