"""Files, disks and clocks that cannot be trusted: a clear error, no answer, and nothing lost."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys

import pytest

from countervail.core.errors import LedgerError
from countervail.ledger import Cost, Ledger, store

TENTH = Cost(0.1)


def never(positions):
    raise AssertionError("an answer was drawn")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = Ledger.create(path, "people", epsilon=2.0)
    for i in range(3):
        ledger.answer([bytes([i])], TENTH, "m", lambda at: [b"a"])
    return path


def change(path, statement, *values):
    db = sqlite3.connect(path)
    with db:
        db.execute(statement, values)
    db.close()


def test_a_ledger_of_other_people(path):
    with pytest.raises(LedgerError, match="belongs to 'people', not to 'others'"):
        Ledger.open(path, "others")
    assert Ledger.open(path, "people").left(0.1) == 17


def test_a_missing_file(tmp_path):
    with pytest.raises(LedgerError, match="No ledger at"):
        Ledger.open(tmp_path / "none.ledger", "people")


def test_an_existing_file_is_never_overwritten(path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(path, "people", epsilon=5.0)
    assert path.read_bytes() == before
    with pytest.raises(LedgerError, match="No folder"):
        Ledger.create(tmp_path / "nowhere" / "a.ledger", "people", epsilon=1.0)
    assert {p.name for p in tmp_path.iterdir()} <= {"people.ledger", "people.ledger-wal", "people.ledger-shm"}


@pytest.mark.parametrize("content", [b"", b"age,job\n41,cook\n", b"SQLite format 3\x00" + bytes(4000)])
def test_files_that_are_no_ledgers(tmp_path, content):
    path = tmp_path / "some.ledger"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path, "people")
    assert path.read_bytes() == content


def test_another_sqlite_file(tmp_path):
    path = tmp_path / "some.ledger"
    change(path, "CREATE TABLE t (a)")
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path, "people")


def test_an_unknown_version(path):
    change(path, "PRAGMA user_version = 2")
    with pytest.raises(LedgerError, match="format 2; this version of Countervail knows format 1"):
        Ledger.open(path, "people")
    change(path, "PRAGMA user_version = 1")
    assert Ledger.open(path, "people").left(0.1) == 17


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE state SET used = '[0, 0]'", "totals .* damaged"),
        ("UPDATE state SET entries = 2", "totals .* damaged"),
        ("DELETE FROM state", "totals .* damaged"),
        ("DELETE FROM entries WHERE id = 3", "do not end where"),
        ("UPDATE about SET value = replace(value, '2.0', '9.0') WHERE name = 'budget'", "budget .* damaged"),
        ("DELETE FROM about WHERE name = 'key'", "budget .* damaged"),
        ("DROP TABLE answers", "damaged"),
    ],
    ids=range(7),
)
def test_a_changed_ledger_gives_no_answer(path, statement, said):
    change(path, statement)
    with pytest.raises(LedgerError, match=said):
        Ledger.open(path, "people").answer([b"new"], TENTH, "m", never)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE entries SET epsilon = 0.01 WHERE id = 2", "Entry 2"),
        ("DELETE FROM entries WHERE id = 1", "Entry 1"),
        ("UPDATE answers SET request = x'00' WHERE entry = 2", "answers without an entry"),
    ],
    ids=range(3),
)
def test_a_thorough_look_finds_changes_in_the_middle(path, statement, said):
    change(path, statement)
    with pytest.raises(LedgerError, match=said):
        Ledger.open(path, None).verify()


def test_a_changed_answer_is_not_sent(path):
    change(path, "UPDATE answers SET answer = zeroblob(33) WHERE entry = 1")
    with pytest.raises(LedgerError, match=r"stored answer .* is damaged"):
        Ledger.open(path, "people").answer([bytes([0])], TENTH, "m", never)


def test_a_torn_file(path, tmp_path):
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    torn = tmp_path / "torn.ledger"
    data = path.read_bytes()
    for size in (50, 4096, len(data) // 2):
        torn.write_bytes(data[:size])
        with pytest.raises(LedgerError, match=r"damaged|not a ledger"):
            Ledger.open(torn, "people").verify()
        for rest in tmp_path.glob("torn.ledger-*"):
            rest.unlink()


def test_bytes_gone_wrong_are_never_taken_for_more_budget(path, tmp_path):
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    data, bad = path.read_bytes(), tmp_path / "bad.ledger"
    for start in range(0, len(data), 1024):
        bad.write_bytes(data[:start] + bytes(256) + data[start + 256 :])
        with contextlib.suppress(LedgerError):
            assert Ledger.open(bad, "people").left(0.1) == 17
        for rest in tmp_path.glob("bad.ledger*"):
            rest.unlink()


def test_a_clock_that_goes_back(path, monkeypatch):
    ledger = Ledger.open(path, "people")
    last = ledger.statement().last
    monkeypatch.setattr(store.time, "time", lambda: last - 3600)
    with pytest.raises(LedgerError, match="clock is 3,600 seconds behind"):
        ledger.answer([b"new"], TENTH, "m", never)
    monkeypatch.setattr(store.time, "time", lambda: last - 5)
    ledger.answer([b"new"], TENTH, "m", lambda at: [b"a"])
    assert ledger.history()[-1].time == last and ledger.left(0.1) == 16
    ledger.verify()


_FILL = """
import resource, sys
from countervail.core.errors import LedgerError
from countervail.ledger import Cost, Ledger
ledger, sent = Ledger.open(sys.argv[1], "people"), 0
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    while True:
        ledger.answer([str(sent).encode()], Cost(0.0001), "full", lambda at: [bytes(500)])
        sent += 1
except LedgerError as error:
    print(sent, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on the size of files are POSIX")
def test_a_full_disk_gives_no_answer_and_loses_nothing(path):
    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(path), "150000"], capture_output=True, text=True, check=True
    )
    sent, said = done.stdout.split(" ", 1)
    assert "disk is full" in said and int(sent) > 5
    ledger = Ledger.open(path, "people")
    statement = ledger.verify()
    assert statement.entries >= 3 + int(sent)
    assert ledger.answer([str(int(sent) - 1).encode()], Cost(0.0001), "full", never) == [bytes(500)]
    ledger.answer([b"there is room again"], TENTH, "m", lambda at: [b"a"])


def test_a_file_that_may_not_be_written(path, tmp_path):
    other = tmp_path / "sealed"
    other.mkdir()
    shutil.copy(path, other / "people.ledger")
    (other / "people.ledger").chmod(0o400)
    other.chmod(0o500)
    try:
        try:
            (other / "probe").touch()
        except PermissionError:
            with pytest.raises(LedgerError, match="opened for writing"):
                Ledger.open(other / "people.ledger", "people").answer([b"new"], TENTH, "m", never)
        else:
            pytest.skip("this user may write everywhere")
    finally:
        other.chmod(0o700)
