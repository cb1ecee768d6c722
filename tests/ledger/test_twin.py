"""The ledger beside a slow twin: a dictionary, a list, and sums of fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countervail.core.errors import BudgetError, LedgerError
from countervail.ledger import Cost, Ledger
from countervail.ledger.codec import pack, unpack

REQUESTS = st.lists(st.integers(0, 6), min_size=1, max_size=4)
STEPS = st.lists(
    st.tuples(st.sampled_from(["answer", "once", "fail"]), REQUESTS, st.sampled_from([0.1, 0.25])), max_size=12
)


class Twin:
    """What a ledger with a sum of epsilons does, in a few lines."""

    def __init__(self, epsilon):
        self.left, self.answers, self.debits = Fraction(repr(epsilon)), {}, 0

    def ask(self, kind, requests, epsilon, answer):
        each = Fraction(repr(epsilon))
        names = [(kind == "once", epsilon, r) for r in (requests[:1] if kind == "once" else requests)]
        if kind == "once" and names[0] in self.answers:
            return [self.answers[names[0]]]
        if each * len(set(names)) > self.left:
            return "refused"
        new = [n for n in dict.fromkeys(names) if n not in self.answers]
        self.left -= each * len(new)
        self.debits += len(new)
        if kind == "fail" and new:
            return "failed"
        for name in new:
            self.answers[name] = answer(name[2])
        return [self.answers[n] for n in names]


def real(ledger, kind, requests, epsilon, answer):
    mechanism = f"{kind == 'once'} {epsilon}"
    spelt = [str(r).encode() for r in requests]

    def draw(positions):
        if kind == "fail":
            raise ZeroDivisionError
        return [answer(requests[i]) for i in positions]

    try:
        if kind == "once":
            return [ledger.once(spelt[0], Cost(epsilon), mechanism, lambda: answer(requests[0]))]
        return ledger.answer(spelt, Cost(epsilon), mechanism, draw)
    except BudgetError:
        return "refused"
    except ZeroDivisionError:
        return "failed"


@settings(max_examples=60)
@given(STEPS)
def test_ledger_and_twin_agree_step_by_step(steps):
    ledger, twin = Ledger("people", epsilon=1.5), Twin(1.5)
    for number, (kind, requests, epsilon) in enumerate(steps):

        def answer(request, number=number):
            return f"{request} at {number}".encode()

        assert real(ledger, kind, requests, epsilon, answer) == twin.ask(kind, requests, epsilon, answer)
        assert ledger.left(0.05) == twin.left // Fraction("0.05")
    assert ledger.verify().entries == twin.debits


@given(
    st.lists(
        st.tuples(st.sampled_from(["i4", "i8", "u1"]), st.lists(st.integers(0, 100), max_size=6)),
        min_size=1,
        max_size=3,
    )
)
def test_arrays_survive_their_bytes(parts):
    arrays = [np.array(values, dtype=dtype) for dtype, values in parts]
    for array, again in zip(arrays, unpack(pack(arrays)), strict=True):
        assert again.dtype == array.dtype and np.array_equal(again, array)


def test_shapes_survive_and_other_kinds_are_refused():
    table = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert np.array_equal(unpack(pack([table]))[0], table)
    with pytest.raises(LedgerError, match="whole numbers"):
        unpack(pack([np.zeros(3)]))
