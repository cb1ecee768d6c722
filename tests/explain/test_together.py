"""One change for several people: tried row by row against the model, the fewest that are enough, and limits."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.cells import fits
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_model, small_table

TABLE = small_table(200)


def answers(made=None, n=25, seed=1):
    return (made or cv.CFK(k=5)).fit(TABLE, small_model).explain(small_table(n, seed=seed))


def favourable(row):
    frame = pd.DataFrame([row]).astype({"level": TABLE.frame["level"].dtype})
    return small_model(frame)[0, 1] > 0.5


def values(cell):
    if isinstance(cell, pd.Interval):
        return [cell.left, (cell.left + cell.right) / 2, cell.right]
    return list(cell) if isinstance(cell, frozenset) else [cell]


def helps(change, person):
    """Whether a change helps a person, value by value and row by row."""
    moved = {n: c for n, c in change.items() if not fits(person[n], c)}
    rows = [{**person, **dict(zip(moved, picked))} for picked in product(*(values(c) for c in moved.values()))]
    return bool(moved) and all(favourable(row) for row in rows)


@pytest.mark.parametrize(
    "made",
    [cv.CFK(k=5), cv.CFK(k=5, reward="none"), cv.CFK(k=5, search="exact"), cv.NICE(target="favourable")],
    ids=str,
)
def test_everybody_named_is_helped_and_nobody_else_could_be(made):
    found = answers(made)
    shared = cv.share_changes(found, small_model)
    people = found.factuals.to_dict("records")
    proposed = [e.changes for e in found if e.found and e.changes]
    for change, who in zip(shared.changes, shared.people):
        assert change in proposed and len(who) and all(helps(change, people[i]) for i in who)
    named = sorted(i for who in shared.people for i in who)
    assert len(named) == len(set(named)) == shared.helped
    able = [i for i, p in enumerate(people) if not favourable(p) and any(helps(c, p) for c in proposed)]
    assert named == able and shared.asked == sum(not favourable(p) for p in people)


def test_the_choice_is_as_small_as_greed_allows(seeds):
    for seed in seeds(5, 60):
        found = answers(n=14, seed=seed)
        shared = cv.share_changes(found, small_model)
        people = found.factuals.to_dict("records")
        proposed = [e.changes for e in found if e.found and e.changes]
        reach = [{i for i, p in enumerate(people) if not favourable(p) and helps(c, p)} for c in proposed]
        everybody = set().union(*reach)
        fewest = next(
            size for size in range(len(reach) + 1) for c in combinations(reach, size) if set().union(*c) == everybody
        )
        assert fewest <= len(shared) <= np.ceil(fewest * (1 + np.log(max(len(everybody), 1))))
        sizes = [len(who) for who in shared.people]
        assert sizes == sorted(sizes, reverse=True) and (not sizes or sizes[0] == max(map(len, reach)))


def test_one_change_for_all_is_the_one_that_helps_most():
    found = answers()
    one, all_ = cv.share_changes(found, small_model, most=1), cv.share_changes(found, small_model)
    assert len(one) == 1 and one.people[0].tolist() == all_.people[0].tolist() and one.helped <= all_.helped


def test_what_one_person_may_do_another_may_not():
    """By hand: the change "age 40" helps both; who is 50 may only grow older."""
    frame = pd.DataFrame({"age": [30, 50, 40, 45], "city": list("aaaa"), "ok": ["no", "no", "yes", "yes"]})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes")

    def model(rows):
        return np.where(rows["age"].between(38, 46), "yes", "no")

    found = cv.NICE(target="favourable").fit(table, model).explain(pd.DataFrame({"age": [30, 50], "city": list("aa")}))
    assert [e.changes for e in found] == [{"age": 40}, {"age": 45}]
    assert cv.share_changes(found, model).helped == 2 and len(cv.share_changes(found, model)) == 1
    older = cv.share_changes(found, model, monotone={"age": "up"})
    assert older.helped == 1 and older.people[0].tolist() == [0]
    assert cv.share_changes(found, model, immutable=["age"]).helped == 0
    assert cv.share_changes(found, model, ranges={"age": (44, 100)}).changes == ({"age": 45},)


def test_the_promise_is_that_of_the_answers_and_no_own_value_is_told():
    found = answers()
    shared = cv.share_changes(found, small_model)
    assert shared.guarantee == found.guarantee == cv.KAnonymity(5, against="algorithm")
    assert f"{shared.helped} of {shared.asked} people" in shared.to_text()
    assert shared.to_frame()["people"].sum() == shared.helped
    assert "people" in shared.to_frame() and "person" not in repr(shared)


def test_ranges_that_were_tried_in_part_are_said():
    said = "Of long ranges and of very many combinations some were tried"
    frame = pd.DataFrame({"age": np.arange(20, 60), "pay": np.arange(40) % 2})
    frame["ok"] = np.where(frame["pay"] == 1, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])

    def model(rows):
        return np.where(rows["pay"] == 1, "yes", "no")

    made = cv.CFK(k=20, reward="none").fit(table, model)
    whole = cv.share_changes(made.explain(pd.DataFrame({"age": [70], "pay": [0]})), model)
    assert whole.changes[0]["age"].length >= 9 and any(said in c for c in whole.caveats)
    plain = cv.share_changes(answers(cv.NICE(target="favourable")), small_model)
    assert not any(said in c for c in plain.caveats)


def test_nobody_to_help_is_no_error():
    rich = TABLE.frame[small_model(TABLE.features)[:, 1] > 0.5].head(4)
    found = cv.CFK(k=5).fit(TABLE, small_model).explain(rich)
    shared = cv.share_changes(found, small_model)
    assert len(shared) == shared.helped == shared.asked == 0 and "0 of 0 people" in shared.to_text()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: cv.share_changes(TABLE, small_model), "'found' parameter of share_changes must be Explanations"),
        (lambda e: cv.share_changes(e, small_model, most=0), "'most' parameter of share_changes"),
        (lambda e: cv.share_changes(e, small_model, immutable=["shoe"]), "shoe"),
        (lambda e: cv.share_changes(e, small_model, target="rich"), "'target' parameter of share_changes"),
        (lambda e: cv.share_changes(e.without_audit(), small_model), "Pass table="),
    ],
)
def test_what_cannot_be_done_is_said(call, words):
    with pytest.raises(cv.CountervailError, match=words):
        call(answers(n=5))


def test_the_command_writes_shared_changes(run, tmp_path):
    write_frame(TABLE.frame, tmp_path / "t.csv")
    write_schema(TABLE.schema, tmp_path / "t.toml")
    write_frame(small_table(20, seed=1).features, tmp_path / "asked.csv")
    words = ("explain", tmp_path / "t.csv", "--schema", tmp_path / "t.toml", "--rows", tmp_path / "asked.csv", "--k", 5)
    code, _, err = run(*words, "--shared", tmp_path / "shared.csv", "--immutable", "age")
    assert code == 0 and "changes that help" in err
    shown = pd.read_csv(tmp_path / "shared.csv")
    assert shown["people"].sum() > 0 and "age" not in shown.columns
    code, _, err = run(*words, "--shared", tmp_path / "shared.txt")
    assert code == 2 and "must end in one of" in err


def one_label(table):
    return cv.Table(table.frame.assign(ok="no"), table.schema)


def whole_numbers(table):
    return cv.Table(table.frame.assign(income=table.frame["income"].round().astype(int)), table.schema)


@pytest.mark.parametrize(
    "made", [cv.PrivateSynthetic(20.0, rows=300), cv.PrivateHistograms(20.0, records=200)], ids=str
)
def test_the_table_behind_noisy_answers_has_no_part_in_what_is_shared(made):
    """Its labels and dtypes had: a table whose people all have one label ended in an error."""
    found = answers(made)
    texts = [cv.share_changes(found, small_model).to_text()]
    for other in (one_label(TABLE), whole_numbers(TABLE), small_table(3)):
        texts.append(cv.share_changes(found.with_parts(audit=other), small_model).to_text())
        texts.append(cv.share_changes(found, small_model, table=other).to_text())
    texts.append(cv.share_changes(found.without_audit(), small_model).to_text())
    assert found.found.any() and len(set(texts)) == 1
