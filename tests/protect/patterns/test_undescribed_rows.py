"""k-common patterns for rows that no rule covers: nobody is deleted, and every pattern fits k rows."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv


def people(seed, n=40, classes=2):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.choice(list("xyz"), n), "b": rng.choice(list("pq"), n), "c": rng.integers(0, 4, n)})
    frame["ok"] = rng.choice([f"k{i}" for i in range(classes)], n)
    frame.loc[: classes - 1, "ok"] = [f"k{i}" for i in range(classes)]
    return cv.Table.from_frame(frame, target="ok")


@pytest.mark.parametrize("objects", ["max", "min"])
@pytest.mark.parametrize("spread", [False, True])
def test_nobody_is_deleted_and_every_pattern_fits_k_rows(objects, spread, seeds):
    lost = 0
    for seed in seeds(8, 400):
        table = people(seed, classes=2 + seed % 2)
        wide = cv.KCommonPatterns(3, objects, spread, undescribed="widen", random_state=0).fit(table)
        release = wide.protect(table)
        assert release.suppressed == 0 and (release.regions.count(table.frame) >= 3).all()
        assert release.regions.covers(table.frame).any(axis=0).all()
        try:
            before = cv.KCommonPatterns(3, objects, spread, random_state=0).fit(table).protect(table)
        except cv.RefusedError:
            continue
        lost += before.suppressed
        added = set(release.regions.text()) - set(before.regions.text())
        assert bool(added) <= bool(before.suppressed)
        assert (len(before.caveats) > 0) and any("leave the class open" in c for c in release.caveats) == bool(
            before.suppressed
        )
    assert lost > 0


def test_a_widened_pattern_is_that_of_the_rows_most_like_it():
    # Nobody shares all three values with a row of another class, and no value settles the class for three rows.
    frame = pd.DataFrame({"a": list("xxxyyy"), "b": list("ppqqpq"), "ok": list("ghghgh")})
    table = cv.Table.from_frame(frame, target="ok")
    wide = cv.KCommonPatterns(3, undescribed="widen", random_state=0).fit(table)
    release = wide.protect(table)
    assert len(wide.rules_) == 0
    shown = {(frozenset(r.cells["a"]), frozenset(r.cells["b"]), frozenset(r.cells["ok"])) for r in release.regions}
    assert all(ok == {"g", "h"} for _, _, ok in shown)
    for i, row in frame.iterrows():
        alike = (frame.a == row.a).astype(int) + (frame.b == row.b)
        order = sorted(range(6), key=lambda j, alike=alike: (-alike[j], frame.a[j], frame.b[j], frame.ok[j]))
        near = [i, *[j for j in order if j != i]][:3]
        assert any(a <= set(frame.a[near]) and b <= set(frame.b[near]) for a, b, _ in shown)


def test_the_published_way_stays_the_default_and_others_are_refused():
    table = cv.load("toy_evaluation")
    plain = cv.KCommonPatterns(2, random_state=0).fit(table).protect(table)
    wide = cv.KCommonPatterns(2, undescribed="widen", random_state=0).fit(table).protect(table)
    assert sorted(plain.regions.text()) == sorted(wide.regions.text())  # nobody is undescribed there
    with pytest.raises(ValueError, match="'undescribed' parameter of KCommonPatterns must be 'delete' or 'widen'"):
        cv.KCommonPatterns(2, undescribed="guess").fit(table)


def test_german_credit_loses_nobody():
    table = cv.load("german_credit").take(np.arange(300))
    assert cv.KCommonPatterns(10, random_state=0).fit(table).protect(table).suppressed > 0
    wide = cv.KCommonPatterns(10, undescribed="widen", random_state=0).fit(table).protect(table)
    assert wide.suppressed == 0 and wide.regions.covers(table.frame).any(axis=0).all()
    assert (wide.regions.count(table.frame) >= 10).all()
