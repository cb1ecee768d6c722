"""The same release from every engine, however the rows are spread, whether or not distinct rows fit the memory."""

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows_in_files import ROLES as PEOPLE
from rows_in_files import people, spread

import countervail as cv
from countervail.engine import Scan
from countervail.engine.digest import frame_digest, relation_digest

ROLES = {"quasi_identifiers": ["number", "wide", "word", "flag"], "sensitive": ["ill"], "target": "granted"}
WORDS = ["a", "b", "été", "e\u0301te\u0301", "京都", "O'Neill", 'say "so"', "ß", "", None]
EXAMPLES = max(settings.default.max_examples // 5, 1)


@st.composite
def tables(draw):
    """Rows with ties, skew, missing values, letters in one piece or two, and whole numbers past 2**53."""
    n = draw(st.integers(12, 60))

    def column(values):
        return [draw(values) for _ in range(n)]

    few = st.integers(0, draw(st.sampled_from([2, 5, 40])))
    number = st.one_of(few.map(lambda v: v / 4), st.sampled_from([None, -0.0, 0.0, 1e300]))
    wide = st.sampled_from([2**53, 2**53 + 1, 2**62 + 1, -5, 0, 1, 1, 1, 1, 2])
    return pd.DataFrame(
        {
            "number": pd.array(column(number), dtype="Float64").to_numpy(dtype=float, na_value=float("nan")),
            "wide": column(wide),
            "word": column(st.sampled_from(WORDS)),
            "flag": column(st.booleans()),
            "ill": column(st.sampled_from(["none", "none", "none", "flu", "gout"])),
            "granted": column(st.sampled_from(["yes", "no"])),
        }
    )


def digest(fitted, scan, folder):
    fitted.fit(scan).write(folder)
    out = scan.relation.reopened(folder)
    return relation_digest(out)


OPTIONS = st.sampled_from(
    [
        {},
        {"choose": "span"},
        {"l": 2, "sensitive": "ill"},
        {"t": 0.5, "sensitive": "ill"},
        {"by_class": True},
        {"suppress": 0.2},
        {"mode": "local"},
        {"mode": "relaxed"},
    ]
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables(), OPTIONS, st.integers(1, 4), st.sampled_from([1, 2, 4]), st.sampled_from([3, 10]))
def test_every_engine_gives_the_same_release(tmp_path_factory, frame, options, k, files, few):
    folder = tmp_path_factory.mktemp("identity")
    table = cv.Table.from_frame(frame, **ROLES)
    try:
        wanted = cv.Mondrian(k, random_state=1, **options).fit(table).protect()
    except cv.ParameterError:
        return  # no class of this table keeps the promise
    (folder / "in").mkdir()
    for i in range(files):
        frame.iloc[i::files].to_parquet(folder / "in" / f"{i}.parquet", index=False)
    found, trees = {}, {}
    whole = options.get("mode", "strict") == "strict" and "suppress" not in options
    with pytest.MonkeyPatch.context() as patch:
        for engine, limit in [("memory", None), ("duckdb", None), *([("duckdb", few)] if whole else [])]:
            if limit is not None:
                patch.setattr(Scan, "budget", lambda self, columns: few if columns > 1 else 99)
            scan = cv.Table.scan(folder / "in", engine=engine, threads=2, **ROLES)
            fitted = cv.Mondrian(k, random_state=1, **options)
            found[engine, limit] = digest(fitted, scan, folder / f"{engine}-{limit}")
            trees[engine, limit] = fitted.tree_.to_json()
            scan.close()
    assert len(set(found.values())) == len(set(trees.values())) == 1
    if options.get("mode") != "relaxed":  # there, who is in which class is drawn by lot
        assert set(found.values()) == {frame_digest(wanted.to_text_frame())}


def test_shared_ties_make_the_same_classes_as_those_of_a_table(tmp_path):
    frame = people(500).assign(age=lambda f: f["age"] // 20, income=lambda f: f["income"] // 2000)
    options = {"k": 6, "mode": "relaxed", "suppress": 0.04, "random_state": 2}
    wanted = cv.Mondrian(**options).fit(cv.Table.from_frame(frame, **PEOPLE)).protect().to_text_frame()
    quasi = PEOPLE["quasi_identifiers"]
    digests = []
    for engine, files in [("memory", 1), ("duckdb", 3)]:
        scan = cv.Table.scan(spread(frame, tmp_path / f"in-{engine}", files), engine=engine, **PEOPLE)
        cv.Mondrian(**options).fit(scan).write(tmp_path / engine)
        found = pd.read_parquet(tmp_path / engine)
        assert frame_digest(found[quasi]) == frame_digest(wanted[quasi])
        digests.append(frame_digest(found))
    assert digests[0] == digests[1]
