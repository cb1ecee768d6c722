"""What a draw spends, by the noise that it really asks OpenDP for: whoever forgets to pay is seen all the same.

The sum is made from sensitivities and scales, by the formulas of the proof; what `NoiseBudget` says it has spent is not
looked at.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from dp_mechanisms import GRID, rule
from synthetic_mechanisms import DELTA, EPSILON

from countervail.protect.dp.private_logistic import trained
from countervail.protect.dp.synthetic import accounting
from countervail.protect.dp.synthetic.accounting import UNIT, NoiseBudget
from countervail.protect.dp.synthetic.draw import TOTAL, draw_counts

# Columns that go with each other: all pairs of the tree are worth counting, so the whole budget is spent.
TABLE = np.tile(np.array([[0, 1, 2], [1, 2, 3], [0, 0, 0], [1, 3, 4]]), (400, 1))


class UnpaidTotal(NoiseBudget):
    """Draws the total beside the budget, and gives its share to everything else."""

    def counts(self, exact, budget):
        if exact.size == 1:
            return NoiseBudget(EPSILON, DELTA, self.adjacency).counts(exact, budget)
        return super().counts(exact, budget / (1 - TOTAL))

    def sums(self, exact, budget, l1, l2_squared):
        return super().sums(exact, budget / (1 - TOTAL), l1, l2_squared)

    def choose(self, scores, budget):
        return super().choose(scores, budget / (1 - TOTAL))


@contextmanager
def metered(far):
    """The rho of every noise that OpenDP is asked for meanwhile; `far` says how far one record moves what it is on."""
    found, real = [], accounting._opendp

    def opendp():
        dp = real()

        def listening(name):
            def make(domain, *about, scale):
                drawn = getattr(dp.m, name)(domain, *about, scale=scale)

                def draw(exact):
                    found.append((UNIT if name == "make_noisy_max" else far(exact)) ** 2 / (2 * scale**2))
                    return drawn(exact)

                return type("Heard", (), {"map": drawn.map, "__call__": staticmethod(draw)})()

            return make

        names = ("make_gaussian", "make_laplace", "make_noisy_max")
        kept = {n: getattr(dp, n) for n in dir(dp) if not n.startswith("_") and n != "m"}
        return SimpleNamespace(**kept, m=SimpleNamespace(**{n: listening(n) for n in names}))

    accounting._opendp = opendp
    try:
        yield found
    finally:
        accounting._opendp = real


def spent_by_the_draw(kind):
    """The rho that one draw of PrivateSynthetic spends, and the one that was promised."""
    budget = kind(EPSILON, DELTA, "add-remove")
    with metered(lambda exact: 1.0) as found:
        draw_counts(TABLE, rule(TABLE).astype(np.int64), 2, GRID, budget)
    return sum(found), float(budget.total)


def spent_by_the_training(kind):
    """The same of a private model: counts of columns move by one, slopes by their length."""
    budget, sizes = kind(EPSILON, DELTA, "add-remove"), {1, *GRID.sizes.tolist()}
    longest = accounting.root_above(len(GRID.axes) * 2**40)
    width = int(GRID.sizes.sum())
    with metered(lambda exact: 1.0 if len(exact) in sizes and len(exact) != width else longest) as found:
        trained(TABLE, rule(TABLE).astype(np.int64), 2, GRID, budget, 3)
    return sum(found), float(budget.total)


SPENT = {"the whole draw": spent_by_the_draw, "a private model": spent_by_the_training}
