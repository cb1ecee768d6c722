"""SEDC by hand, against every subset, and against a slow twin of the paper's search."""

from itertools import combinations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from test_nice_properties import linear_model, people, score_of_each_row

import countervail as cv


def three_words():
    """A document with four words; without two of them it is of the other class."""
    frame = pd.DataFrame({n: [1, 0, 0] for n in "abcd"} | {"ok": list("pnn")})
    return cv.Table.from_frame(frame, target="ok", favourable="n")


def score(weights, bias):
    def model(rows):
        p = 1 / (1 + np.exp(-(rows.to_numpy(float) @ np.array(weights, dtype=float) + bias)))
        return np.column_stack([1 - p, p])  # n, p

    return model


def test_the_smallest_evidence_goes_first():
    # Scores fall most without a (3), then b (2): the search extends {a}, and {a, b} is the first that is enough.
    fitted = cv.SEDC(neutral=dict.fromkeys("abcd", 0)).fit(three_words(), score([3, 2, 1.5, 0.1], -2.2))
    e = fitted.explain(pd.DataFrame({n: [1] for n in "abcd"}))
    assert e.counterfactuals.to_dict("records") == [{"a": 0, "b": 0, "c": 1, "d": 1}]


def test_further_explanations_hold_no_earlier_one():
    fitted = cv.SEDC(neutral=dict.fromkeys("abcd", 0), n_counterfactuals=5)
    e = fitted.fit(three_words(), score([3, 2, 1.5, 0.1], -2.2)).explain(pd.DataFrame({n: [1] for n in "abcd"}))
    gone = [frozenset(n for n in "abcd" if row[n] == 0) for row in e.counterfactuals.to_dict("records")]
    assert gone == [frozenset("ab"), frozenset("ac")]  # without b, c and d, 3 - 2.2 is left
    assert e.notes[-1] == "2 of 5 different answers were found."


def test_neutral_values_are_means_and_most_frequent_labels():
    frame = pd.DataFrame({"age": [20, 31, 40], "pay": [1.5, 2.0, 4.0], "city": list("bba"), "ok": list("nyy")})
    table = cv.Table.from_frame(frame, target="ok", favourable="y")
    fitted = cv.SEDC().fit(table, lambda rows: np.where(rows["pay"] > 1.8, "y", "n"))
    assert fitted.encoder_.decode(fitted.neutral_[None]).to_dict("records") == [{"age": 30, "pay": 2.5, "city": "b"}]
    told = cv.SEDC(neutral={"pay": 9.0, "city": "a"}).fit(table, fitted.model_)
    assert told.encoder_.decode(told.neutral_[None]).to_dict("records") == [{"age": 30, "pay": 9.0, "city": "a"}]
    assert fitted.explain(frame.iloc[[0]]).counterfactuals.to_dict("records") == [{"age": 20, "pay": 2.5, "city": "b"}]


def test_a_dear_column_waits():
    model = score([2, 2, 2, 2], -7)  # any one of the four is enough
    asker = pd.DataFrame({n: [1] for n in "abcd"})
    plain = cv.SEDC(neutral=dict.fromkeys("abcd", 0)).fit(three_words(), model).explain(asker)
    dear = cv.SEDC(neutral=dict.fromkeys("abcd", 0), costs={"a": 9.0}).fit(three_words(), model).explain(asker)
    assert plain.counterfactuals["a"].tolist() == [0] and dear.counterfactuals["b"].tolist() == [0]


def slow_sedc(row, neutral, score_of, wanted, limit):
    """The paper's search on sets of names: the best combination is extended by every other piece of evidence."""
    free = [n for n in row if row[n] != neutral[n]]
    start, found, open_, seen = score_of(row)[wanted], [], [], set()

    def ask(sets):
        told = []
        for s in sets:
            if s in seen or any(f <= s for f, _ in found):
                continue
            seen.add(s)
            scores = score_of({**row, **{n: neutral[n] for n in s}})
            told.append((s, scores[wanted] - start, int(np.argmax(scores)) == wanted))
        for s, gain, enough in sorted(told, key=lambda t: -t[1]):
            if enough:
                found.append((s, gain))
        open_.extend((gain, s) for s, gain, enough in told if not enough)

    ask([frozenset([n]) for n in free])
    for _ in range(limit):
        if found or not open_:
            break
        while open_:
            best = max(range(len(open_)), key=lambda i: (open_[i][0], -i))
            _, s = open_.pop(best)
            before = len(seen)
            ask([s | {n} for n in free if n not in s])
            if len(seen) > before:
                break
    return [s for s, _ in found]


@given(seed=st.integers(0, 10**6), limit=st.sampled_from([1, 3, 50]))
def test_equals_the_slow_twin_and_every_subset(seed, limit):
    table, model, rows = people(seed, 20), linear_model(seed), people(seed + 1, 4).features
    fitted = cv.SEDC(neutral={"debt": 1.0}, max_iterations=limit).fit(table, model)
    e, score_of = fitted.explain(rows), score_of_each_row(table, model)
    neutral = fitted.encoder_.decode(fitted.neutral_[None]).iloc[0].to_dict()
    assert neutral["age"] == round(table.frame["age"].mean()) and neutral["city"] in table.frame["city"].mode().tolist()
    for q, row in enumerate(rows.to_dict("records")):
        wanted = 1 - int(np.argmax(score_of(row)))
        expected = slow_sedc(row, neutral, score_of, wanted, limit)
        assert e.found[q] == bool(expected)
        if expected:
            mine = e.counterfactuals.iloc[q].to_dict()
            assert frozenset(n for n in row if mine[n] != row[n]) == expected[0]
        if limit == 50:  # nothing is left untried where there are five columns
            free = [n for n in row if row[n] != neutral[n]]
            sets = [s for k in range(1, len(free) + 1) for s in combinations(free, k)]
            enough = [s for s in sets if np.argmax(score_of({**row, **{n: neutral[n] for n in s}})) == wanted]
            assert e.found[q] == bool(enough)


def test_no_value_of_anybody_is_copied():
    # Whose quasi-identifiers both move to the mean and the mode is nobody in particular.
    table = people(3, 60)
    fitted = cv.SEDC(n_counterfactuals=3).fit(table, linear_model(3))
    e, usual = fitted.explain(people(4, 10).features), fitted.encoder_.decode(fitted.neutral_[None]).iloc[0]
    a, b = e.factuals[e.found].astype(object), e.counterfactuals[e.found].astype(object)
    assert len(b) and ((a == b) | (b == usual)).all(axis=None)
