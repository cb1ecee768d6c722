"""Two worlds that seal alike give the same of everything: answers, text, files, logs, errors; and no row stays."""

import gc
import io
import logging
import pickle
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import countervail as cv
from countervail.core.sealed import SealedTable, canonical_table

pytestmark = pytest.mark.usefixtures("quick_groups")

pl = pytest.importorskip("polars")

QUASI = ["age", "city"]
PRIVATE = ["pay", "ill", "since", "ok"]


def people(seed, n=18):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 26, n),
            "city": rng.choice(["a", "b", "c"], n),
            "pay": rng.integers(0, 5, n),
            "ill": rng.choice(["no", "yes", "é"], n),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 3, n), "D"),
        }
    )
    frame["ok"] = rng.choice(["no", "yes"], n)
    frame.loc[:1, "ok"] = ["no", "yes"]
    return frame


def table(frame):
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=QUASI, sensitive=["ill"])


def model(frame):
    good = frame["pay"].to_numpy(float) + (frame["city"].astype(object) == "a").to_numpy() > 2
    return np.where(good, "yes", "no")


def asked(seed):
    return people(seed + 9_000, 5).drop(columns="ok")


# ---------------------------------------------------------------- the other worlds


def within_groups(frame, group, rng):
    """Private rows permuted within groups: who of a group owns what."""
    source = np.arange(len(frame))
    for g in np.unique(group):
        rows = np.flatnonzero(group == g)
        source[rows] = rng.permutation(rows)
    return frame.assign(**{n: frame[n].array.take(source) for n in PRIVATE})


def rows_and_index(frame, group, rng):
    order = rng.permutation(len(frame))
    return frame.iloc[order].set_axis(rng.permutation(1000)[: len(frame)])


def categories(frame, group, rng):
    """The same column as categories, in the order of one or another row."""
    order = rng.permutation(len(frame))
    return frame.assign(ill=pd.Categorical(frame["ill"], pd.unique(frame["ill"].iloc[order])))


def spellings(frame, group, rng):
    """Other ways to write the same: letters in two pieces, days as times, numbers as fractions."""
    twice = frame["ill"].str.replace("é", "e\u0301")
    chosen = np.where(rng.random(len(frame)) < 0.5, twice, frame["ill"])
    return frame.assign(ill=chosen, pay=frame["pay"].astype(float), since=frame["since"].dt.as_unit("ms"))


def parquet(frame, group, rng):
    file = io.BytesIO()
    frame.to_parquet(file)
    return pd.read_parquet(file)


def polars(frame, group, rng):
    return pl.from_pandas(frame)


def arrow(frame, group, rng):
    return pa.Table.from_pandas(frame, preserve_index=False)


def nullable(frame, group, rng):
    return frame.convert_dtypes()


def objects(frame, group, rng):
    return frame.assign(city=frame["city"].astype(object), ill=frame["ill"].astype(object))


WORLDS = [within_groups, rows_and_index, spellings, parquet, polars, arrow, nullable, objects]


def outputs(protector, seed, folder, caplog):
    """Everything that leaves, as bytes; and what is logged or said in errors."""
    out = {}
    caplog.clear()
    if isinstance(protector, cv.CFK):
        e = protector.explain(asked(seed))
        out |= {"text": e.to_text(), "json": e.to_json(), "html": e._repr_html_(), "repr": repr(e.to_frame())}
        frame = e.counterfactuals.astype(str)
    else:
        release = protector.protect()
        release.write(folder / "table.csv")
        release.write(folder / "table.parquet")
        out |= {name: (folder / name).read_bytes() for name in ("table.csv", "table.parquet")}
        out |= {"json": release.to_json(), "html": release._repr_html_(), "repr": repr(release)}
        frame = release.to_text_frame()
    file = io.BytesIO()
    frame.to_parquet(file)
    protector.save(folder / "saved.json")
    out |= {"parquet": file.getvalue(), "csv": frame.to_csv(), "saved": (folder / "saved.json").read_bytes()}
    for wrong in (pd.DataFrame({"age": [1]}), pd.DataFrame({n: ["x"] for n in [*QUASI, *PRIVATE, "more"]})):
        with pytest.raises(cv.CountervailError) as caught:
            protector.explain(wrong) if isinstance(protector, cv.CFK) else protector.protect(wrong)
        out[f"error {len(out)}"] = str(caught.value)
    out["log"] = caplog.text
    return out


PROTECTORS = [
    cv.CFK(k=3),
    cv.CFK(k=3, search=cv.protect.GroupSearch(grouping="mondrian")),
    cv.Mondrian(k=3, random_state=0),
    cv.KCommonPatterns(k=3, random_state=0),
]


def fit(protector, rows):
    protector = type(protector)(**protector.get_params(deep=False))
    return protector.fit(rows, model) if isinstance(protector, cv.CFK) else protector.fit(rows)


def group_of(protector):
    if isinstance(protector, cv.CFK):
        return protector.search_.row_group_
    return protector.cell_of_ if isinstance(protector, cv.Mondrian) else None


@pytest.mark.parametrize(
    ("protector", "world"),
    # Patterns have no groups within which anything could be permuted.
    [(p, w) for p in PROTECTORS for w in WORLDS if w is not within_groups or not isinstance(p, cv.KCommonPatterns)],
    ids=lambda x: getattr(x, "__name__", repr(x)),
)
def test_every_output_is_the_same_in_both_worlds(protector, world, seeds, tmp_path, caplog):
    """5,000 tables and more with --long."""
    caplog.set_level(logging.DEBUG, logger="countervail")
    for seed in seeds(4, 165):
        frame = people(seed)
        kept = table(frame)
        try:
            made = fit(protector, kept)
        except cv.RefusedError:
            continue
        other = table(world(frame, group_of(made), np.random.default_rng(seed)))
        again = fit(protector, other)
        assert outputs(made, seed, tmp_path, caplog) == outputs(again, seed, tmp_path, caplog)


@pytest.mark.parametrize("protector", PROTECTORS, ids=repr)
def test_the_order_of_categories_shows_nowhere(protector, seeds, tmp_path, caplog):
    for seed in seeds(6, 165):
        frame = people(seed)
        worlds = [table(categories(frame, None, np.random.default_rng(n))) for n in (seed, seed + 1)]
        try:
            one, other = (fit(protector, rows) for rows in worlds)
        except cv.RefusedError:
            continue
        assert outputs(one, seed, tmp_path, caplog) == outputs(other, seed, tmp_path, caplog)


def test_sealing_is_where_worlds_become_one(seeds):
    for seed in seeds(40, 2_000):
        frame = people(seed)
        kept = table(frame)
        made = cv.Mondrian(k=3).fit(kept)
        rng = np.random.default_rng(seed)
        for world in WORLDS:
            other = table(world(frame, made.cell_of_, rng))
            cells = cv.Mondrian(k=3).fit(other)
            digests = []
            for rows, fitted in ((kept, made), (other, cells)):
                clean = canonical_table(rows)
                groups = fitted.cell_of_.astype(np.int64)
                digests.append(SealedTable.of(fitted.regions_, groups, clean.frame[PRIVATE], clean.schema)[0].digest)
            assert digests[0] == digests[1], world.__name__


# ---------------------------------------------------------------- no row is left


def held(root):
    """Everything that an object holds, but modules, classes, functions and what they hold."""
    seen, queue, out = {id(root)}, [root], []
    while queue:
        thing = queue.pop()
        out.append(thing)
        for part in gc.get_referents(thing):
            if id(part) not in seen and not isinstance(part, (type, ModuleType, FunctionType)):
                seen.add(id(part))
                queue.append(part)
    return out


def contents(protector):
    """The arrays that a protector holds, as bytes, whatever their order."""
    arrays = [thing for thing in held(protector) if isinstance(thing, np.ndarray)]
    return sorted(repr((a.dtype.str, a.tolist() if a.dtype == object else a.tobytes())) for a in arrays)


@pytest.mark.parametrize("protector", PROTECTORS, ids=repr)
def test_a_fitted_protector_holds_no_table_and_no_row(protector):
    frame = people(3, 60).assign(pay=np.arange(60) + 0.25)
    kept = table(frame)
    made = fit(protector, kept)
    things = held(made)
    assert not any(isinstance(t, cv.Table) for t in things)
    assert not any(t is kept.frame for t in things)
    arrays = [t for t in things if isinstance(t, np.ndarray) and t.ndim == 1 and len(t) == 60]
    assert not any(np.array_equal(a, kept.frame["pay"].to_numpy()) for a in arrays if a.dtype == float)
    assert len(pickle.dumps(made)) > 0


@pytest.mark.parametrize("protector", PROTECTORS[:3], ids=repr)
def test_no_array_tells_who_of_a_group_owns_what(protector, seeds):
    for seed in seeds(10, 300):
        frame = people(seed, 40)
        kept = table(frame)
        made = fit(protector, kept)
        other = table(within_groups(frame, group_of(made), np.random.default_rng(seed)))
        again = fit(protector, other)
        assert contents(made) == contents(again)


def test_pickles_hold_what_files_hold(tmp_path):
    kept = table(people(3, 40))
    for protector in PROTECTORS:
        made = fit(protector, kept)
        again = pickle.loads(pickle.dumps(made))
        assert not hasattr(again, "table_")
        for name, one in (("a", made), ("b", again)):
            one.save(tmp_path / name)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "protector", [cv.CFK(k=3), cv.Mondrian(k=3), cv.Microaggregation(3), cv.KCommonPatterns(k=2)], ids=str
)
def test_files_and_pickles_name_nobody_however_identifiers_are_stored(protector, late, tmp_path):
    """Identifiers stored as ordered categories stood in saved tables as the levels of their column, each of them."""
    frame = people(0).assign(id=pd.Categorical([f"person-{i}" for i in range(18)], ordered=True))
    roles = {"quasi_identifiers": QUASI, "sensitive": ["ill"]} | ({} if late else {"identifiers": ["id"]})
    named = cv.Table.from_frame(frame, target="ok", favourable="yes", **roles)
    named = named.with_roles(identifier=["id"]) if late else named
    made = protector.fit(named, model) if isinstance(protector, cv.CFK) else protector.fit(named)
    made.save(tmp_path / "p.json")
    left = made.explain(asked(0)) if isinstance(protector, cv.CFK) else made.protect()
    for content in (
        (tmp_path / "p.json").read_bytes(),
        pickle.dumps(made),
        pickle.dumps(left),
        left.to_json().encode(),
    ):
        assert b"person-" not in content
    assert "person-" not in repr(named.schema)


def test_a_measure_asks_for_the_table_when_it_is_gone():
    made = cv.CFK(k=3).fit(table(people(3, 40)), model)
    answers = made.explain(asked(1))
    assert answers.audit is None
    with pytest.raises(cv.SchemaError, match="table="):
        cv.measure.ncp(answers)
    assert len(cv.measure.ncp(answers, table=table(people(3, 40)))) == len(answers)
