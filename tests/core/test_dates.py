"""Dates: read in any common order, cut and measured as days, published as dates."""

import json
from datetime import date, timedelta

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.errors import SchemaError
from countervail.core.files.release_file import read_release
from countervail.core.region import Region
from countervail.core.schema import Column, Schema
from countervail.core.words.dates import cell_days, date_order, day_cell, day_json, iso, read_days

SPELLINGS = {
    "ymd": (
        "{0.year:04}-{0.month:02}-{0.day:02}",
        "{0.year:04}/{0.month}/{0.day}",
        "{0.year:04}-{0.month:02}-{0.day:02}T12:30:00",
    ),
    "dmy": ("{0.day:02}.{0.month:02}.{0.year:04}", "{0.day}/{0.month}/{0.year:04}", "{0.day}-{0.month}-{0.year:04}"),
    "mdy": ("{0.month:02}/{0.day:02}/{0.year:04}", "{0.month}-{0.day}-{0.year:04}"),
}
DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))


@given(st.lists(DAYS, min_size=1, max_size=8), st.sampled_from(sorted(SPELLINGS)), st.data())
def test_every_spelling_is_read_as_the_day_it_stands_for(days, order, data):
    spelling = data.draw(st.sampled_from(SPELLINGS[order]))
    texts = pd.Series([spelling.format(d) for d in days])
    # An independent count of days: from the first of 1970, by subtraction.
    assert read_days(texts, order, "born").tolist() == [(d - date(1970, 1, 1)).days for d in days]
    told = date_order(texts)
    assert told in (order, "") or (told == "dmy" and "." in spelling)
    assert [iso(d) for d in read_days(texts, order, "born")] == [d.isoformat() for d in days]


@pytest.mark.parametrize(
    "text",
    ["31 May 1984", "31. Mai 1984", "31 mai 1984", "31 de mayo de 1984", "31 mei 1984", "May 31, 1984", "19840531"],
)
def test_months_have_names_in_five_languages(text):
    assert read_days(pd.Series([text]), "", "born").tolist() == [5264]  # 14 years with 4 leap days, then 150 days


def test_what_cannot_be_told_is_asked_for_and_what_is_no_date_is_counted():
    with pytest.raises(SchemaError, match='order = "dmy" or order = "mdy"'):
        read_days(pd.Series(["01/02/1999", "03/04/1999"]), "", "born")
    with pytest.raises(SchemaError, match="1 of its 2 different values are none") as raised:
        read_days(pd.Series(["31/12/1999", "soon"]), "dmy", "born")
    assert "soon" not in str(raised.value)
    with pytest.raises(SchemaError, match="four digits"):
        read_days(pd.Series(["31.12.99"]), "", "born")


def test_days_go_through_cells_and_back():
    assert day_cell(pd.Interval(0, 31, closed="both")) == "1970-01-01 to 1970-02-01"
    assert cell_days("1970-01-01 to 1970-02-01") == (0, 31)
    assert cell_days("1970s") is None
    assert day_cell(frozenset([0, None])) == "{1970-01-01, missing}"


def test_a_declared_domain_is_written_as_dates():
    column = Column("born", "date", "quasi", domain=("1930-01-01", date(2010, 12, 31)), order="dmy")
    assert Schema.from_dict(Schema((column,)).to_dict())["born"] == column
    assert Schema((column,)).to_dict()["columns"]["born"]["domain"] == ["1930-01-01", "2010-12-31"]
    with pytest.raises(SchemaError, match="must hold dates"):
        Column("born", "date", domain=("soon", "later"))
    with pytest.raises(SchemaError, match="order"):
        Column("age", "numeric", order="dmy")


@pytest.fixture(scope="module")
def table():
    first = date(1950, 3, 1)
    rows = [
        {
            "born": (first + timedelta(97 * i % 9000)).strftime("%d.%m.%Y"),
            "sex": "fm"[i % 2],
            "seen": f"2020-01-{1 + i % 28:02}",
        }
        for i in range(80)
    ]
    rows[7]["born"] = None
    schema = Schema((Column("born", "date", "quasi"), Column("sex", role="quasi"), Column("seen", "date")))
    return cv.Table.from_frame(pd.DataFrame(rows), schema=schema)


def test_a_release_shows_ranges_of_dates_and_measures_days(table, tmp_path):
    release = cv.Mondrian(k=5).fit(table).protect(table)
    shown = release.to_text_frame()
    ends = shown["born"].dropna().str.removeprefix("{").str.removesuffix(", missing}").map(cell_days)
    assert ends.notna().all()
    spread = table.frame["born"].max() - table.frame["born"].min()
    plain = [c for c in shown["born"] if isinstance(c, str) and "missing" not in c]
    widths = [(b - a) / spread for a, b in map(cell_days, plain)]
    one = cv.measure.ncp(release, weights={"born": 1.0, "sex": 0.0})
    assert sorted(round(w, 9) for w in widths) == sorted(round(w, 9) for w in one if w < 1)[-len(widths) :]
    assert shown.groupby(["born", "sex"], dropna=False).size().min() >= 5
    assert cv.Release.from_json(release.to_json()).to_text_frame().equals(shown)
    release.write(tmp_path / "r.csv")
    back = read_release(tmp_path / "r.csv", table)
    assert back.to_text_frame()["seen"].tolist() == shown["seen"].tolist()
    assert back.to_text_frame()["born"].tolist() == shown["born"].tolist()


def test_spelling_and_dtype_of_dates_leave_no_trace(table):
    days = table.frame["born"]
    stamps = pd.to_datetime(days.astype("float"), unit="D")
    other = cv.Table.from_frame(
        table.frame.assign(born=stamps, seen=pd.to_datetime(table.frame["seen"], unit="D")), schema=table.schema
    )
    a, b = (cv.Mondrian(k=5, random_state=0).fit(t).protect(t).to_json() for t in (table, other))
    assert a == b


def test_new_rows_are_sent_to_their_classes_however_they_are_spelt(table):
    fitted = cv.Mondrian(k=5, random_state=0).fit(table)
    texts = table.with_types(born="categorical", seen="categorical").frame
    assert fitted.protect(texts).to_text_frame().equals(fitted.protect(table.frame).to_text_frame())


def test_regions_count_people_by_dates_of_pandas():
    region = Region({"born": pd.Interval(0, 31, closed="both")})
    assert region.count(pd.DataFrame({"born": pd.to_datetime(["1970-01-15", "1971-01-01"])})) == 1


def test_answers_say_dates(table):
    from sklearn.tree import DecisionTreeClassifier

    frame = table.frame.assign(
        born=table.frame["born"].fillna(0), ok=["yes" if s > 18270 else "no" for s in table.frame["seen"]]
    )
    schema = Schema((*table.schema.columns, Column("ok", role="target")), ("yes",))
    people = cv.Table.from_frame(frame, schema=schema)
    model = DecisionTreeClassifier(random_state=0)
    coded = lambda f: f.assign(sex=(f["sex"] == "f").astype(int))  # noqa: E731
    model.fit(coded(people.features), people.target)
    found = (
        cv.CFK(k=3).fit(people, lambda f: model.predict(coded(f))).explain(people.frame[people.target == "no"].head(2))
    )
    text = found.to_text()
    assert "2020-01-" in text
    assert "182" not in text


BORN = ["1951-05-20", "1953-01-01", "1984-05-31", "1984-06-02"]


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(pd.Series(BORN)),
        pd.to_datetime(pd.Series(BORN)).dt.tz_localize("Europe/Brussels"),
        pd.Series([date.fromisoformat(d) for d in BORN]),
        pd.to_datetime(pd.Series(BORN)).astype("date32[pyarrow]"),
    ],
    ids=["datetime64", "zone", "object", "arrow"],
)
def test_quasi_identifiers_that_hold_dates_are_published_as_ranges_of_dates(values):
    frame = pd.DataFrame({"born": values, "joined": pd.to_datetime(pd.Series(BORN)), "ill": list("abab")})
    table = cv.Table.from_frame(frame, quasi_identifiers=["born"], sensitive=["ill"])
    assert table.schema["born"].type == "date"
    release = cv.Mondrian(k=2).fit(table).protect(table)
    shown = release.to_frame()
    assert set(shown["born"]) == {
        pd.Interval(pd.Timestamp(low), pd.Timestamp(high), closed="both") for low, high in (BORN[:2], BORN[2:])
    }
    assert set(release.to_text_frame()["born"]) == {"1951-05-20 to 1953-01-01", "1984-05-31 to 1984-06-02"}
    assert set(shown["joined"]) == set(frame["joined"])  # what is not generalised keeps its type
    assert release.guarantee.refute(release, table) is None
    assert cv.attack.Linkage().run(release, table, control=table).members.value == 0


def test_a_declared_schema_is_taken_at_its_word_about_dates():
    frame = pd.DataFrame({"born": pd.to_datetime(pd.Series(BORN)), "ill": list("abab")})
    schema = Schema((Column("born", "categorical", "quasi"), Column("ill", role="sensitive")))
    assert cv.Table.from_frame(frame, schema=schema).schema["born"].type == "categorical"


def test_answers_show_dates_and_missing_ones_stay_missing():
    frame = pd.DataFrame({"born": pd.to_datetime(pd.Series([*BORN * 2])), "x": [0.0, 1.0] * 4, "ok": ["no", "yes"] * 4})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["born"])
    answers = cv.NICE(target="favourable").fit(table, lambda X: ["yes" if x > 0.5 else "no" for x in X["x"]])
    told = answers.explain(frame[["born", "x"]].iloc[:2]).to_frame()
    assert told["born"].dtype.kind == "M"
    assert told["born"].isna().tolist() == [False, True]  # the second is favourable already
    assert told["born"][0] in set(frame["born"])


def test_a_schema_prints_a_line_for_each_column_and_only_what_was_said():
    schema = Schema((Column("age", "numeric", "quasi", domain=(0, 99)), Column("ok", role="target")), ("yes",))
    assert repr(schema).splitlines() == [
        "Schema(",
        "  Column('age', 'numeric', 'quasi', domain=(0, 99)),",
        "  Column('ok', 'categorical', 'target'),",
        "  favourable=('yes',))",
    ]


def test_changes_of_dates_are_dates_in_json():
    frame = pd.DataFrame({"born": pd.to_datetime(pd.Series(BORN * 2)), "ok": ["no", "no", "yes", "yes"] * 2})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["born"])
    limit = table.frame["born"].iloc[2]
    answers = cv.CFK(k=2).fit(table, lambda X: ["yes" if d >= limit else "no" for d in X["born"]])
    told = answers.explain(frame[["born"]].iloc[:1])
    change = json.loads(told.to_json())["people"][0]["answers"][0]["changes"][0]
    assert (change["from"], change["to"]) == ("1951-05-20", "1984-05-31")
    assert change["cell"] == "1984-05-31"  # two people were born then
    assert cv.Explanations.from_json(told.to_json()).to_text() == told.to_text()


def test_a_cell_of_dates_as_json_data_however_it_is_made():
    cells = (frozenset([1, None, pd.Interval(2, 3, closed="both")]), pd.Interval(-0.5, 0.5, closed="both"), None, 3.0)
    assert [day_json(c) for c in cells] == [
        {"any_of": ["1970-01-02", {"from": "1970-01-03", "to": "1970-01-04"}, None]},
        {"from": "1969-12-31", "to": "1970-01-02"},
        None,
        "1970-01-04",
    ]
