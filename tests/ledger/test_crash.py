"""Crashes and races; benchmarks/studies/ledger_crash.py runs the long versions."""

from killed_processes import crash, race


def test_what_was_sent_is_debited_and_stored_whenever_processes_are_killed(tmp_path):
    found = crash(tmp_path, kills=40)
    assert found.sent > 0 and found.debited >= found.sent
    assert sum(found.phases.values()) == 40


def test_exactly_one_of_two_processes_gets_the_last_debit(tmp_path):
    assert race(tmp_path, races=60) == [1] * 60
