"""Answers to a scan: those of one call, made in any number of processes, written whole, and paid for once."""

import json
import os
import signal

import pandas as pd
import pytest

import countervail as cv
from countervail.core.cells import cell_text
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_model, small_table

FEATURES = small_table(1).schema.features


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Sixty queries in three files, their names beside them; what everybody would have got in one call."""
    folder = tmp_path_factory.mktemp("asked")
    frame = small_table(60, seed=4).frame[["id", *FEATURES]].reset_index(drop=True)
    for i in range(3):
        frame.iloc[20 * i : 20 * (i + 1)].to_parquet(folder / f"part-{i}.parquet")
    return folder, frame


def by_id(folder):
    frame = pd.concat([pd.read_parquet(p) for p in sorted(folder.glob("*.parquet"))])
    return frame.sort_values(["id", "answer"]).reset_index(drop=True)


def in_one_call(explainer, frame):
    """The same answers, from Explanations themselves."""
    e = explainer.explain(frame[FEATURES]).with_ids(frame["id"], "id")
    shown = e.counterfactuals.astype(object)
    texts = {n: [None if pd.isna(s) else s for s in _shown(shown[n], e.found)] for n in FEATURES}
    lead = {"id": e.ids, "answer": pd.Series(e.query).groupby(e.query).cumcount(), "status": e.status}
    found = pd.DataFrame({**lead, "decision": _shown(e.after, e.found), **texts})
    return found.sort_values(["id", "answer"]).reset_index(drop=True)


def _shown(cells, found):
    return [cell_text(c) if f else None for c, f in zip(cells, found)]


def as_texts(frame):
    """Cells in words, however they are stored."""
    return frame.assign(**{n: _shown(frame[n], frame["status"] == "found") for n in ("decision", *FEATURES)})


EXPLAINERS = [
    cv.CFK(k=5),
    cv.CFK(k=5, n_counterfactuals=3),
    cv.CFK(k=5, search="exact"),
    cv.NICE(target="favourable", reward="sparsity"),
    cv.PrivateSynthetic(2.0, random_state=0),
]


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=repr)
def test_answers_are_those_of_one_call(explainer, asked, tmp_path):
    folder, frame = asked
    explainer = explainer.fit(small_table(90), small_model)
    found = cv.explain_scan(explainer, cv.Table.scan(folder), tmp_path / "out", id="id", jobs=1)
    answers = by_id(tmp_path / "out")
    pd.testing.assert_frame_equal(as_texts(answers), in_one_call(explainer, frame), check_dtype=False)
    one = explainer.explain(frame[FEATURES])
    assert (found.queries, found.guarantee, found.caveats) == (60, one.guarantee, one.caveats)
    assert found.status == one.status[~pd.Series(one.query).duplicated()].value_counts().to_dict()
    told = json.loads((tmp_path / "out" / "_explanations.json").read_text())
    assert told["guarantee"] == one.guarantee.to_dict() and told["queries"] == 60
    assert told["caveats"] == list(one.caveats)


def test_processes_give_the_same_files(asked, tmp_path):
    folder, _ = asked
    explainer = cv.CFK(k=5).fit(small_table(90), small_model)
    for jobs in (1, 2):
        cv.explain_scan(explainer, cv.Table.scan(folder), tmp_path / f"out-{jobs}", id="id", jobs=jobs)
    pd.testing.assert_frame_equal(by_id(tmp_path / "out-1"), by_id(tmp_path / "out-2"))


def test_a_ledger_pays_once_for_each_query_and_a_rerun_pays_nothing(asked, tmp_path):
    folder, frame = asked
    ledger = cv.Ledger.create(tmp_path / "people.ledger", "people of the scan", epsilon=100.0)
    private = cv.PrivateNeighbours(0.5, ledger=ledger).fit(small_table(90), small_model)
    scan = cv.Table.scan(folder)
    found = cv.explain_scan(private, scan, tmp_path / "out", id="id", jobs=2)
    asking = sum(n for s, n in found.status.items() if s != "already_favourable")
    assert 0 < asking < 60
    entries = ledger.history()
    assert len({e.request for e in entries}) == len(entries) <= asking and all(e.stored for e in entries)
    cv.explain_scan(private, scan, tmp_path / "again", id="id", jobs=1)
    assert len(ledger.history()) == len(entries)
    pd.testing.assert_frame_equal(by_id(tmp_path / "out"), by_id(tmp_path / "again"))
    pd.testing.assert_frame_equal(as_texts(by_id(tmp_path / "out")), in_one_call(private, frame), check_dtype=False)
    assert found.guarantee.budget == ledger.budget


def test_a_budget_that_does_not_cover_all_queries_answers_none(asked, tmp_path):
    ledger = cv.Ledger("people of the scan", epsilon=2.0)
    private = cv.PrivateNeighbours(0.5, ledger=ledger).fit(small_table(90), small_model)
    with pytest.raises(cv.BudgetError, match="Nothing was answered"):
        cv.explain_scan(private, cv.Table.scan(asked[0]), tmp_path / "out", id="id", jobs=1)
    assert not ledger.history() and not (tmp_path / "out").exists()


def test_a_grouping_is_recorded_before_answers_leave(asked, tmp_path):
    ledger = cv.Ledger("people of the scan", epsilon=1.0)  # in memory: it cannot go along, and need not
    explainer = cv.CFK(k=5, ledger=ledger).fit(small_table(90), small_model)
    cv.explain_scan(explainer, cv.Table.scan(asked[0]), tmp_path / "out", id="id", jobs=1)
    assert [e.kind for e in ledger.history()] == ["groups"]


def ends_its_process(frame):
    """A model whose process is killed while it is asked about a batch."""
    if len(frame) > 2 and os.environ.get("COUNTERVAIL_TEST_PARENT") != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return small_model(frame)


def test_a_killed_process_leaves_nothing(asked, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERVAIL_TEST_PARENT", str(os.getpid()))
    explainer = cv.CFK(k=5).fit(small_table(90), ends_its_process)
    with pytest.raises(cv.CountervailError, match=r"ended by the system.*Nothing was written"):
        cv.explain_scan(explainer, cv.Table.scan(asked[0]), tmp_path / "out", id="id", jobs=2)
    assert not list(tmp_path.iterdir())


def test_bad_input_is_named_before_work(asked, tmp_path):
    folder, frame = asked
    explainer = cv.CFK(k=5).fit(small_table(90), small_model)
    scan = cv.Table.scan(folder)
    with pytest.raises(cv.ParameterError, match="'id' parameter of explain_scan"):
        cv.explain_scan(explainer, scan, tmp_path / "out", id="name")
    with pytest.raises(cv.ParameterError, match="'scan' parameter"):
        cv.explain_scan(explainer, frame, tmp_path / "out", id="id")
    with pytest.raises(cv.ParameterError, match="'jobs' parameter"):
        cv.explain_scan(explainer, scan, tmp_path / "out", id="id", jobs=0)
    with pytest.raises(cv.ParameterError, match="does not exist yet"):
        cv.explain_scan(explainer, scan, folder, id="id")
    private = cv.PrivateNeighbours(0.5).fit(small_table(90), small_model)
    with pytest.raises(cv.ParameterError, match="with a ledger"):
        cv.explain_scan(private, scan, tmp_path / "out", id="id")
    frame.drop(columns="age").to_parquet(tmp_path / "lacking.parquet")
    with pytest.raises(cv.SchemaError, match=r"lack these columns.*age"):
        cv.explain_scan(explainer, cv.Table.scan(tmp_path / "lacking.parquet"), tmp_path / "out", id="id")
    frame.assign(id=frame["id"].where(frame.index > 3)).to_parquet(tmp_path / "nameless.parquet")
    with pytest.raises(cv.ParameterError, match="4 have none") as told:
        cv.explain_scan(explainer, cv.Table.scan(tmp_path / "nameless.parquet"), tmp_path / "out", id="id", jobs=1)
    assert "person-" not in str(told.value) and not (tmp_path / "out").exists()


FAILING = []


def fails_later(frame):
    """A model that tells about somebody when it fails."""
    if FAILING and len(frame) > 1:
        raise ValueError(f"cannot decide about {frame.iloc[0].to_dict()}")
    return small_model(frame)


def test_what_a_model_says_of_a_row_is_not_repeated(asked, tmp_path, monkeypatch):
    explainer = cv.NICE(target="favourable").fit(small_table(90), fails_later)
    monkeypatch.setattr(f"{__name__}.FAILING", [1])
    with pytest.raises(cv.CountervailError, match="failed with ValueError") as told:
        cv.explain_scan(explainer, cv.Table.scan(asked[0]), tmp_path / "out", id="id", jobs=1)
    assert "cannot decide" not in str(told.value) and not (tmp_path / "out").exists()


def test_what_is_sent_of_groups_holds_no_rows(asked):
    from countervail.protect.scans.sent import SentExplainer

    table = small_table(90)
    sent = SentExplainer.of(cv.CFK(k=5).fit(table, small_model), "id")
    assert sent.saved and len(sent.pickled) < 2000
    assert not any(name in sent.saved for name in table.frame["id"])


def test_the_command_answers_a_scan(asked, run, tmp_path):
    folder, frame = asked
    table = small_table(90)
    table.frame.to_csv(tmp_path / "people.csv", index=False)
    write_schema(table.schema, tmp_path / "people.toml")
    words = ["explain", tmp_path / "people.csv", "--schema", tmp_path / "people.toml"]
    words += ["--rows", folder, "--engine", "memory", "--threads", "1"]
    code, _, said = run(*words, "--id", "id")
    assert code and "--engine needs -o" in said
    noisy = ["--method", "private-neighbours", "--epsilon", "1"]
    code, _, said = run(*words, "--id", "id", "-o", tmp_path / "out", *noisy)
    assert code and "needs --ledger" in said
    code, out, said = run(*words, "--id", "id", "-o", tmp_path / "out", "--k", "5", "--json")
    assert code == 0, said
    told, beside = json.loads(out), json.loads((tmp_path / "out" / "_explanations.json").read_text())
    assert sum(told["status"].values()) == 60 and told["guarantee"] == beside["guarantee"]
    assert set(told["caveats"]) == set(beside["caveats"]) and any("No --model given" in c for c in beside["caveats"])
    assert set(by_id(tmp_path / "out")["id"]) == set(frame["id"])
