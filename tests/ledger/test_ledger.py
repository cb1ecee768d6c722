"""The ledger: debit, draw, store, send; replay; one budget whatever is copied."""

import contextlib
import copy
import multiprocessing
import os
import pickle
import threading

import pytest

from countervail.core.errors import BudgetError, LedgerError, ParameterError, RefusedError
from countervail.ledger import Cost, Ledger
from countervail.ledger.ledger import check_ledger

TENTH = Cost(0.1)


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    if request.param == "memory":
        return Ledger("people", epsilon=1.0)
    return Ledger.create(tmp_path / "people.ledger", "people", epsilon=1.0)


class Drawn:
    """Counts draws; every answer is another."""

    def __init__(self):
        self.count = 0

    def __call__(self, positions):
        out = [f"answer {self.count + i}".encode() for i in range(len(positions))]
        self.count += len(positions)
        return out


def test_a_worked_example(ledger):
    draw = Drawn()
    assert ledger.answer([b"x", b"y", b"x"], TENTH, "m", draw) == [b"answer 0", b"answer 1", b"answer 0"]
    assert ledger.left(0.1) == 8 and ledger.left(0.3) == 2 and draw.count == 2
    assert ledger.answer([b"y", b"z"], TENTH, "m", draw) == [b"answer 1", b"answer 2"]
    assert ledger.left(0.1) == 7
    assert ledger.verify().left == "epsilon 0.7 of 1"
    entries = ledger.history()
    assert [e.number for e in entries] == [1, 2, 3] and [round(e.spent, 6) for e in entries] == [0.1, 0.2, 0.3]
    assert ledger.history(last=1) == entries[-1:] and all(e.stored for e in entries)


def test_the_budget_is_refused_in_words_and_nothing_is_debited(ledger):
    with pytest.raises(BudgetError, match=r"11 answers of epsilon = 0.1 each .* 10 such answers are left") as error:
        ledger.answer([bytes([i]) for i in range(11)], TENTH, "m", Drawn())
    assert "epsilon 1 of 1" in str(error.value) and "'people'" in str(error.value)
    assert ledger.left(0.1) == 10 and ledger.history() == []
    ledger.answer([bytes([i]) for i in range(9)], TENTH, "m", Drawn())
    with pytest.raises(BudgetError, match="one such answer is left"):
        ledger.answer([b"p", b"q"], TENTH, "m", Drawn())
    with pytest.raises(BudgetError, match="no such answer is left"):
        ledger.answer([b"p"], Cost(0.11), "m", Drawn())


def test_being_refused_does_not_tell_whether_somebody_asked_before(ledger):
    ledger.answer([bytes([i]) for i in range(10)], TENTH, "m", Drawn())
    texts = set()
    for request in (bytes([3]), b"never asked"):
        with pytest.raises(BudgetError) as error:
            ledger.answer([request], TENTH, "m", Drawn())
        texts.add(str(error.value))
    assert len(texts) == 1


def test_another_mechanism_is_another_question(ledger):
    one, other = (ledger.answer([b"x"], TENTH, m, Drawn()) for m in ("m", "n"))
    assert one == other == [b"answer 0"] and ledger.left(0.1) == 8


def test_another_edition_draws_anew_from_the_same_budget(tmp_path):
    path = tmp_path / "people.ledger"
    draw = Drawn()
    Ledger.create(path, "people", epsilon=1.0, edition="may").answer([b"x"], TENTH, "m", draw)
    later = Ledger.open(path, "people", edition="june")
    assert later.answer([b"x"], TENTH, "m", draw) == [b"answer 1"] and later.left(0.1) == 8
    assert pickle.loads(pickle.dumps(later)).answer([b"x"], TENTH, "m", draw) == [b"answer 1"]
    assert Ledger.open(path, "people", "may").answer([b"x"], TENTH, "m", draw) == [b"answer 0"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_draw_that_fails_is_debited(ledger, failure):
    def draw(positions):
        raise failure

    with pytest.raises(failure):
        ledger.answer([b"x"], TENTH, "m", draw)
    assert ledger.left(0.1) == 9 and [e.stored for e in ledger.history()] == [False]
    assert ledger.answer([b"x"], TENTH, "m", Drawn()) == [b"answer 0"]
    assert ledger.left(0.1) == 8, "a retry is another draw"


def test_the_debit_is_there_before_the_draw_and_the_answer_before_it_is_sent(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", "people", epsilon=1.0)
    seen = []

    def draw(positions):
        seen.append(Ledger.open(tmp_path / "people.ledger", None).statement().entries)
        return [b"a"]

    ledger.answer([b"x"], TENTH, "m", draw)
    assert seen == [1]
    assert Ledger.open(tmp_path / "people.ledger", None).history()[0].stored


def test_of_two_answers_to_one_request_the_first_stored_is_sent_and_both_are_paid(ledger):
    def draw(positions):
        ledger.answer([b"x"], TENTH, "m", lambda at: [b"quicker"])
        return [b"slower"]

    assert ledger.answer([b"x"], TENTH, "m", draw) == [b"quicker"]
    assert ledger.left(0.1) == 8 and [e.stored for e in ledger.history()] == [False, True]


def test_one_draw_is_paid_once_and_comes_back_when_the_budget_is_spent(ledger):
    assert ledger.once(b"table", Cost(1.0), "t", lambda: b"noisy") == b"noisy"
    assert ledger.left(0.01) == 0
    assert ledger.once(b"table", Cost(1.0), "t", lambda: b"another") == b"noisy"
    with pytest.raises(BudgetError):
        ledger.once(b"another table", Cost(1.0), "t", lambda: b"another")


def test_a_long_answer_survives_the_store(ledger):
    long = os.urandom(1_000_000)
    assert ledger.once(b"t", TENTH, "t", lambda: long) == long == ledger.once(b"t", TENTH, "t", lambda: b"")


def test_neither_queries_nor_answers_can_be_read_in_the_file_or_the_history(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = Ledger.create(path, "people", epsilon=1.0)
    ledger.answer([b"age 41, Antwerp"], TENTH, "m", lambda at: [b"age 45, Antwerp"])
    held = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    assert b"Antwerp" not in held and "Antwerp" not in repr(ledger.history()) + repr(ledger.statement())
    other = Ledger.create(tmp_path / "other.ledger", "people", epsilon=1.0)
    other.answer([b"age 41, Antwerp"], TENTH, "m", lambda at: [b"age 45, Antwerp"])
    assert other.history()[0].request != ledger.history()[0].request, "hashes are keyed"


def test_copies_are_the_same_ledger(ledger):
    assert copy.copy(ledger) is ledger and copy.deepcopy({"a": ledger})["a"] is ledger


def test_a_pickle_of_a_file_shares_the_budget_and_one_of_memory_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", "people", epsilon=1.0)
    again = pickle.loads(pickle.dumps(ledger))
    again.answer([b"x"], TENTH, "m", Drawn())
    assert ledger.left(0.1) == 9
    with pytest.raises(LedgerError, match="second budget"):
        pickle.dumps(Ledger("people", epsilon=1.0))


def _in_child(ledger, pipe):
    try:
        pipe.send(ledger.answer([b"child"], TENTH, "m", lambda at: [b"a"]))
    except LedgerError as error:
        pipe.send(str(error))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_shares_a_file_and_cannot_use_a_ledger_in_memory(ledger):
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    child = context.Process(target=_in_child, args=(ledger, theirs))
    child.start()
    said = mine.recv()
    child.join()
    if ledger.path is None:
        assert "lives in the process that made it" in said and ledger.left(0.1) == 10
    else:
        assert said == [b"a"] and ledger.left(0.1) == 9
        assert ledger.answer([b"child"], TENTH, "m", Drawn()) == [b"a"]


def _five(ledger, number, pipe):
    got = 0
    for i in range(5):
        with contextlib.suppress(BudgetError):
            ledger.answer([bytes([number, i])], TENTH, "m", lambda at: [b"a"])
            got += 1
    pipe.send(got)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_forked_processes_share_what_is_left(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", "people", epsilon=1.0)
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    children = [context.Process(target=_five, args=(ledger, n, theirs)) for n in range(4)]
    for child in children:
        child.start()
        ledger.left(0.1)  # the parent goes on while others are started
    assert sum(mine.recv() for _ in children) == 10
    for child in children:
        child.join()
    assert ledger.verify().entries == 10 and ledger.left(0.1) == 0


def test_threads_never_spend_more_than_there_is(ledger):
    got = []

    def work(number):
        for i in range(4):
            with contextlib.suppress(BudgetError):
                got.append(ledger.answer([bytes([number, i])], TENTH, "m", lambda at: [b"a"]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 10 and ledger.verify().entries == 10


def test_the_repr_names_people_and_budget_and_nothing_that_changes(ledger):
    before = repr(ledger)
    ledger.answer([b"x"], TENTH, "m", Drawn())
    assert repr(ledger) == before and "'people'" in before and "epsilon = 1" in before


def test_a_second_grouping_is_refused_the_same_again_is_not(ledger):
    ledger.record_grouping(b"one", "mondrian")
    ledger.record_grouping(b"one", "mondrian")
    with pytest.raises(RefusedError, match="grouped before"):
        ledger.record_grouping(b"two", "mondrian")
    entries = ledger.history()
    assert [(e.kind, e.epsilon) for e in entries] == [("groups", 0.0)] and ledger.grouped()
    assert ledger.left(0.1) == 10 and ledger.verify().groupings == 1


def test_groups_may_only_grow_from_the_latest(ledger):
    ledger.record_grouping(b"one", "cfk", after=b"v1")
    ledger.record_grouping(b"two", "cfk", before=b"v1", after=b"v2")
    with pytest.raises(RefusedError):
        ledger.record_grouping(b"fork", "cfk", before=b"v1", after=b"v2b")
    with pytest.raises(RefusedError):
        ledger.record_grouping(b"one", "cfk", after=b"v1")
    ledger.record_grouping(b"two", "cfk", before=b"v2", after=b"v2")
    assert ledger.verify().groupings == 2


def test_groups_of_a_second_fit_to_the_same_people_may_grow_as_well(ledger):
    for after in (b"fit 1", b"fit 2", b"fit 2"):
        ledger.record_grouping(b"one", "cfk", after=after)
    assert ledger.verify().groupings == 2
    ledger.record_grouping(b"two", "cfk", before=b"fit 2", after=b"grown")
    with pytest.raises(RefusedError):
        ledger.record_grouping(b"three", "cfk", before=b"fit 1", after=b"fork")


def test_a_ledger_that_is_looked_at_gives_no_answers(tmp_path):
    Ledger.create(tmp_path / "people.ledger", "people", epsilon=1.0)
    seen = Ledger.open(tmp_path / "people.ledger", None)
    assert seen.statement().entries == 0
    with pytest.raises(LedgerError, match="without saying whose"):
        seen.answer([b"x"], TENTH, "m", Drawn())
    with pytest.raises(LedgerError, match="without saying whose"):
        seen.record_grouping(b"one", "mondrian")


def test_protectors_take_ledgers_only_and_no_seed_beside_them(ledger):
    check_ledger(None, "DPTable", 0)
    check_ledger(ledger, "DPTable")
    with pytest.raises(ParameterError, match="'ledger' parameter of DPTable"):
        check_ledger("people.ledger", "DPTable")
    with pytest.raises(ParameterError, match="'random_state' parameter of DPTable"):
        check_ledger(ledger, "DPTable", 0)
