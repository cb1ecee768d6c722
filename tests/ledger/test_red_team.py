"""What a red team found around the ledger: each finding stays a test."""

import os
import pickle
import threading

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import LedgerError
from countervail.ledger import Cost, Ledger
from countervail.testing import small_model, small_table


def draw(places):
    return [b"answer"] * len(places)


def test_a_fit_in_another_thread_does_not_come_between_debit_and_noise():
    """The inner search takes its time; meanwhile the protector is fitted again with next to no noise."""
    started, go_on = threading.Event(), threading.Event()

    class Slow(cv.NICE):
        waits = False

        def explain(self, rows, **more):
            if Slow.waits:
                Slow.waits = False
                started.set()
                go_on.wait(30)
            return super().explain(rows, **more)

    protector = cv.NoisyCounterfactual(0.01, explainer=Slow(), ledger=Ledger("people", epsilon=1e6))
    protector.fit(small_table(80), small_model)
    first, seen = protector.randomiser_, []
    kind = type(first)
    plain = kind.draw

    def watched(self, codes, words):
        seen.append(self)
        return plain(self, codes, words)

    asked = small_table(40, seed=2).features
    asked = asked[small_model(asked)[:, 1] < 0.4].head(1)
    Slow.waits = True
    asker = threading.Thread(target=lambda: protector.explain(asked))
    kind.draw = watched
    try:
        asker.start()
        assert started.wait(30)
        protector.set_params(epsilon=200.0).fit(small_table(80), small_model)
        go_on.set()
        asker.join(30)
    finally:
        kind.draw = plain
    assert seen and all(s is first for s in seen)


def test_progress_does_not_tell_new_questions_from_old_ones():
    protector = cv.PrivateNeighbours(1.0, ledger=Ledger("people", epsilon=100)).fit(small_table(80), small_model)
    asked = small_table(40, seed=2).features
    asked = asked[small_model(asked)[:, 1] < 0.4].head(3)
    ticks = [[], []]
    for seen in ticks:
        protector.explain(asked, progress=lambda done, of, seen=seen: seen.append((done, of)))
    assert ticks[0] == ticks[1] == [(3, 3)]


def test_one_file_under_two_names_is_refused(tmp_path):
    Ledger.create(tmp_path / "one.ledger", "people", epsilon=3)
    os.link(tmp_path / "one.ledger", tmp_path / "two.ledger")
    for name in ("one.ledger", "two.ledger"):
        with pytest.raises(LedgerError, match="second name"):
            Ledger.open(tmp_path / name, "people").answer([b"q"], Cost(1.0), "m", draw)


def test_a_file_moved_or_replaced_under_a_service_is_noticed(tmp_path):
    ledger = Ledger.create(tmp_path / "one.ledger", "people", epsilon=3)
    (tmp_path / "one.ledger").rename(tmp_path / "away.ledger")
    with pytest.raises(LedgerError, match="moved or deleted"):
        ledger.answer([b"q"], Cost(1.0), "m", draw)
    for left in ("-wal", "-shm"):
        (tmp_path / f"one.ledger{left}").unlink(missing_ok=True)
    Ledger.create(tmp_path / "one.ledger", "people", epsilon=3)
    with pytest.raises(LedgerError, match="replaced"):
        ledger.answer([b"q"], Cost(1.0), "m", draw)


def test_a_journal_left_behind_is_not_taken_over(tmp_path):
    (tmp_path / "one.ledger-wal").write_bytes(b"left")
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(tmp_path / "one.ledger", "people", epsilon=3)


def test_a_ledger_to_look_at_stays_so_after_a_pickle(tmp_path):
    Ledger.create(tmp_path / "one.ledger", "people", epsilon=3)
    look = pickle.loads(pickle.dumps(Ledger.open(tmp_path / "one.ledger", None)))
    with pytest.raises(LedgerError, match="looked at only"):
        look.answer([b"q"], Cost(1.0), "m", draw)


@pytest.mark.parametrize(
    "same",
    [
        {"epsilon": 1},
        {"epsilon": np.float64(1.0)},
        {"missing": []},
        {"split": {"income": 1, "ill": 1.0, "level": 1, "city": 1, "age": 1}},
    ],
    ids=["whole", "numpy", "list", "split"],
)
def test_equal_settings_are_one_question(same):
    ledger = Ledger("people", epsilon=3)
    cv.DPTable(1.0, ledger=ledger).fit(small_table())
    cv.DPTable(**{"epsilon": 1.0, **same}, ledger=ledger).fit(small_table())
    assert ledger.left(1.0) == 2


def test_explainers_that_differ_far_down_a_list_are_two_questions():
    made = []
    for last in ("x", "y"):
        inner = cv.NICE(immutable=[*("abcde" * 10), last])
        protector = cv.NoisyCounterfactual(1.0, explainer=inner, ledger=Ledger("people", epsilon=3))
        made.append(_spelling_of(protector))
    assert made[0] != made[1]


def _spelling_of(protector):
    from countervail.protect.dp.budgeted import _spelt

    return _spelt({k: v for k, v in protector.get_params(deep=False).items() if k != "ledger"})


def test_a_domain_that_was_read_off_the_rows_stays_so_through_files(tmp_path):
    from countervail.core.files.schema_file import read_schema, write_schema
    from countervail.data import propose_schema

    frame = small_table(80).frame.drop(columns="id").astype({"level": "str"})
    proposed = propose_schema(frame, "ok").schema
    write_schema(proposed, tmp_path / "people.toml")
    again = read_schema(tmp_path / "people.toml")
    assert "read = true" in (tmp_path / "people.toml").read_text()
    with pytest.raises(cv.SchemaError, match="read = true"):
        cv.DPTable(1.0).fit(cv.Table.from_frame(frame, schema=again))


def test_labels_read_off_the_rows_are_not_shown():
    table = small_table(80)
    labels = pd.Categorical(table.target.astype(str), ["no", "yes", "withdrawn"], ordered=True)
    read = cv.Table.from_frame(
        table.frame.assign(ok=labels), schema=table.schema.with_column("ok", type="ordinal", domain=None)
    )
    release = cv.DPTable(1.0).fit(read)
    assert b"withdrawn" not in pickle.dumps(release)
