"""Relaxed cuts and suppression: never worse than strict, by the lot and the quasi-identifiers alone, within budget."""

from collections import Counter
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.core.cells import cell_text
from countervail.core.errors import ParameterError
from countervail.core.hierarchy import Hierarchy
from countervail.protect.mondrian.columns import FLAT, ORDERED, attributes
from countervail.protect.mondrian.constraints import DIVERSITY, FITS, make_constraints
from countervail.protect.mondrian.grow import partition
from countervail.protect.mondrian.narrow import leave_out, share_ties

CITY = Hierarchy((("a", "coast", "*"), ("b", "coast", "*"), ("c", "inland", "*"), ("d", "inland", "*")), "city")


def people(seed, n=None):
    """Few values, so that there are many ties."""
    rng = np.random.default_rng(seed)
    n = n if n is not None else int(rng.integers(8, 70))
    frame = pd.DataFrame(
        {
            "age": rng.choice([20, 30, 31, 50], n, p=[0.6, 0.2, 0.15, 0.05]),
            "city": rng.choice(["a", "b", "c", "d"], n, p=[0.6, 0.25, 0.1, 0.05]),
            "level": rng.choice(["low", "mid", "high"], n, p=[0.1, 0.7, 0.2]),
            "ill": rng.choice(["flu", "cold", "hiv"], n),
        }
    )
    if seed % 3 == 0:
        frame["age"] = frame["age"].astype(float).where(rng.random(n) > 0.1)
    columns = (
        cv.Column("age", "numeric", "quasi"),
        cv.Column("city", "categorical", "quasi"),
        cv.Column("level", "ordinal", "quasi", levels=("low", "mid", "high")),
        cv.Column("ill", "categorical", "sensitive"),
    )
    return cv.Table(frame, cv.Schema(columns))


def one_column(values, k, **given_settings):
    schema = cv.Schema((cv.Column("q", "numeric", "quasi"), cv.Column("ill", role="sensitive")))
    table = cv.Table(pd.DataFrame({"q": values, "ill": ["x"] * len(values)}), schema)
    return cv.Mondrian(k, **given_settings).fit(table).protect(table)


def contents(protector, table):
    """How many rows of each kind each class holds; rows that are alike are not told apart."""
    quasi = table.frame[table.schema.names("quasi")].astype(object)
    rows = [tuple(map(str, row)) for row in quasi.itertuples(index=False)]
    classes = {}
    for cell, row in zip(protector.cell_of_.tolist(), rows):
        classes.setdefault(cell, Counter())[row] += 1
    return {cell: sorted(held.items()) for cell, held in classes.items()}


def losses(protector, table):
    """NCP of each row's class; NaN where the row is left out."""
    by_class = cv.measure.ncp(protector.protect(table), table=table)
    assert len(by_class) == len(table) - protector.suppressed_
    from countervail.core.loss import ncp

    each = ncp(protector.regions_, table)
    return np.where(protector.cell_of_ >= 0, each[protector.cell_of_], np.nan)


# ---------------------------------------------------------------- worked examples


def test_ties_are_shared_out_where_no_strict_cut_is_left():
    """Fifteen 1 and six 2 at k=10: the 2 need four 1; the other eleven are published as they are."""
    values = [1] * 15 + [2] * 6
    assert Counter(cell_text(c) for c in one_column(values, 10).to_frame()["q"]) == {"1-2": 21}
    relaxed = one_column(values, 10, mode="relaxed")
    assert Counter(cell_text(c) for c in relaxed.to_frame()["q"]) == {"1": 11, "1-2": 10}
    assert any("by lot" in text for text in relaxed.caveats)


def test_an_outlier_is_left_out_to_spare_the_others():
    values = [1] * 12 + [9]
    assert Counter(cell_text(c) for c in one_column(values, 10).to_frame()["q"]) == {"1-9": 13}
    release = one_column(values, 10, suppress=0.08)
    assert Counter(cell_text(c) for c in release.to_frame()["q"]) == {"1": 12}
    assert release.suppressed == 1
    assert "1 row(s) were suppressed to spare the others; 1 were allowed." in release.caveats
    assert one_column(values, 10, suppress=0.05).suppressed == 0


def test_the_move_that_spares_most_per_row_comes_first():
    """Two 9 above ten 1 cost 10 of width for two rows; one 105 above ten 101 costs 4 for one row."""
    values = [1] * 10 + [9] * 2 + [101] * 10 + [105]
    release = one_column(values, 10, suppress=0.05)  # one row of 23
    assert Counter(cell_text(c) for c in release.to_frame()["q"]) == {"1-9": 12, "101": 10}
    release = one_column(values, 10, suppress=0.14)  # three rows
    assert Counter(cell_text(c) for c in release.to_frame()["q"]) == {"1": 10, "101": 10}


# ---------------------------------------------------------------- properties of tables


@pytest.mark.parametrize("choose", ["gain", "span"])
def test_relaxed_refines_strict_and_loses_no_more(choose):
    finer = 0
    for seed in range(80):
        table, k = people(seed), 2 + seed % 5
        strict = cv.Mondrian(k, choose=choose).fit(table)
        relaxed = cv.Mondrian(k, choose=choose, mode="relaxed").fit(table)
        inside = {(int(r), int(s)) for r, s in zip(relaxed.cell_of_, strict.cell_of_)}
        assert len(inside) == len(relaxed.regions_)  # no class takes rows of two strict cells
        assert (losses(relaxed, table) <= losses(strict, table) + 1e-12).all()
        release = relaxed.protect(table)
        assert len(np.unique(release.classes())) >= len(strict.regions_)
        finer += len(relaxed.regions_) > len(strict.regions_)
        quasi = table.frame[table.schema.names("quasi")]
        for cell, size in enumerate(np.bincount(relaxed.cell_of_)):
            alike = len(quasi[relaxed.cell_of_ == cell].drop_duplicates()) == 1
            assert k <= size
            assert size < 2 * k or alike
    assert finer > 40


def test_relaxed_keeps_l_and_t_by_a_recount():
    released = 0
    for seed in range(60):
        table = people(seed)
        try:
            release = cv.Mondrian(3, l=2, t=0.5, sensitive="ill", mode="relaxed").fit(table).protect(table)
        except ParameterError:
            continue
        released += 1
        share = table.frame["ill"].value_counts(normalize=True)
        for _, values in release.others.groupby(release.classes())["ill"]:
            assert len(values) >= 3
            assert values.nunique() >= 2
            held = values.value_counts(normalize=True).reindex(share.index, fill_value=0)
            assert (held - share).abs().sum() / 2 <= 0.5 + 1e-9
    assert released > 40


def test_relaxed_names_by_hierarchy_and_by_class():
    table = people(4, 60)
    release = cv.Mondrian(4, mode="relaxed", hierarchies={"city": CITY}, labels="hierarchy").fit(table).protect(table)
    assert np.bincount(release.classes()).min() >= 4
    named = cv.Table(table.frame, table.schema).with_roles(sensitive=[], target=["ill"])
    parted = cv.Mondrian(3, mode="relaxed", by_class=True).fit(named).protect(named)
    assert (parted.others.groupby(parted.groups)["ill"].nunique() == 1).all()


def test_what_goes_where_depends_on_quasi_identifiers_alone():
    """The proof that k withstands the algorithm rests on this: neither row order nor other columns take part."""
    for seed in range(30):
        table = people(seed, 50)
        mixed = np.random.default_rng(seed).permutation(50)
        other = cv.Table(table.frame.assign(ill=table.frame["ill"].to_numpy()[mixed]), table.schema)
        for given_settings in ({"mode": "relaxed"}, {"suppress": 0.2}, {"mode": "relaxed", "suppress": 0.2}):
            first = contents(cv.Mondrian(4, **given_settings).fit(table), table)
            assert contents(cv.Mondrian(4, **given_settings).fit(table.take(mixed)), table.take(mixed)) == first
            assert contents(cv.Mondrian(4, **given_settings).fit(other), other) == first


def test_the_lot_treats_equal_people_alike():
    """Fifteen equal people, eleven of whom stand alone: each of them does so in 11 of 15 draws."""
    schema = cv.Schema((cv.Column("q", "numeric", "quasi"),))
    table = cv.Table(pd.DataFrame({"q": [1] * 15 + [2] * 6}), schema)
    draws = 600
    alone = np.zeros(15)
    for seed in range(draws):
        fitted = cv.Mondrian(10, mode="relaxed", random_state=seed).fit(table)
        sizes = np.bincount(fitted.cell_of_)
        alone += sizes[fitted.cell_of_[:15]] == 11
    assert alone.sum() == 11 * draws
    # The variance of one person's count, and a band that fifteen of them leave once in a million.
    spread = np.sqrt(draws * 11 / 15 * 4 / 15)
    assert (abs(alone - draws * 11 / 15) < 5.5 * spread).all()


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
def test_suppression_keeps_its_budget_and_widens_no_label(mode):
    used = 0
    for seed in range(60):
        table, k = people(seed), 2 + seed % 4
        share = [0.0, 0.03, 0.1, 0.5][seed % 4]
        plain = cv.Mondrian(k, mode=mode, random_state=0).fit(table)
        spared = cv.Mondrian(k, mode=mode, suppress=share, random_state=0).fit(table)
        release = spared.protect(table)
        assert release.suppressed == (spared.cell_of_ < 0).sum() <= share * len(table)
        assert len(release) + release.suppressed == len(table)
        assert np.bincount(release.classes()).min() >= k
        kept = spared.cell_of_ >= 0
        assert (losses(spared, table)[kept] <= losses(plain, table)[kept] + 1e-12).all()
        if share:
            assert any(text.startswith(f"{release.suppressed} row(s)") for text in release.caveats)
        used += release.suppressed
    assert used > 50


def test_suppression_keeps_l():
    for seed in range(30):
        table = people(seed, 60)
        release = cv.Mondrian(4, l=2, sensitive="ill", suppress=0.2).fit(table).protect(table)
        assert (release.others.groupby(release.classes())["ill"].nunique() >= 2).all()


def test_new_rows_go_to_the_strict_cells():
    table = people(5, 60)
    new = people(6, 40)
    strict = cv.Mondrian(3, random_state=0).fit(table)
    relaxed = cv.Mondrian(3, mode="relaxed", suppress=0.2, random_state=0).fit(table)
    assert strict.tree_.to_json() == relaxed.tree_.to_json()
    assert strict.protect(new.frame).regions.text() == relaxed.protect(new.frame).regions.text()


def test_the_promise_is_that_of_strict_cuts():
    assert cv.Mondrian(5, mode="relaxed", suppress=0.1).guarantee() == cv.KAnonymity(5, against="algorithm")
    weaker = cv.Mondrian(5, mode="relaxed", l=2, sensitive="ill", suppress=0.1).guarantee()
    assert weaker.parts[0] == cv.KAnonymity(5, against="register")


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"mode": "loose"}, "'mode' parameter of Mondrian must be one of"),
        ({"suppress": 1.0}, "at least 0 and below 1"),
        ({"suppress": -0.1}, "at least 0 and below 1"),
        ({"suppress": "all"}, "at least 0 and below 1"),
        ({"suppress": 0.1, "t": 0.3, "sensitive": "ill"}, "'suppress' parameter of Mondrian must be 0 with t"),
    ],
)
def test_bad_settings_say_what_to_do(given_settings, message):
    with pytest.raises(ParameterError, match=message):
        cv.Mondrian(3, **given_settings).fit(people(1))


@pytest.mark.parametrize(
    ("ages", "k", "budget"),
    [
        ([1, 1, 1, 2], 2, 0),
        ([1, 1, 2, 2, 3], 2, 0),
        ([1, 1, 1, 2], 2, 1),
        ([1, 1, 1, 1, 9], 2, 1),
        ([1, 2, 2, 2], 2, 2),
    ],
)
def test_whoever_knows_the_code_finds_nobody_with_more_than_one_in_k(ages, k, budget):
    """All ways to hand out different secrets, all lots: how likely a secret is a person's, given the release."""
    n = len(ages)
    codes = np.unique(ages, return_inverse=True)[1].astype(np.int32)[:, None]
    values = np.unique(ages).astype(float)
    data = attributes(
        np.zeros(1, np.int8), np.array([len(values)], np.int32), np.zeros(1, bool), values[None], np.ptp(values)[None]
    )
    nobody = np.zeros(n, np.int32)
    rules = make_constraints(nobody, np.ones(n, np.int64), 1, k)
    found = partition(codes, np.ones(n, np.int64), nobody, data, rules)
    worlds = {}
    for drawn in permutations(range(n)):
        order = np.array(drawn, np.int64)
        cells, n_cells = share_ties(codes, nobody, found.cell_of, found.n_cells, data, rules, order)
        cells = leave_out(codes, nobody, cells, n_cells, data, rules, budget)
        for secrets in permutations(range(n)):
            classes = {}
            for person in range(n):
                if cells[person] >= 0:
                    classes.setdefault(int(cells[person]), []).append(person)
            shown = tuple(
                sorted(
                    (min(ages[p] for p in c), max(ages[p] for p in c), tuple(sorted(secrets[p] for p in c)))
                    for c in classes.values()
                )
            )
            worlds.setdefault(shown, []).append(secrets)
    assert len(worlds) > 1
    for shown, possible in worlds.items():
        published = {secret for *_, held in shown for secret in held}
        for person in range(n):
            for secret in published:
                assert sum(w[person] == secret for w in possible) * k <= len(possible)


# ---------------------------------------------------------------- slow twins on codes


def coded(seed):
    """Codes of ordered and flat attributes, with classes that strict cuts leave."""
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(5, 45)), int(rng.integers(1, 4))
    sizes = rng.integers(2, 6, q).astype(np.int32)
    kind = rng.integers(0, 2, q).astype(np.int8)
    codes = np.column_stack([rng.choice(s, n, p=(w := rng.random(s) ** 2 + 0.02) / w.sum()) for s in sizes])
    positions = np.cumsum(rng.integers(1, 4, (q, int(sizes.max()))), axis=1).astype(float)
    span = np.where(kind == ORDERED, positions[np.arange(q), sizes - 1] - positions[:, 0], sizes)
    data = attributes(kind, sizes, np.zeros(q, bool), positions, span)
    secret = rng.integers(0, 3, n).astype(np.int32)
    diverse = DIVERSITY["distinct" if seed % 3 == 0 else "none"]
    rules = make_constraints(secret, np.ones(n, np.int64), 3, int(rng.integers(1, 5)), diverse, 2)
    return codes.astype(np.int32), secret, data, rules


def twin_loss(rows, codes, data):
    total = 0.0
    for j in range(codes.shape[1]):
        values = sorted({int(codes[r, j]) for r in rows})
        if len(values) > 1 and data.kind[j] == FLAT:
            total += len(values) / data.span[j]
        elif len(values) > 1:
            total += (data.positions[j, values[-1]] - data.positions[j, values[0]]) / data.span[j]
    return total


def twin_fits(rows, secret, rules):
    return len(rows) >= rules.k and (rules.diversity == 0 or len({int(secret[r]) for r in rows}) >= rules.l)


def twin_share_ties(rows, codes, secret, data, rules):
    """Rows in the order of content and lot; classes as lists."""
    best, least = None, np.inf
    for j in range(codes.shape[1]) if len(rows) >= 2 * rules.k else ():
        held = Counter(int(codes[r, j]) for r in rows)
        if len(held) == 1:
            continue
        values = sorted(held) if data.kind[j] == ORDERED else sorted(held, key=lambda v: (-held[v], v))
        line = [r for v in values for r in rows if codes[r, j] == v]
        ends = np.cumsum([held[v] for v in values])[:-1].tolist()
        border = min([0, *ends], key=lambda e: abs(2 * e - len(rows)))
        for at in (border, len(rows) // 2, rules.k, len(rows) - rules.k):
            if twin_fits(line[:at], secret, rules) and twin_fits(line[at:], secret, rules):
                loss = at * twin_loss(line[:at], codes, data) + (len(rows) - at) * twin_loss(line[at:], codes, data)
                if loss < least - 1e-12:
                    best, least = (line[:at], line[at:]), loss
    if best is None:
        return [rows]
    return [part for half in best for part in twin_share_ties(half, codes, secret, data, rules)]


def as_sets(cell_of):
    return {frozenset(np.flatnonzero(cell_of == c).tolist()) for c in set(cell_of.tolist()) if c >= 0}


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_shared_ties_are_those_of_the_slow_twin(seed):
    codes, secret, data, rules = coded(seed)
    found = partition(codes, np.ones(len(codes), np.int64), secret, data, rules)
    if found.failed != FITS:
        return
    drawn = np.random.default_rng(seed).permutation(len(codes))
    cells, n_cells = share_ties(codes, secret, found.cell_of, found.n_cells, data, rules, drawn)
    order = sorted(drawn.tolist(), key=lambda r: tuple(codes[r]))
    twin = set()
    for cell in range(found.n_cells):
        rows = [r for r in order if found.cell_of[r] == cell]
        twin |= {frozenset(part) for part in twin_share_ties(rows, codes, secret, data, rules)}
    assert as_sets(cells) == twin
    assert len(twin) == n_cells


def twin_leave_out(classes, codes, secret, data, rules, budget):
    """Try every move of every class, take the best, and begin again."""
    gone = set()
    while True:
        best = (0.0, None, None)
        for cell, rows in sorted(classes.items()):
            moves = []
            for j in range(codes.shape[1]):
                held = Counter(int(codes[r, j]) for r in rows)
                if len(held) < 2:
                    continue
                if data.kind[j] == ORDERED:
                    moves += [[r for r in rows if codes[r, j] == end] for end in (min(held), max(held))]
                else:
                    rarest = min(held, key=lambda v: (held[v], v))
                    moves.append([r for r in rows if codes[r, j] == rarest])
            for lost in moves:
                rest = [r for r in rows if r not in lost]
                if len(lost) <= budget - len(gone) and twin_fits(rest, secret, rules):
                    spared = len(rest) * (twin_loss(rows, codes, data) - twin_loss(rest, codes, data)) / len(lost)
                    if spared > best[0] + 1e-12:
                        best = (spared, cell, lost)
        if best[1] is None:
            return gone
        gone |= set(best[2])
        classes[best[1]] = [r for r in classes[best[1]] if r not in gone]


@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.05, 0.2, 0.6]))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_rows_left_out_are_those_of_the_slow_twin(seed, share):
    codes, secret, data, rules = coded(seed)
    found = partition(codes, np.ones(len(codes), np.int64), secret, data, rules)
    if found.failed != FITS:
        return
    budget = int(share * len(codes))
    cells = leave_out(codes, secret, found.cell_of, found.n_cells, data, rules, budget)
    classes = {c: np.flatnonzero(found.cell_of == c).tolist() for c in range(found.n_cells)}
    assert set(np.flatnonzero(cells < 0).tolist()) == twin_leave_out(classes, codes, secret, data, rules, budget)
    assert (cells < 0).sum() <= budget
    assert (cells[cells >= 0] == found.cell_of[cells >= 0]).all()
