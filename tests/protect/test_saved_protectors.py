"""Saved without people: what a file of a protector holds, and what it gives back."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.protect import GroupSearch
from countervail.testing import small_model, small_table

TOWNS = cv.Hierarchy((("a", "north", "*"), ("b", "north", "*"), ("c", "south", "*")), "city")


def fitted(protector):
    table = small_table(90)
    made = protector.fit(table, small_model) if isinstance(protector, cv.CFK) else protector.fit(table)
    return made, table


def told(protector):
    """All that a protector gives away, in order."""
    if isinstance(protector, cv.CFK):
        return protector.explain(small_table(30, seed=4).features).to_json()
    release = protector.protect()
    frame = release.to_text_frame().astype(str)
    return [str(release.guarantee), list(release.caveats), sorted(map(tuple, frame.to_numpy().tolist()))]


SAVABLE = [
    cv.CFK(k=4),
    cv.CFK(k=4, search=GroupSearch(cell_budget=50, grouping="mondrian"), target=["yes"]),
    cv.CFK(k=4, l=2, sensitive="ill"),
    cv.Mondrian(k=4),
    cv.Mondrian(k=4, l=(3.0, 2), diversity="recursive", sensitive="ill", by_class=True),
    cv.Mondrian(k=4, hierarchies={"city": TOWNS}, labels="hierarchy", suppress=0.1),
    cv.Mondrian(k=4, mode="relaxed"),
    cv.KCommonPatterns(k=4),
    cv.Microaggregation(k=4, method="v-mdav"),
]


@pytest.mark.parametrize("protector", SAVABLE, ids=repr)
def test_what_was_saved_answers_as_before_and_holds_no_identifier(protector, tmp_path):
    made, table = fitted(protector)
    path = tmp_path / "protector.json"
    made.save(path)
    assert path.stat().st_mode & 0o077 == 0
    text = path.read_text()
    assert not any(f'"{name}"' in text for name in table.frame["id"])
    again = cv.load_protector(path, small_model)
    assert told(again) == told(made)
    assert again.guarantee() == made.guarantee()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == text
    assert told(pickle.loads(pickle.dumps(again))) == told(made)


@pytest.mark.parametrize(
    "protector", [cv.Mondrian(k=4), cv.Mondrian(k=4, by_class=True), cv.Microaggregation(k=4)], ids=repr
)
def test_new_rows_go_down_the_saved_cuts(protector, tmp_path):
    made, table = fitted(protector)
    made.save(tmp_path / "cuts.json")
    again, fresh = cv.load_protector(tmp_path / "cuts.json"), small_table(200, seed=8)
    a, b = (p.protect(fresh).to_text_frame().astype(str) for p in (made, again))
    assert sorted(map(tuple, a.to_numpy().tolist())) == sorted(map(tuple, b.to_numpy().tolist()))
    assert len(table) == 90


def test_dates_zones_and_labels_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "born": pd.to_datetime("1970-01-01") + pd.to_timedelta(rng.integers(0, 9, 60) * 365, "D"),
            "seen": pd.to_datetime("2020-01-01", utc=True) + pd.to_timedelta(rng.integers(0, 3, 60), "h"),
            "flag": rng.choice([True, False], 60),
            "kind": pd.Categorical(rng.choice(["é", "b", "ä"], 60)),
            "grade": pd.Categorical(rng.choice(["low", "high"], 60), ["low", "high"], ordered=True),
            "code": rng.choice([7, 8, 9], 60).astype(object),
            "pay": rng.random(60),
            "ok": rng.choice([0, 1], 60),
        }
    )
    table = cv.Table.from_frame(frame, target="ok", favourable=1, quasi_identifiers=["born", "kind"])

    def model(rows):
        assert isinstance(rows["kind"].dtype, pd.CategoricalDtype) and rows["grade"].cat.ordered
        assert rows["seen"].dt.tz is not None and rows["flag"].dtype == bool
        return (rows["pay"] > 0.5).astype(int).to_numpy()

    made = cv.CFK(k=4).fit(table, model)
    made.save(tmp_path / "cfk.json")
    again = cv.load_protector(tmp_path / "cfk.json", model)
    a, b = made.explain(table), again.explain(table)
    assert a.found.any() and a.to_json() == b.to_json()
    assert made.search_.sealed_.digest == again.search_.sealed_.digest


def test_searches_that_answer_from_rows_are_not_saved(tmp_path):
    for search in ("exact", "grasp"):
        made, _ = fitted(cv.CFK(k=4, search=search))
        with pytest.raises(ValueError, match="'search' parameter of CFK must be 'groups' to be saved"):
            made.save(tmp_path / "no.json")
    assert not (tmp_path / "no.json").exists()


def test_an_explainer_needs_its_model_and_notices_another_one(tmp_path):
    made, _ = fitted(cv.CFK(k=4))
    made.save(tmp_path / "cfk.json")
    with pytest.raises(ValueError, match="'model' parameter of load_protector"):
        cv.load_protector(tmp_path / "cfk.json")
    with pytest.raises(cv.SchemaError, match="decides otherwise"):
        cv.load_protector(tmp_path / "cfk.json", lambda frame: np.where(frame["age"] > 40, "yes", "no"))


def test_a_ledger_is_told_before_a_protector_is_saved(tmp_path):
    ledger = cv.Ledger("people", epsilon=1.0)
    made, table = fitted(cv.CFK(k=4, ledger=ledger))
    made.save(tmp_path / "cfk.json")
    assert ledger.statement().groupings == 1
    other = cv.Mondrian(k=5, ledger=ledger).fit(table)
    with pytest.raises(cv.RefusedError, match="grouped before"):
        other.save(tmp_path / "no.json")
    assert not (tmp_path / "no.json").exists()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "cfk.json"
    fitted(cv.CFK(k=4))[0].save(path)
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: "no json", "is no JSON object"),
        (lambda d: [], "is no JSON object"),
        (lambda d: {"kind": "roster"}, "holds no protector"),
        (lambda d: {**d, "format": 99}, "another format"),
        (lambda d: {**d, "protector": "nobody"}, "is damaged"),
        (lambda d: {**d, "parameters": {"height": 3}}, "is damaged"),
        (
            lambda d: {**d, "parameters": {**d["parameters"], "search": {"made": "Popen", "parameters": {}}}},
            "is damaged",
        ),
        (lambda d: {**d, "search": {**d["search"], "kept": [10**6]}}, "is damaged"),
        (lambda d: {**d, "search": {**d["search"], "after": [0] * len(d["search"]["after"])}}, "is damaged"),
        (lambda d: {**d, "search": {**d["search"], "pureness": []}}, "is damaged"),
        (lambda d: {**d, "search": {**d["search"], "table": {}}}, "is damaged"),
        (lambda d: {k: v for k, v in d.items() if k != "search"}, "is damaged"),
        (lambda d: {**d, "parameters": {**d["parameters"], "k": 1000}}, "is damaged"),
        (lambda d: {**d, "parameters": {**d["parameters"], "k": -5}}, "is damaged"),
        (lambda d: {**d, "parameters": {**d["parameters"], "k": None}}, "is damaged"),
        (lambda d: {**d, "parameters": {**d["parameters"], "l": 9, "sensitive": "ill"}}, "is damaged"),
        (lambda d: {**d, "parameters": {**d["parameters"], "t": 0.0, "sensitive": "ill"}}, "is damaged"),
    ],
)
def test_a_damaged_file_is_said_in_one_line(stored, tmp_path, change, message):
    path = tmp_path / "bad.json"
    changed = change(stored)
    path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
    with pytest.raises(cv.SchemaError, match=message) as caught:
        cv.load_protector(path, small_model)
    assert "bad.json" in str(caught.value) and "\n" not in str(caught.value)


def test_no_file_is_said(tmp_path):
    with pytest.raises(cv.DataNotFoundError, match=r"no file 'nothing\.json'"):
        cv.load_protector(tmp_path / "nothing.json")
    with pytest.raises(cv.DataNotFoundError):
        cv.load_protector(tmp_path)


def test_a_table_with_dates_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    born = pd.to_datetime("1970-01-01") + pd.to_timedelta(rng.integers(0, 9, 60) * 365, "D")
    frame = pd.DataFrame({"born": born, "ill": rng.choice(["x", "y"], 60)})
    table = cv.Table.from_frame(frame, quasi_identifiers=["born"])
    made = cv.Mondrian(k=4).fit(table)
    made.save(tmp_path / "dates.json")
    again = cv.load_protector(tmp_path / "dates.json")
    fresh = cv.Table.from_frame(frame.iloc[::-1].reset_index(drop=True), quasi_identifiers=["born"])
    a, b = (p.protect(fresh).to_text_frame().astype(str) for p in (made, again))
    assert sorted(map(tuple, a.to_numpy().tolist())) == sorted(map(tuple, b.to_numpy().tolist()))


def test_a_suppressed_row_does_not_reach_the_file(tmp_path):
    """Neither a text among numbers nor a missing label of somebody who is left out."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": [*rng.integers(20, 24, 40), 99], "pay": range(41), "ok": [0, 1] * 20 + [1]})
    files = []
    for pay, label in ((7, 1), ("a lot", 1), (7, None)):
        odd = frame.astype({"pay": object, "ok": object})
        odd.loc[40, ["pay", "ok"]] = [pay, label]
        odd = odd.infer_objects()
        table = cv.Table.from_frame(odd, target="ok", favourable=1, quasi_identifiers=["age"])
        made = cv.Mondrian(k=4, suppress=0.1, random_state=0).fit(table)
        assert made.suppressed_ == 1
        made.save(tmp_path / "table.json")
        files.append(((tmp_path / "table.json").read_text(), made.protect().to_json()))
    assert files[0] == files[1] == files[2]
