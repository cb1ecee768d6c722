"""People behind rows: whoever has several counts once, in measures, checks and promises; repeated rows are noticed."""

import html
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.counting.copies import EqualRows, seem_copied
from countervail.core.files.release_file import PublishedFile
from countervail.core.files.schema_file import write_schema
from countervail.core.people import count_people, people_inside, people_of, person_columns, rows_per_person
from countervail.core.region import Regions
from countervail.report.anonymized_page import summarize
from countervail.report.strips import coarse_shares
from countervail.testing import small_table


def slow_people(frame):
    """Rows joined one by one until nothing changes."""
    groups = [{i} for i in range(len(frame))]
    merged = True
    while merged:
        merged = False
        for a in groups:
            for b in groups:
                shared = a is not b and any(
                    pd.notna(frame[n].iloc[i]) and frame[n].iloc[i] == frame[n].iloc[j]
                    for n in frame.columns
                    for i in a
                    for j in b
                )
                if shared:
                    groups = [g for g in groups if g is not a and g is not b] + [a | b]
                    merged = True
                    break
            if merged:
                break
    return {frozenset(g) for g in groups}


ids = st.one_of(st.none(), st.integers(0, 6))


@given(st.lists(st.tuples(ids, ids, ids), min_size=1, max_size=14))
def test_people_are_rows_joined_by_any_identifier(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"], dtype=object)
    who = people_of(frame, ["a", "b", "c"])
    assert {frozenset(np.flatnonzero(who == p).tolist()) for p in np.unique(who)} == slow_people(frame)
    assert who.max() == len(set(who.tolist())) - 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30))
def test_classes_hold_so_many_people(rows):
    classes, person = np.array(rows, dtype=np.int64).T
    classes = pd.factorize(classes)[0].astype(np.int64)
    expected = [len(set(person[classes == c].tolist())) for c in range(classes.max() + 1)]
    assert count_people(classes, person).tolist() == expected
    assert count_people(classes, None).tolist() == np.bincount(classes).tolist()


def visits(n=120, most=3, seed=0):
    """People with up to `most` rows each."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, most + 1, n))
    who[:most] = 0
    rows = len(who)
    frame = pd.DataFrame({"id": [f"p{w}" for w in who], "age": rng.integers(20, 60, rows)})
    frame["city"], frame["pay"] = rng.choice(list("abc"), rows), rng.integers(0, 9, rows)
    frame["ok"] = np.where(frame["pay"] > 4, "yes", "no")
    return cv.Table.from_frame(
        frame, target="ok", favourable="yes", identifiers=["id"], quasi_identifiers=["age", "city"]
    )


def test_whoever_has_several_rows_is_counted_once_in_risk():
    table = visits()
    found = cv.measure.risk(table, k=5)
    assert found.rows == len(table) > found.people == table.frame["id"].nunique()
    sizes = table.frame.groupby(["age", "city"])["id"].nunique().rename("people")
    around = table.frame.join(sizes, on=["age", "city"]).groupby("id")["people"].min()
    assert found.unique == pytest.approx((around == 1).mean()) and found.below_k == pytest.approx((around < 5).mean())


def test_a_column_may_be_named_that_tells_people_apart():
    table = visits()
    frame = table.frame.assign(form=[f"f{i}" for i in range(len(table))])
    both = cv.Table(frame, cv.Schema((*table.schema, cv.Column("form", role="identifier")), ("yes",)))
    assert cv.measure.risk(both).people == table.frame["id"].nunique()
    assert cv.measure.risk(both, person="form").people == len(table)
    with pytest.raises(cv.SchemaError, match="nobody"):
        cv.measure.risk(both, person="nobody")


def test_people_who_share_a_name_are_told_apart_by_a_key():
    table = visits(60, most=1)
    frame = table.frame.assign(name="Anna Müller", remark="called on monday about 2 letters")
    more = (cv.Column("name", role="identifier"), cv.Column("remark", role="identifier"))
    named = cv.Table(frame, cv.Schema((*table.schema, *more), ("yes",)))
    assert rows_per_person(named) == 1 and person_columns(named) == ["id"]
    nameless = cv.Table(frame.drop(columns="id"), cv.Schema((*list(table.schema)[1:], *more), ("yes",)))
    assert rows_per_person(nameless) == 60 and person_columns(nameless) == ["name", "remark"]


def test_the_column_that_names_a_person_is_taken_from_the_command_line(run, tmp_path):
    table = visits()
    both = table.frame.assign(form=[f"f{i}" for i in range(len(table))])
    write_schema(cv.Schema((*table.schema, cv.Column("form", role="identifier")), ("yes",)), tmp_path / "v.toml")
    both.to_csv(tmp_path / "v.csv", index=False)
    words = ("anonymize", tmp_path / "v.csv", "-s", tmp_path / "v.toml", "--k", 3, "-o", tmp_path / "o.csv", "--json")
    assert any("up to 3 rows, by id, form" in note for note in json.loads(run(*words)[1])["notes"])
    said = json.loads(run(*words, "--person", "form")[1])
    assert not any("rows, by" in note for note in said["notes"]) and said["smallest"] < 9
    code, _, err = run(*words, "--person", "age")
    assert code == 2 and "--person must name an identifier" in err


@pytest.mark.parametrize("seed", range(4))
def test_every_class_of_a_release_holds_k_people(seed):
    table = visits(seed=seed)
    most = rows_per_person(table)
    assert most == 3
    protector = cv.Mondrian(k=4).fit(table)
    release = protector.protect(table)
    who = people_of(table.frame, ["id"])
    assert count_people(pd.factorize(protector.cell_of_)[0].astype(np.int64), who).min() >= 4
    assert np.bincount(release.groups).min() >= 4 * most
    assert any("up to 3 rows" in text for text in release.caveats)


@pytest.mark.parametrize("search", ["groups", "exact"])
def test_every_region_of_an_explanation_holds_k_people(search):
    table = visits()
    protector = cv.CFK(k=4, search=search, reward="none").fit(table, lambda f: np.where(f["pay"] > 4, "yes", "no"))
    answers = protector.explain(table.features.head(30))
    assert answers.found.any()
    assert (cv.measure.degree_of_privacy(answers)[answers.found] >= 12).all()


def test_too_few_rows_for_k_people_are_refused_with_the_reason():
    table = visits(12)
    with pytest.raises(cv.ParameterError, match=r"divided by 3: so many rows some people have"):
        cv.Mondrian(k=10).fit(table)


def test_a_person_in_every_row_changes_nothing():
    table = visits(most=1)
    bare = cv.Table(
        table.frame.drop(columns="id"), cv.Schema(tuple(c for c in table.schema if c.name != "id"), ("yes",))
    )
    assert cv.measure.risk(table).to_dict() == cv.measure.risk(bare).to_dict()
    releases = [cv.Mondrian(k=4, random_state=0).fit(t).protect(t) for t in (table, bare)]
    assert releases[0].to_frame().equals(releases[1].to_frame()) and releases[0].caveats == releases[1].caveats


# ---------------------------------------------------------------- rows that were repeated


@pytest.fixture
def published(tmp_path):
    table = cv.load("german_credit")
    write_schema(table.schema, tmp_path / "people.toml")

    def write(frame):
        frame.to_csv(tmp_path / "public.csv", index=False)
        return tmp_path / "public.csv", "-s", tmp_path / "people.toml"

    return table, write


def test_seventy_five_people_ten_times_each_do_not_keep_ten_anonymity(run, published):
    table, write = published
    given = write(pd.concat([table.frame.head(75)] * 10))
    code, out, err = run("check", *given)
    assert code == 1 and "look repeated" in err and "NOT SHOWN" in out
    code, out, _ = run("check", *given, "--json")
    said = json.loads(out)
    assert code == 1 and said["people"] == 75 and said["rows"] == 750 and any("repeated" in n for n in said["notes"])
    assert said["verdicts"][0]["reached"] == 1
    assert run("check", *given, "--rows-are-people")[0] == 0


@pytest.mark.parametrize("times", [2, 3])
def test_a_release_that_was_copied_is_noticed_and_one_that_was_not_is_not(published, times):
    table, _ = published
    release = cv.Mondrian(k=10).fit(table).protect(table).to_frame().astype(str)
    assert not PublishedFile.of(release, table.schema).equal_rows().copied
    assert PublishedFile.of(pd.concat([release] * times), table.schema).equal_rows().copied


@pytest.mark.parametrize("named", [False, True], ids=["nobody named", "people named"])
def test_anonymize_check_and_risk_agree_about_seventy_five_people_ten_times_each(run, tmp_path, named):
    """Told apart by nothing, they are not published on a promise that may be wrong; by a number, people are counted."""
    rng = np.random.default_rng(0)
    once = pd.DataFrame({"id": range(75), "age": rng.integers(20, 70, 75), "sex": rng.choice(["f", "m"], 75)})
    once = once.assign(ill=rng.choice(["flu", "asthma", "none"], 75), rent=rng.integers(3, 30, 75) * 50)
    rows = pd.concat([once] * 10)
    columns = ["age", "sex", "ill", "rent"]
    (rows if named else rows[columns]).to_csv(tmp_path / "d.csv", index=False)
    table = cv.Table.from_frame(once, identifiers=["id"], quasi_identifiers=["age", "sex"], sensitive=["ill"])
    kept = tuple(c for c in table.schema if named or c.role != "identifier")
    write_schema(replace(table.schema, columns=kept), tmp_path / "s.toml")
    given, release = (tmp_path / "d.csv", "-s", tmp_path / "s.toml"), tmp_path / "p.csv"
    page = tmp_path / "p.html"
    code, _, err = run("anonymize", *given, "--k", 5, "-o", release, "--report", page)
    assert "75 people in 750 rows" in run("risk", *given)[1]
    if not named:
        assert code == 2 and "look repeated" in err and "--rows-are-people" in err and not release.exists()
        code, out, err = run(
            "anonymize", *given, "--k", 5, "-o", release, "--rows-are-people", "--json", "--report", page
        )
        said = json.loads(out)
        note = "750 rows are equal to another one in every column; they count as different people. If equal rows are"
        assert f"For you alone: {note}" in err  # who owns what decides how many: nothing that leaves may say it
        for text in (" ".join(said["notes"]), html.unescape(page.read_text(encoding="utf-8"))):
            assert "are equal" not in text
        assert "750 people" in run("risk", *given, "--rows-are-people")[1]
    assert code == 0
    # The file alone does not tell; whoever says what anonymize said gets its answer, and nobody is told the contrary.
    each = 10 if named else 1
    assert f"check it with --rows-per-person {each}" in " ".join(err.split())
    code, out, _ = run("check", release, "-s", tmp_path / "s.toml", "--k", 5)
    assert (code == 0) == named and ("NOT SHOWN" in out) != named and "BROKEN" not in out
    code, out, _ = run("check", release, "-s", tmp_path / "s.toml", "--k", 5, "--rows-per-person", each)
    assert code == 0 and "The table keeps what was asked." in out
    sizes = pd.read_csv(release, dtype=str).groupby(["age", "sex"]).size()
    assert sizes.min() >= 5 * each


@pytest.mark.parametrize("times", [1, 2])
def test_columns_that_follow_from_the_class_are_no_copies(times):
    """The region follows from the postcode, the illness from nothing: equal rows are many, and none is repeated."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 100, 1_000)
    rows = pd.DataFrame(
        {"code": code, "region": code // 10, "ill": rng.integers(0, 5, 1_000), "pay": rng.integers(0, 9, 1_000)}
    )
    assert EqualRows.of(pd.concat([rows] * times), ["code"]).copied == (times > 1)
    assert not EqualRows.of(rows[["code", "region", "ill"]], ["code"]).copied


def test_people_at_least_are_the_rows_of_a_class_over_the_rows_of_one_person():
    frame = pd.DataFrame({"age": ["20-29"] * 7 + ["30-39"] * 6, "ok": list("abcdefghijklm")})
    schema = cv.Schema((cv.Column("age", role="quasi"), cv.Column("ok")))
    once = PublishedFile.of(frame, schema).people_at_least(3)
    assert once.frame["age"].value_counts().to_dict() == {"20-29": 3, "30-39": 2}


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3, st.integers(-1, 2)), min_size=1, max_size=30))
def test_equal_rows_are_those_that_pandas_finds(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "group"])
    people, groups = frame[["a", "b", "c"]], frame["group"].to_numpy(dtype=np.int64)
    found = EqualRows.of(people, ["a"])
    assert found.equal == int(people.duplicated(keep=False).sum())
    assert sorted(map(tuple, people.iloc[found.first].to_numpy())) == sorted(set(map(tuple, people.to_numpy())))
    each = frame[frame["group"] >= 0].drop_duplicates().groupby("group").size()
    assert found.least(groups) == (each.min() if len(each) else 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=30))
def test_people_inside_a_region_are_counted_once_each(rows):
    frame = pd.DataFrame(rows, columns=["age", "who"])
    regions = Regions.from_cells([{"age": pd.Interval(a, a + 3, closed="both")} for a in range(8)])
    slow = [frame[frame["age"].between(a, a + 3)]["who"].nunique() for a in range(8)]
    assert people_inside(regions, frame[["age"]], people_of(frame, ["who"])).tolist() == slow


def test_identifiers_in_a_file_tell_people_apart_in_a_check(run, published, tmp_path):
    table, write = published
    rows = pd.concat([table.frame.head(75).assign(id=range(75))] * 10)
    path, *_ = write(rows)
    declared = (*table.schema.columns, cv.Column("id", role="identifier"))
    write_schema(replace(table.schema, columns=declared), tmp_path / "named.toml")
    code, out, _ = run("check", path, "-s", tmp_path / "named.toml", "--json")
    said = json.loads(out)
    assert code == 1 and said["people"] == 75 and said["verdicts"][0]["reached"] == 1
    assert any("share id in a class count as one person" in n for n in said["notes"])


def test_few_columns_make_equal_rows_and_no_alarm(run, published):
    table, write = published
    release = cv.Mondrian(k=10).fit(table).protect(table).to_frame()
    code, _, err = run("check", *write(release[[*table.schema.names("quasi"), "class"]]))
    assert code == 0 and "count as different people" in err


def test_a_named_person_counts_once_and_the_name_must_not_leave(run, published):
    table, write = published
    given = write(pd.concat([table.frame.head(75).assign(id=range(75))] * 10))
    code, out, err = run("check", *given, "--person", "id")
    assert code == 1 and "'id' in a class count as one person" in err and "BROKEN" in out
    code, _, err = run("check", *given, "--person", "nobody")
    assert code == 2 and "--person" in err
    code, _, err = run("check", *given, "--person", "id", "--rows-are-people")
    assert code == 2 and "contradict" in err


def test_risk_counts_people_on_the_command_line(run, tmp_path):
    table = visits()
    table.frame.to_csv(tmp_path / "visits.csv", index=False)
    write_schema(table.schema, tmp_path / "visits.toml")
    code, out, _ = run("risk", tmp_path / "visits.csv", "-s", tmp_path / "visits.toml")
    assert code == 0 and f"{table.frame['id'].nunique()} people in {len(table)} rows" in out


def test_households_that_count_as_people_are_named_in_the_error():
    frame = pd.DataFrame({"house": [1, 1, 2, 2] * 10, "age": range(40), "pay": range(40), "ok": ["y", "n"] * 20})
    table = cv.Table.from_frame(frame, target="ok", favourable="y", identifiers=["house"], quasi_identifiers=["age"])
    with pytest.raises(cv.ParameterError, match=r"one person has up to 20 of 40 rows.*share a value of house"):
        cv.CFK(k=5).fit(table, lambda rows: np.where(rows["pay"] > 20, "y", "n"))


@pytest.mark.parametrize(("times", "few"), [(10, True), (3, True), (1, False)])
def test_rows_that_are_all_there_ten_times_seem_copied_though_contents_are_few(times, few):
    rng = np.random.default_rng(0)
    once = pd.DataFrame({"age": np.arange(75), "ill": rng.choice(["flu", "asthma", "none"], 75)})
    rows = pd.concat([once] * times, ignore_index=True)
    assert seem_copied(rows[["ill"]], rows["age"].to_numpy(dtype=np.int64)) == few
    # People of one class who share what few contents there are, and nothing but their class, are no copies.
    classes = np.repeat(np.arange(75), 10)
    assert not seem_copied(pd.DataFrame({"ill": rng.choice(["flu", "asthma", "none"], 750)}), classes)
    assert not seem_copied(pd.DataFrame(index=range(750)), classes)


@pytest.mark.parametrize(
    "made",
    [cv.Mondrian(k=5), cv.Microaggregation(k=5), cv.published.EqualHalvesMondrian(k=5), cv.CFK(k=5)],
    ids=str,
)
def test_rows_of_one_person_can_be_linked_and_that_is_said(made, tmp_path):
    """Two visits of everybody, the private columns the same: whoever is in both classes is one person, not five."""
    rng, n = np.random.default_rng(1), 60
    once = pd.DataFrame({"id": [f"p{i}" for i in range(n)], "age": rng.integers(20, 70, n), "pay": np.arange(n)})
    frame = pd.concat([once, once.assign(age=rng.integers(20, 70, n))], ignore_index=True)
    frame["ok"] = np.where(frame["pay"] > 30, "yes", "no")

    def decide(rows):
        return np.where(rows["pay"].to_numpy(float) > 30, "yes", "no")

    def fit(frame):
        table = cv.Table.from_frame(frame, target="ok", favourable="yes", identifiers=["id"], quasi_identifiers=["age"])
        if isinstance(made, cv.CFK):
            made.fit(table, decide)
            return made.search_.row_group_, made.explain(frame[["age", "pay"]].head(2)).caveats
        made.fit(table)
        return made.cell_of_, made.protect().caveats

    of, caveats = fit(frame)
    pairs = pd.Series([tuple(sorted(p)) for p in zip(of[:n], of[n:])])
    assert (pairs.map(pairs.value_counts()) == 1).any(), "somebody is the only one in both"
    assert any("can be linked" in text for text in caveats)
    if isinstance(made, cv.CFK):
        made.save(tmp_path / "made.json")
        again = cv.load_protector(tmp_path / "made.json", decide)
        assert again.explain(frame[["age", "pay"]].head(2)).caveats == caveats
    assert not any("can be linked" in text for text in fit(frame.head(n))[1])


# ---------------------------------------------------------------- people are split, not their rows


@given(st.lists(st.integers(0, 9), min_size=4, max_size=40), st.integers(0, 99))
def test_nobody_is_on_both_sides_of_a_split(who, seed):
    frame = pd.DataFrame({"id": [f"K{i}" for i in who], "age": range(len(who))})
    table = cv.Table.from_frame(frame, identifiers=["id"], quasi_identifiers=["age"])
    if len(set(who)) < 2:
        with pytest.raises(cv.ParameterError, match="at least two people"):
            table.split(test_size=0.4, random_state=seed)
        return
    train, test = table.split(test_size=0.4, random_state=seed)
    assert not set(train.frame["id"]) & set(test.frame["id"])
    assert sorted([*train.frame["age"], *test.frame["age"]]) == list(range(len(who)))
    assert test.frame["id"].nunique() == math.ceil(0.4 * len(set(who)))


def test_whoever_has_one_row_each_is_split_as_before():
    named = small_table(50)
    columns = tuple(c for c in named.schema if c.role != "identifier")
    bare = cv.Table(named.frame[[c.name for c in columns]], replace(named.schema, columns=columns))
    a, b = (t.split(test_size=0.4, random_state=3)[1].frame[named.schema.features] for t in (named, bare))
    assert a.equals(b)


def test_people_of_several_rows_are_compared(run, tmp_path):
    """Plain explanations are tried too: they were refused because the same people were on both sides."""
    table = small_table(240)
    write_schema(table.schema, tmp_path / "s.toml")
    table.frame.assign(id=[f"K{i % 120:03}" for i in range(240)]).to_csv(tmp_path / "d.csv", index=False)
    code, out, err = run("compare", tmp_path / "d.csv", "-s", tmp_path / "s.toml", "--answers", 20, "--json")
    assert code == 0, err
    untried = [str(c.get("why")) for c in json.loads(out)["contenders"]]
    assert untried and not any("identifiers" in why for why in untried), untried


def test_a_value_of_ones_own_is_so_in_every_row_of_that_person(run, tmp_path):
    """Everybody has a salary of their own, three times each: counted by rows, no value stood alone."""
    rng = np.random.default_rng(0)
    once = pd.DataFrame({"id": [f"K{i:03}" for i in range(60)], "age": rng.integers(20, 60, 60), "pay": range(60)})
    once.loc[once.index.repeat(3)].to_csv(tmp_path / "d.csv", index=False)
    table = cv.Table.from_frame(once, identifiers=["id"], quasi_identifiers=["age"])
    write_schema(table.schema, tmp_path / "s.toml")
    given = (tmp_path / "d.csv", "-s", tmp_path / "s.toml")
    assert "value of their own in pay" in run("risk", *given)[2]
    code, _, err = run("anonymize", *given, "--k", 3, "-o", tmp_path / "p.csv")
    assert code == 2 and "--keep pay" in err


def test_a_dossier_speaks_of_people_and_says_how_attacks_count_them():
    table = small_table(240)
    rows = cv.Table(table.frame.assign(id=[f"K{i % 120:03}" for i in range(240)]), table.schema)
    members, others = rows.split(test_size=0.5, random_state=0)
    release = cv.Mondrian(k=5).fit(members).protect(members)
    made = cv.audit(release, members, control=others, attacks=["linkage"])
    assert made.asked["people"] == made.asked["controls"] == 60
    assert any("(120 rows of 60 people): attacks count people" in c for c in made.caveats)


def test_risks_of_a_release_are_those_of_people_not_of_their_rows(run, tmp_path):
    """Three rows each: a class of 15 rows may be five people, and one of them is found with 1 in 5, not 1 in 15."""
    rng = np.random.default_rng(0)
    once = pd.DataFrame({"id": [f"K{i:03}" for i in range(60)], "age": rng.integers(20, 60, 60)})
    rows = once.loc[once.index.repeat(3)].assign(ok=rng.choice(["y", "n"], 180))
    table = cv.Table.from_frame(rows, identifiers=["id"], quasi_identifiers=["age"])
    release = cv.Mondrian(k=5).fit(table).protect(table)
    sizes = release.to_text_frame().groupby("age").size()
    assert sizes.min() >= 15 and cv.measure.release_risk(release).prosecutor == 1 / math.ceil(sizes.min() / 3)
    rows.to_csv(tmp_path / "d.csv", index=False)
    write_schema(table.schema, tmp_path / "s.toml")
    asked = ("anonymize", tmp_path / "d.csv", "-s", tmp_path / "s.toml", "--k", 5)
    code, out, _ = run(*asked, "-o", tmp_path / "p.csv", "--report", tmp_path / "p.html", "--json")
    said, page = json.loads(out), html.unescape((tmp_path / "p.html").read_text(encoding="utf-8"))
    assert code == 0 and said["people"] == math.ceil(said["smallest"] / 3) and said["prosecutor"] == 1 / said["people"]
    assert "people at least in the smallest class" in page
    assert page.count("Some people have up to 3 rows") == 1  # each thing is said once
    members, others = table.split(test_size=0.4, random_state=0)
    of_part = cv.Mondrian(k=5).fit(members).protect(members)
    made = cv.audit(of_part, members, control=others, attacks=["linkage"])
    assert made.findings[0].sets.least == math.ceil(of_part.to_text_frame().groupby("age").size().min() / 3)


def test_pictures_leave_out_values_of_few_people_however_many_rows_they_have(run, tmp_path):
    """Four people, five rows each, live in a place of their own: twenty rows, and no bar."""
    rng = np.random.default_rng(0)
    once = pd.DataFrame({"id": [f"K{i:03}" for i in range(84)], "town": ["Ghent", "Bruges"] * 40 + ["Xqtown"] * 4})
    rows = once.loc[once.index.repeat(5)].assign(ok=rng.choice(["y", "n"], 420))
    table = cv.Table.from_frame(rows, identifiers=["id"], quasi_identifiers=["town"])
    release = cv.Mondrian(k=4).fit(table).protect(table)
    assert summarize(release, table).columns[0].values == ("Bruges", "Ghent")
    bins, heights = coarse_shares(table, "town")
    assert heights[bins.index("Xqtown")] == 0 < heights[bins.index("Ghent")]
