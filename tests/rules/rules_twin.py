"""A slow, plain twin of rule induction: row sets are Python integers, every condition has its block."""

from itertools import combinations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from countervail.rules.inputs import build_value_table

INF = float("inf")


class Rows:
    """A value-set table row by row (equal rows are not joined): sets of values, or (low, high)."""

    def __init__(self, table, max_values=1):
        self.max_values = max_values
        at = table.group
        self.n, self.classes = len(at), len(table.classes)
        self.decisions = [int(d) for d in table.decisions[at]]
        self.columns = []
        for j, a in enumerate(table.attributes):
            if a.ordered:
                self.columns.append(list(zip(table.low[j, at].tolist(), table.high[j, at].tolist())))
            else:
                sets = [frozenset(np.flatnonzero(m).tolist()) for m in table.members(j)]
                self.columns.append([sets[int(c)] for c in table.low[j, at]])

    def inside(self, i, j):
        """Whether the conditions of row i lie inside those of row j."""
        return all(
            c[i] <= c[j] if isinstance(c[i], frozenset) else c[j][0] <= c[i][0] and c[i][1] <= c[j][1]
            for c in self.columns
        )

    def overlap(self, i, j):
        return all(
            bool(c[i] & c[j]) if isinstance(c[i], frozenset) else c[i][0] <= c[j][1] and c[j][0] <= c[i][1]
            for c in self.columns
        )


def bits(flags):
    return sum(1 << i for i, f in enumerate(flags) if f)


def number(values):
    return sum(1 << v for v in values)


def conditions(rows):
    """(attribute, kind, value, block, possible block), in the order in which ties are settled.

    With `rows.max_values`, also sets of so many nominal values, smaller ones first.
    """
    out = []
    for a, column in enumerate(rows.columns):
        if isinstance(column[0], frozenset):
            sets = sorted(set(column), key=number)
            values = sorted(frozenset().union(*column))
            sizes = range(1, min(rows.max_values, len(values) - 1) + 1) if rows.max_values > 1 else ()
            wider = [frozenset(c) for size in sizes for c in combinations(values, size)]
            sets += [s for s in wider if s not in sets]
            out += [(a, "in", s, bits(c <= s for c in column), bits(bool(c & s) for c in column)) for s in sets]
            continue
        highs, lows = sorted({c[1] for c in column}), sorted({c[0] for c in column})
        out += [(a, "<=", v, bits(c[1] <= v for c in column), bits(c[0] <= v for c in column)) for v in highs]
        out += [(a, ">=", v, bits(c[0] >= v for c in column), bits(c[1] >= v for c in column)) for v in lows]
    everyone = (1 << rows.n) - 1
    return [c for c in out if c[3] != everyone]


def effective(rows, semantics):
    decisions = rows.decisions
    imprecise = any(d & (d - 1) for d in decisions)
    if semantics != "strict" and imprecise:
        decisions = [
            int(np.bitwise_and.reduce([rows.decisions[j] for j in range(rows.n) if _equal(rows, i, j)]))
            for i in range(rows.n)
        ]
    return [
        int(np.bitwise_or.reduce([decisions[j] for j in range(rows.n) if rows.inside(j, i)])) for i in range(rows.n)
    ]


def _equal(rows, i, j):
    return all(c[i] == c[j] for c in rows.columns)


def lower(rows, union, semantics):
    reached = effective(rows, semantics)
    inside = [bool(d) and not d & ~union for d in reached]
    crisp = all(len(v) == 1 if isinstance(v, frozenset) else v[0] == v[1] for column in rows.columns for v in column)
    if crisp or semantics == "paper":
        return bits(inside), 0
    bad = [not d & union for d in rows.decisions]
    clear = [x and not any(b and rows.overlap(i, j) for j, b in enumerate(bad)) for i, x in enumerate(inside)]
    return bits(clear), bits(bad)


def mlem2(rows, goal, inside, bad, union):
    """The rules for one union, as (conditions, union, block)."""
    all_conditions, everyone, found = conditions(rows), (1 << rows.n) - 1, []
    outside, left = everyone & ~inside, goal
    while left:
        chosen, g, cov, pos = [], left, everyone, everyone
        while not chosen or cov & outside or pos & bad:
            candidates = [c for c in all_conditions if c[3] & g and (cov & ~c[3] or (bad and pos & ~c[4]))]
            if not candidates:
                chosen = None
                break
            best = max(
                candidates,
                key=lambda c: ((c[3] & g).bit_count(), (c[3] & inside).bit_count(), -c[3].bit_count()),
            )
            chosen.append(best)
            g, cov, pos = g & best[3], cov & best[3], pos & best[4]
        if chosen is None:
            left &= ~g
            continue
        for c in list(chosen):
            rest = [x for x in chosen if x is not c]
            if rest and not _meet(rest, 3, everyone) & outside and not _meet(rest, 4, everyone) & bad:
                chosen = rest
        found.append((chosen, union, _meet(chosen, 3, everyone)))
        left &= ~found[-1][2]
    for rule in list(found):
        others = 0
        for other in found:
            others |= other[2] if other is not rule else 0
        if not goal & ~others:
            found.remove(rule)
    return found


def _meet(chosen, place, everyone):
    for c in chosen:
        everyone &= c[place]
    return everyone


def unions(rows, size, semantics="strict", left=None):
    found = []
    for picked in combinations(range(rows.classes), size):
        union = number(picked)
        inside, bad = lower(rows, union, semantics)
        goal = inside if left is None else inside & left
        found += mlem2(rows, goal, inside, bad, union) if goal else []
    return found


def imprecise(rows, semantics="strict"):
    left, found = (1 << rows.n) - 1, []
    for size in range(1, rows.classes):
        new = unions(rows, size, semantics, left)
        found += new
        for rule in new:
            left &= ~rule[2]
        if not left:
            break
    return found


def supported(rows, k, semantics="strict"):
    left, found = (1 << rows.n) - 1, []
    for size in range(1, rows.classes):
        found += [rule for rule in unions(rows, size, semantics, left) if rule[2].bit_count() >= k]
        left = bits(agreed(found, i, rows.classes) != rows.decisions[i] for i in range(rows.n))
        if not left:
            break
    return found


def agreed(found, row, classes):
    """What the rules that cover a row agree on (everything where none does)."""
    known = (1 << classes) - 1
    for _, union, block in found:
        known &= union if block >> row & 1 else -1
    return known


def plain(found, attributes):
    """The twin's rules in a form to compare: per attribute an interval or a set, conclusion, support."""
    out = []
    for chosen, union, block in found:
        cells = {}
        for a, kind, v, _, _ in chosen:
            if kind == "in":
                cells[a] = cells.get(a, frozenset(range(len(attributes[a].known)))) & v
            else:
                low, high = cells.get(a, (-INF, INF))
                cells[a] = (low, min(high, v)) if kind == "<=" else (max(low, v), high)
        out.append((cells, union, block.bit_count()))
    return out


def ours(rules):
    """Our rules in the same form."""
    out = []
    for i in range(len(rules)):
        cells = {}
        for j in np.flatnonzero(rules.named[i]).tolist():
            member = rules.members[j]
            cells[j] = (
                (float(rules.low[i, j]), float(rules.high[i, j]))
                if member is None
                else frozenset(np.flatnonzero(member[i]).tolist())
            )
        out.append((cells, int(rules.conclusions[i]), int(rules.support[i])))
    return out


def lers(found, rows, attributes, classes):
    """The votes for plain coded rows, by the definition."""
    out = []
    for row in rows:
        full, partly = np.zeros(classes), np.zeros(classes)
        for cells, union, support in found:
            hits = sum(row[a] in c if isinstance(c, frozenset) else c[0] <= row[a] <= c[1] for a, c in cells.items())
            vote = np.array([union >> i & 1 for i in range(classes)]) * support * len(cells)
            full += vote if hits == len(cells) else 0
            partly += vote * hits / len(cells)
        out.append(full if full.any() else partly)
    return np.round(np.array(out), 9)


@st.composite
def decision_tables(draw, sets=False, most=14):
    """Small decision tables with a number, a level and a nominal column; with `sets`, of value sets."""
    n = draw(st.integers(2, most))
    whole = st.integers(0, 4)
    labels = st.sampled_from("xyz")
    letters = st.sampled_from("abcd")
    if sets:
        pairs = st.tuples(whole, whole).map(sorted)
        number_cells = pairs.map(lambda p: p[0] if p[0] == p[1] else pd.Interval(*p, closed="both"))
        letter_cells = st.frozensets(letters, min_size=1, max_size=3)
        label_cells = st.frozensets(labels, min_size=1, max_size=2)
    else:
        number_cells, letter_cells, label_cells = whole, letters, labels
    column = {
        name: draw(st.lists(cells, min_size=n, max_size=n))
        for name, cells in {"p": number_cells, "q": number_cells, "c": letter_cells, "y": label_cells}.items()
    }
    for i, label in enumerate("xyz"[: min(n, 3)]):
        column["y"][i] = frozenset([label]) if sets else label
    kind = object if sets else None
    frame = pd.DataFrame({name: pd.Series(column[name], dtype=kind) for name in "pqc"})
    if sets and not any(isinstance(v, pd.Interval) for v in frame["p"]):
        frame["p"] = frame["p"].astype(int)
    if sets and not any(isinstance(v, pd.Interval) for v in frame["q"]):
        frame["q"] = frame["q"].astype(int)
    return build_value_table(frame, column["y"], None, "test")
