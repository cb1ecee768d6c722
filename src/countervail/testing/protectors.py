"""The checks every protector of tables must pass."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from countervail.core.cells import fits
from countervail.core.release import Release
from countervail.core.table import Table
from countervail.protect.base import TableProtector
from countervail.registry import fact
from countervail.testing.explainers import cloned
from countervail.testing.tables import small_table

Check = Callable[[TableProtector], None]


def protector_checks(protector: TableProtector) -> Iterator[Check]:
    """The checks that apply to this protector."""
    yield check_clone_keeps_parameters
    yield check_unfitted_raises
    yield check_input_is_untouched
    yield check_refit_leaves_no_trace
    if protector.keeps_rows:
        yield check_every_row_leaves_once
        yield check_rows_are_shuffled
        if fact(type(protector), "cells_hold"):
            yield check_cells_hold_their_rows
        yield check_no_seed_differs
    yield check_no_identifier_leaves
    yield check_index_tells_nothing
    yield check_guarantee_ignores_the_data
    yield check_guarantee_survives_refutation
    yield check_same_seed_same_release
    yield check_seeded_says_so
    if fact(type(protector), "draws_noise"):
        yield check_noise_differs_without_a_seed
        yield check_only_randomised_columns_leave
    else:
        yield check_row_order_does_not_matter
    yield check_pickle_and_json_round_trip
    yield check_table_does_not_travel


def check_clone_keeps_parameters(p: TableProtector) -> None:
    """`clone` gives the same parameters."""
    assert cloned(p).get_params() == p.get_params(), "clone() changed a parameter"


def check_unfitted_raises(p: TableProtector) -> None:
    """`protect` before `fit` raises NotFittedError."""
    try:
        p.protect(small_table())
    except NotFittedError:
        return
    raise AssertionError("protect() before fit() must raise NotFittedError")


def check_input_is_untouched(p: TableProtector) -> None:
    """The table does not change."""
    table = small_table()
    before = table.frame.copy(deep=True)
    p.fit(table).protect(table)
    assert table.frame.equals(before), "fit() or protect() changed the table that it was given"


def check_refit_leaves_no_trace(p: TableProtector) -> None:
    """Fitting to another table first makes no difference."""
    table = small_table()
    again = _seeded(p).fit(small_table(40, seed=3)).fit(table)
    same = again.protect(table).to_json() == _seeded(p).fit(table).protect(table).to_json()
    assert same, "an earlier fit to another table shows in the release"


def check_every_row_leaves_once(p: TableProtector) -> None:
    """Rows are neither lost without a count nor doubled; what is not generalised is as it was."""
    table, release = small_table(), _release(p)
    all_there = len(release) + release.suppressed == len(table)
    assert all_there, "rows that leave and rows that are said to be left out are not all rows of the table"
    others = [n for n in release.others.columns if n in table.frame.columns]
    if release.suppressed == 0:
        same = _sorted(release.others[others]).equals(_sorted(table.frame[others]))
        assert same, "columns that are not generalised hold other values than the table"


def check_no_identifier_leaves(p: TableProtector) -> None:
    """No identifier, by name or by value, is in anything released."""
    table, release = small_table(), _release(p)
    names = set(table.schema.names("identifier"))
    assert not names & set(release.to_frame().columns), "an identifier is a column of the release"
    assert not names & set(release.schema.names()), "the released schema names an identifier"
    text = release.to_json() + release._repr_html_() + repr(release)
    assert not any(value in text for value in table.frame["id"]), "an identifier's value stands in what leaves"


def check_index_tells_nothing(p: TableProtector) -> None:
    """Rows are numbered anew."""
    release = _release(p)
    for frame in (release.to_frame(), release.others):
        assert frame.index.equals(pd.RangeIndex(len(frame))), "a frame that leaves has an index other than 0, 1, 2, ..."


def check_rows_are_shuffled(p: TableProtector) -> None:
    """Neither the table's order nor an order by class is left: runs are no longer than chance makes them."""
    table = small_table(400)
    release = p.fit(table).protect(table)
    place = pd.Series(np.arange(len(table)), index=table.frame["income"].to_numpy())
    place = place[~place.index.duplicated(keep=False)]
    found = place.reindex(release.others["income"]).dropna().to_numpy()
    assert len(found) > 100, "the order of the rows cannot be told: hardly any value of 'income' leaves as it was"
    tied = abs(np.corrcoef(np.arange(len(found)), found)[0, 1]) >= 0.35
    assert not tied, "released rows stand in the order of the table"
    sizes = np.bincount(release.groups)
    expected = float((sizes / sizes.sum()) @ (sizes - 1))
    runs = (np.diff(release.groups) == 0).sum()
    assert runs <= expected + 6 * np.sqrt(expected + 1), "released rows stand in the order of their classes"


def check_guarantee_ignores_the_data(p: TableProtector) -> None:
    """The promise is a function of the parameters alone."""
    before = p.guarantee()
    for seed in (0, 9):
        table = small_table(seed=seed)
        release = p.fit(table).protect(table)
        assert before == p.guarantee(), "guarantee() is another one after fit: it must be known from the parameters"
        assert release.guarantee == before, "the release carries another promise than guarantee() states"


def check_guarantee_survives_refutation(p: TableProtector) -> None:
    """The promise cannot refute itself, on these tables and on new rows sent to the same classes."""
    for seed, n in ((0, 60), (1, 61), (2, 90)):
        table = small_table(n, seed=seed)
        release = p.fit(table).protect(table)
        refuted = release.guarantee.refute(release, table, lambda t: _release(clone(p), t))
        assert refuted is None, f"the promise is broken by this release: {refuted}"


def check_cells_hold_their_rows(p: TableProtector) -> None:
    """Every released row lies in its cells: the multiset of rows can be matched to the table's, column by column."""
    table = small_table()
    release = p.fit(table).protect(table)
    frame = release.to_frame()
    keyed = table.frame.set_index("income")
    keyed = keyed[~keyed.index.duplicated(keep=False)]
    for _, row in frame[frame["income"].isin(keyed.index)].iterrows():
        for name in table.schema.names("quasi"):
            held = fits(keyed.loc[row["income"], name], row[name])
            assert held, "a released cell does not hold the value of the row that it stands for"


def check_same_seed_same_release(p: TableProtector) -> None:
    """A seed makes the release repeatable."""
    table = small_table()
    one, other = (_seeded(p).fit(table).protect(table).to_json() for _ in range(2))
    assert one == other, "two fits with the same random_state release different tables"


def check_no_seed_differs(p: TableProtector) -> None:
    """Without a seed the order of the rows is drawn from the system's entropy."""
    table = small_table()
    if p.get_params()["random_state"] is None:
        orders = {tuple(p.fit(table).protect(table).others["income"]) for _ in range(3)}
        assert len(orders) > 1, "three releases without a seed have the same order of rows"


def check_seeded_says_so(p: TableProtector) -> None:
    """A seed is a caveat, and is not told."""
    table, seed = small_table(), 987654321
    release = clone(p).set_params(random_state=seed).fit(table).protect(table)
    assert any("seed" in text for text in release.caveats), "a seeded release does not say so in a caveat"
    assert str(seed) not in release.to_json(), "the seed stands in what leaves"
    free = _release(clone(p).set_params(random_state=None))
    assert not any("seed" in text for text in free.caveats), "a release without a seed says that it is seeded"


def check_row_order_does_not_matter(p: TableProtector) -> None:
    """The classes are the same however the table's rows are sorted."""
    table = small_table()
    turned = table.take(np.arange(len(table))[::-1])
    one, other = p.fit(table).protect(table), clone(p).fit(turned).protect(turned)
    same = sorted(_class_texts(one)) == sorted(_class_texts(other))
    assert same, "the classes are others when the table's rows stand in another order"


def check_noise_differs_without_a_seed(p: TableProtector) -> None:
    """Two unseeded fits draw different noise; one fit releases one draw, however often it is asked."""
    table, free = small_table(), clone(p).set_params(random_state=None)
    drawn = [_sorted(_release(clone(free), table).to_frame()).to_csv() for _ in range(3)]
    assert len(set(drawn)) > 1, "three fits without a seed release the same: where is the noise?"
    fitted = free.fit(table)
    again = fitted.protect(table).to_json() == fitted.protect(table).to_json()
    assert again, "one fit releases another draw when it is asked again"


def check_only_randomised_columns_leave(p: TableProtector) -> None:
    """Neither the target nor an identifier stands beside the noisy columns."""
    schema = small_table().schema
    more = set(_release(p).to_frame().columns) - set(schema.features)
    assert not more, f"columns leave that are no features, without noise: {sorted(more)}"


def check_pickle_and_json_round_trip(p: TableProtector) -> None:
    """What leaves can be stored and read back."""
    release = _release(p)
    assert pickle.loads(pickle.dumps(release)).to_json() == release.to_json(), "a pickle gives another release back"
    read = Release.from_json(release.to_json())
    assert read.to_json() == release.to_json(), "JSON gives another release back"
    assert read.guarantee == release.guarantee, "JSON gives another promise back"
    assert (read.classes() == release.classes()).all(), "JSON gives other classes back"


def check_table_does_not_travel(p: TableProtector) -> None:
    """The original table stays in the process."""
    table = small_table()
    release = _release(p, table)
    assert release.audit is not None, "a release does not know its table while it is here: measures need it"
    assert pickle.loads(pickle.dumps(release)).audit is None, "a pickle of a release carries the original table"
    assert Release.from_json(release.to_json()).audit is None, "JSON of a release carries the original table"


def _release(p: TableProtector, table: Table | None = None) -> Release:
    fitted_to = table if table is not None else small_table()
    return p.fit(fitted_to).protect(fitted_to)


def _seeded(p: TableProtector) -> TableProtector:
    copy: TableProtector = clone(p).set_params(random_state=5)
    return copy


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    text = frame.astype(object).astype(str)
    return text.sort_values(list(text.columns)).reset_index(drop=True)


def _class_texts(release: Release) -> list[str]:
    sizes = np.bincount(release.groups)
    return [f"{text}: {size}" for text, size in zip(release.regions.text(), sizes)]
