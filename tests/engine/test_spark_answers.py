"""Answers that a cluster gives: those of one call, also where workers are killed and tasks are run twice."""

import os
import signal
import sys
from pathlib import Path

import pandas as pd
import pytest
from pyspark import cloudpickle

import countervail as cv
from countervail.engine.spark import relation as spark
from countervail.testing import small_model, small_table

FEATURES = small_table(1).schema.features


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    path = tmp_path_factory.mktemp("asked") / "asked.parquet"
    small_table(60, seed=4).frame[["id", *FEATURES]].to_parquet(path)
    return path


def by_id(folder):
    return pd.read_parquet(folder).sort_values(["id", "answer"]).reset_index(drop=True)


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_answers_are_those_of_one_machine(kind, sessions, asked, tmp_path):
    explainer = cv.CFK(k=5, n_counterfactuals=2).fit(small_table(90), small_model)
    here = cv.explain_scan(explainer, cv.Table.scan(asked), tmp_path / "here", id="id", jobs=1)
    scan = cv.Table.scan(asked, engine="spark", session=sessions[kind])
    there = cv.explain_scan(explainer, scan, tmp_path / "there", id="id")
    pd.testing.assert_frame_equal(by_id(tmp_path / "there"), by_id(tmp_path / "here"))
    assert (there.queries, there.status, there.caveats) == (here.queries, here.status, here.caveats)


def once(mark):
    """Whether nobody has been here before."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class Struck:
    """Work that goes wrong the first time, wherever it is done."""

    def __init__(self, work, mark, how):
        self.work, self.mark, self.how = work, str(mark), how

    def __call__(self, piece):
        if once(self.mark):
            if self.how == "killed":  # the process above the one that forks Python's workers: the executor
                above = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])
                os.kill(above, signal.SIGKILL)
            elif self.how == "failed":
                raise OSError("a disk of this worker")
            else:  # slow: until the same piece is worked on a second time, elsewhere
                until_there(f"{self.mark}-again")
        elif self.how == "slow":
            Path(f"{self.mark}-again").touch()
        return self.work(piece)


def until_there(path, tries=1200):
    from threading import Event

    for _ in range(tries):
        if os.path.exists(path):
            return
        Event().wait(0.05)
    raise TimeoutError("the piece was not worked on a second time")


def strike(monkeypatch, mark, how):
    """Let the first piece of work that a cluster gets go wrong; workers do not have this file."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(spark, "InBatches", lambda work, cut, real=spark.InBatches: real(Struck(work, mark, how), cut))
    monkeypatch.setattr(spark, "OnParts", lambda work, real=spark.OnParts: real(Struck(work, mark, how)))


@pytest.mark.parametrize("how", ["failed", "killed", "slow"])
def test_a_query_is_paid_for_once_however_often_it_is_worked_on(how, sessions, tmp_path, monkeypatch):
    people = small_table(900, seed=4).frame[["id", *FEATURES]]
    people.to_parquet(tmp_path / "asked.parquet")
    ledger = cv.Ledger("people of the cluster", epsilon=1000.0)
    private = cv.PrivateNeighbours(0.5, ledger=ledger).fit(small_table(90), small_model)
    scan = cv.Table.scan(tmp_path / "asked.parquet", engine="spark", session=sessions["classic"])
    strike(monkeypatch, tmp_path / "mark", how)
    found = cv.explain_scan(private, scan, tmp_path / "out", id="id")
    assert (tmp_path / "mark").exists() and (how != "slow" or (tmp_path / "mark-again").exists())
    entries = ledger.history()
    asking = sum(n for status, n in found.status.items() if status != "already_favourable")
    assert len({e.request for e in entries}) == len(entries) and all(e.stored for e in entries)
    assert 256 < len(entries) <= asking  # several parts; people who are equal on the grid share an answer
    cv.explain_scan(private, cv.Table.scan(tmp_path / "asked.parquet"), tmp_path / "again", id="id", jobs=1)
    assert len(ledger.history()) == len(entries)
    pd.testing.assert_frame_equal(by_id(tmp_path / "again"), by_id(tmp_path / "out"))


@pytest.mark.parametrize("how", ["killed", "slow"])
def test_answers_are_written_once_however_often_they_are_made(how, sessions, asked, tmp_path, monkeypatch):
    explainer = cv.CFK(k=5).fit(small_table(90), small_model)
    cv.explain_scan(explainer, cv.Table.scan(asked), tmp_path / "here", id="id", jobs=1)
    strike(monkeypatch, tmp_path / "mark", how)
    scan = cv.Table.scan(asked, engine="spark", session=sessions["classic"])
    cv.explain_scan(explainer, scan, tmp_path / "there", id="id")
    assert (tmp_path / "mark").exists()
    pd.testing.assert_frame_equal(by_id(tmp_path / "there"), by_id(tmp_path / "here"))
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".countervail")]
