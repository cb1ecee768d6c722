"""What does the form of PrivateSynthetic cost? One tree of pairs beside two trees, and beside cliques of three.

All forms spend the same budget: a total, single columns, choices, counts. Two trees share the choices and the counts,
and make half of the rows each; a pair of the first is not offered to the second. Cliques of three are grown column by
column: each is joined to the pair of columns, already joined together, with which it is farthest from what columns
alone say. A budget of 1,000 shows the form without noise.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(ROOT / "benchmarks" / "studies")]

from _record import parse, write  # noqa: E402
from synthetic import People, Setting, fidelity, show  # noqa: E402

import countervail as cv  # noqa: E402
from _private import provenance  # noqa: E402
from countervail.core.rng import generator  # noqa: E402
from countervail.core.stats import mean_interval, plain_json  # noqa: E402
from countervail.protect.dp.synthetic.accounting import UNIT, NoiseBudget  # noqa: E402
from countervail.protect.dp.synthetic.bins import nearest_counts  # noqa: E402
from countervail.protect.dp.synthetic.column_tree import ColumnTree  # noqa: E402
from countervail.protect.dp.synthetic.draw import BudgetShares, cell_counts, settle  # noqa: E402
from countervail.protect.dp.synthetic.edges import pair_counts, pair_scores  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "synthetic_forms.json"
SETS = ("adult", "compas", "acs_public_coverage_ca_2018")
EPSILONS = (1.0, 10.0, 1000.0)
FORMS = ("tree", "two trees", "cliques of three")
_STEPS, _HALVINGS, _GAIN = 1000, 40, 1e-6


class CliqueTree:
    """Counts of columns and of cliques of three that agree: as ColumnTree, with pairs of columns between cliques.

    `cliques[i]` is (column, a, b): the column is new, and a and b are together in an earlier clique; the first has
    three new columns.
    """

    def __init__(self, sizes: list[int], cliques: list[tuple[int, int, int]], total: float) -> None:
        self.sizes, self.cliques, self.total = sizes, cliques, max(total, 1.0)
        self.above = [0] * len(cliques)
        for i, (_, a, b) in enumerate(cliques):
            if i:
                self.above[i] = next(h for h in range(i) if {a, b} <= set(cliques[h]))
        self.home = dict.fromkeys(cliques[0], 0) | {clique[0]: i for i, clique in enumerate(cliques) if i}
        self.zero = [np.zeros([sizes[c] for c in clique]) for clique in cliques]
        self.counts = self._counts(self.zero)

    def fit(self, ones: list[Any], threes: list[Any]) -> CliqueTree:
        """Counts nearest to the noisy ones by mirror descent; single columns have their potential in their home."""
        theta, rate = self.zero, 1.0 / self.total
        loss, slope = self._loss(self.counts, ones, threes)
        for _ in range(_STEPS):
            for _ in range(_HALVINGS):
                new = [t - rate * g for t, g in zip(theta, slope)]
                counts = self._counts(new)
                then, then_slope = self._loss(counts, ones, threes)
                gain = sum(float((g * (a - b)).sum()) for g, a, b in zip(slope, self.counts, counts))
                if then <= loss - 0.5 * gain + 1e-9:
                    break
                rate /= 2
            done = loss - then < _GAIN * max(loss, 1.0)
            theta, self.counts, loss, slope = new, counts, then, then_slope
            rate *= 1.25
            if done:
                break
        return self

    def sample(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Rows of bins: the first clique, then each column given the two it is joined to."""
        out = np.zeros((rows, len(self.sizes)), dtype=np.int64)
        first = np.maximum(self.counts[0], 0).ravel()
        drawn = rng.choice(first.size, rows, p=first / first.sum())
        for column, values in zip(self.cliques[0], np.unravel_index(drawn, self.counts[0].shape)):
            out[:, column] = values
        for (c, a, b), table in list(zip(self.cliques, self.counts))[1:]:
            given = table.reshape(table.shape[0], -1).T + 1e-12
            ends = np.cumsum(given, axis=1)
            ends /= ends[:, -1:]
            row = out[:, a] * self.sizes[b] + out[:, b]
            out[:, c] = np.minimum((ends[row] < rng.random(rows)[:, None]).sum(axis=1), self.sizes[c] - 1)
        return out

    def _counts(self, theta: list[np.ndarray]) -> list[np.ndarray]:
        up = [t.copy() for t in theta]
        sent: list[Any] = [None] * len(up)
        for i in range(len(up) - 1, 0, -1):
            top = up[i].max(axis=0)
            sent[i] = top + np.log(np.exp(up[i] - top).sum(axis=0))
            h, (_, a, b) = self.above[i], self.cliques[i]
            up[h] += self._spread(sent[i], (a, b), h)
        weights = np.exp(up[0] - up[0].max())
        out = [weights / weights.sum() * self.total]
        for i in range(1, len(up)):
            _, a, b = self.cliques[i]
            out.append(np.exp(up[i] - sent[i]) * self._pair(out[self.above[i]], (a, b), self.above[i]))
        return out

    def _spread(self, table: np.ndarray, pair: tuple[int, int], clique: int) -> np.ndarray:
        """A table of two columns beside the third."""
        places = [self.cliques[clique].index(c) for c in pair]
        table = table if places[0] < places[1] else table.T
        return np.expand_dims(table, ({0, 1, 2} - set(places)).pop())

    def _pair(self, table: np.ndarray, pair: tuple[int, int], clique: int) -> np.ndarray:
        places = [self.cliques[clique].index(c) for c in pair]
        out = table.sum(axis=({0, 1, 2} - set(places)).pop())
        return out if places[0] < places[1] else out.T

    def _loss(self, counts: list[np.ndarray], ones: list[Any], threes: list[Any]) -> tuple[float, list[np.ndarray]]:
        loss, slope = 0.0, []
        for m, (y, v) in zip(counts, threes):
            slope.append((m - y) / v)
            loss += float((slope[-1] ** 2 * v).sum()) / 2
        for column, (y, v) in enumerate(ones):
            h = self.home[column]
            place = self.cliques[h].index(column)
            others = tuple({0, 1, 2} - {place})
            g = (counts[h].sum(axis=others) - y) / v
            loss += float((g * g * v).sum()) / 2
            slope[h] = slope[h] + np.expand_dims(g, others)
        return loss, slope


def three_counts(binned: Any, strata: Any, marginals: Any, clique: tuple[int, int, int]) -> np.ndarray:
    """Records by stratum and the bins of three columns."""
    shape = [len(marginals[0].noisy), *(marginals[c].size for c in clique)]
    at = np.ravel_multi_index([strata, *(binned[:, c] for c in clique)], shape)
    return np.bincount(at, minlength=math.prod(shape)).reshape(shape).astype(np.int64)


def grow_cliques(binned: Any, strata: Any, marginals: Any, totals: Any, noise: float, choose: Any) -> list[Any]:
    """Cliques of three, each chosen by noisy max of how far it is from columns alone."""
    d = binned.shape[1]
    alone = [np.stack([nearest_counts(y, t) / t for y, t in zip(m.noisy, totals)]) for m in marginals]
    scores: dict[Any, int] = {}

    def score(clique: tuple[int, int, int]) -> int:
        key = tuple(sorted(clique))
        if key not in scores:
            a, b, c = (alone[j] for j in key)
            guess = totals[:, None, None, None] * a[:, :, None, None] * b[:, None, :, None] * c[:, None, None, :]
            exact = three_counts(binned, strata, marginals, key) * UNIT
            cost = int(noise * math.sqrt(2 / math.pi) * exact.size * UNIT)
            scores[key] = int(np.abs(exact - np.rint(guess * UNIT).astype(np.int64)).sum()) - cost
        return scores[key]

    offered = list(itertools.combinations(range(d), 3))
    chosen = [offered[choose(np.array([score(c) for c in offered]))]]
    inside = set(chosen[0])
    while len(inside) < d:
        pairs = {tuple(sorted(p)) for clique in chosen for p in itertools.combinations(clique, 2)}
        offered = [(c, *p) for c in range(d) if c not in inside for p in sorted(pairs)]
        picked = offered[choose(np.array([score(c) for c in offered]))]
        chosen.append(picked)
        inside.add(picked[0])
    return chosen


def made_rows(form: str, made: Any, s: Setting, epsilon: float) -> np.ndarray:
    """Synthetic rows of a form, from a draw of its own under the same budget."""
    grid, codes = made.public_.grid, made.public_.grid.codes(s.train.features)
    classes, d = made.public_.classes_of(codes), len(grid.axes)
    decisions = len(made.public_.decision.classes)
    budget = NoiseBudget(epsilon, 1e-6, "add-remove")
    total = int(budget.counts(np.array([len(codes)], dtype=np.int64), budget.total / 100)[0])
    spread = BudgetShares.of(total, d, decisions, budget)
    strata = classes if spread.strata > 1 else np.zeros(len(codes), dtype=np.int64)
    ones = [
        budget.counts(cell_counts(strata, codes[:, j], spread.strata, len(a)), spread.one)
        for j, a in enumerate(grid.axes)
    ]
    tables = d - 2 if form == "cliques of three" else 2 * (d - 1)
    each, choice = spread.pairs / tables, spread.choice * (d - 1) / tables
    wide = replace(spread)
    marginals, totals = settle(ones, grid, wide, budget)
    if form == "cliques of three":  # bins so that a cell of three has as many people as one of two had
        most = (float(totals.sum()) / (2.0 * budget.deviation(each) * spread.strata)) ** (1 / 3)
        marginals = _coarser(ones, grid, spread, budget, most)
    binned = np.column_stack([m.bins[codes[:, j]] for j, m in enumerate(marginals)])
    noise, one = budget.deviation(each), budget.deviation(spread.one) ** 2
    rng, parts = generator(None), []
    many = np.maximum(np.rint(totals / totals.sum() * len(made.codes_)), 1).astype(int)

    def choose(scores: Any) -> int:
        return int(budget.choose(scores, choice))

    if form == "cliques of three":
        cliques = grow_cliques(binned, strata, marginals, totals, noise, choose)
        noisy = [budget.counts(three_counts(binned, strata, marginals, c), each) for c in cliques]
        trees = [[lambda k: CliqueTree([m.size for m in marginals], cliques, float(totals[k])), noisy]]
    else:
        trees, used = [], set()
        for _ in range(2):
            edges = second_tree(binned, strata, marginals, totals, noise, choose, used)
            used |= set(edges)
            noisy = [budget.counts(pair_counts(binned, strata, marginals, a, b), each) for a, b in edges]
            trees.append([lambda k, e=edges: ColumnTree([m.size for m in marginals], e, float(totals[k])), noisy])
    for make, noisy in trees:
        for k, n in enumerate(many):
            fitted = make(k).fit(
                [(m.noisy[k], one * m.widths.astype(float)) for m in marginals],
                [(y[k].astype(float), noise**2) for y in noisy],
            )
            bins = fitted.sample(rng, max(int(n) // len(trees), 1))
            parts.append(np.column_stack([m.positions(rng, bins[:, j], k) for j, m in enumerate(marginals)]))
    assert budget.spent <= budget.total
    return np.concatenate(parts)


def second_tree(binned: Any, strata: Any, marginals: Any, totals: Any, noise: float, choose: Any, used: set) -> Any:
    """A tree of pairs among those that are left."""
    d = binned.shape[1]
    pairs = [p for p in itertools.combinations(range(d), 2) if p not in used]
    scores = pair_scores(lambda a, b: pair_counts(binned, strata, marginals, a, b), marginals, totals, noise, pairs)
    tree, chosen = list(range(d)), []
    for _ in range(d - 1):
        offered = [i for i, (a, b) in enumerate(pairs) if tree[a] != tree[b]]
        if not offered:
            break
        picked = choose(np.append(scores[offered], 0))
        if picked == len(offered):
            break
        a, b = pairs[offered[picked]]
        chosen.append((a, b))
        tree = [tree[a] if t == tree[b] else t for t in tree]
    return tuple(chosen)


def _coarser(ones: Any, grid: Any, spread: Any, budget: Any, most: float) -> Any:
    """Columns merged into about `most` bins."""
    from countervail.protect.dp.synthetic.bins import MarginalCounts, settle_bins
    from countervail.protect.dp.synthetic.draw import _totals

    totals, noise, out = _totals(ones), budget.deviation(spread.one), []
    for axis, noisy in zip(grid.axes, ones):
        cells = np.stack([nearest_counts(y.astype(float), t) for y, t in zip(noisy, totals)])
        alone = int(axis.numeric and axis.missing)
        bins = settle_bins(cells.sum(axis=0)[: len(axis) - alone], most, noise, axis.ordered)
        bins = np.append(bins, bins.max() + 1) if alone else bins
        out.append(MarginalCounts.of(noisy, bins, cells))
    return tuple(out)


def study(name: str, queries: int, draws: int, epsilons: tuple[float, ...]) -> dict[str, Any]:
    """All forms on one data set."""
    s = Setting(name, queries)
    found: dict[str, Any] = {}
    for epsilon in epsilons:
        base: Any = None
        for form in FORMS:
            people, apart = People(s), []
            for _ in range(draws):
                made, seconds = s.fitted(cv.PrivateSynthetic(epsilon, reward="typical", missing=s.missing))
                if form != "tree":
                    made = _remade(made, made_rows(form, made, s, epsilon), s)
                people.add(made, seconds)
                apart.append(fidelity(made, s))
            show(name, f"epsilon {epsilon:g}, {form}", people)
            base = people if form == "tree" else base
            figures = {n: float(np.mean([a[n] for a in apart])) for n in apart[0]}
            print(f"{'':<15}", {n: round(v, 4) for n, v in figures.items()}, flush=True)
            less = plain_json(mean_interval(people.mean("plaus_prox") - base.mean("plaus_prox"), 0.95))
            found[f"{form}, epsilon {epsilon:g}"] = {
                **people.to_dict(), "synthetic_table": figures, "plausibility_less_that_of_the_tree": less,
            }  # fmt: skip
    return {"n_train": len(s.train), "n_people": len(s.rows), "draws": draws, "found": found}


def _remade(made: Any, codes: np.ndarray, s: Setting) -> Any:
    """The protector with other synthetic rows behind its answers."""
    made.codes_ = codes
    classes = made.public_.classes_of(codes)
    search = cv.NICE("typical", justified=False, target=made.target, scale="range")
    made.search_ = search.fit(made._labelled(codes, classes), s.model)
    return made


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200, help="people explained per data set (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=3, help="draws of noise (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    given = parse(parser, RESULTS, quick="20 people, one draw, one set, one budget")
    epsilons = EPSILONS
    if given.quick:
        given.queries, given.draws, given.sets, epsilons = 20, 1, ["compas"], (1.0,)
    about = provenance(None, *given.sets)
    sets = {name: study(name, given.queries, given.draws, epsilons) for name in given.sets}
    write(given, {**about, "note": "reward typical; noise from the system's entropy, delta 1e-6", "sets": sets})


if __name__ == "__main__":
    main()
