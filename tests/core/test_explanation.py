"""Explanations: what the asker sees, stores and reads back."""

import json
import pickle
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from countervail import Column, Explanations, KAnonymity, NoGuarantee, Schema, SchemaError, Table
from countervail.core.errors import ParameterError
from countervail.core.guarantee import guarantee_from_dict

SCHEMA = Schema(
    (
        Column("age", "numeric", "quasi"),
        Column("pay", "numeric"),
        Column("city", role="quasi"),
        Column("n"),
        Column("ok", role="target"),
    ),
    ("yes",),
)


def span(low, high):
    return pd.Interval(low, high, closed="both")


def answers(**changes):
    parts = {
        "factuals": pd.DataFrame(
            {
                "age": [21, 30, 40],
                "pay": [1.5, 2.0, 3.0],
                "city": ["a", None, "b"],
                "n": pd.array([1, None, 2], "Int64"),
            }
        ),
        "counterfactuals": pd.DataFrame(
            {
                "age": pd.Series([span(24, 27), 30, None], dtype=object),
                "pay": [1.5, 4.0, np.nan],
                "city": pd.Series([frozenset(["a", "b"]), "<b>&", None], dtype=object),
                "n": pd.array([2, None, None], "Int64"),
            }
        ),
        "status": pd.Series(["found", "found", "already_favourable"], dtype=object),
        "before": pd.Series(["no", "no", "yes"], dtype=object),
        "after": pd.Series(["yes", "yes", None], dtype=object),
        "schema": SCHEMA,
        "guarantee": NoGuarantee("it is a <test>"),
        "provenance": {"explainer": "test", "parameters": {"k": 3}},
        "caveats": ("noise was seeded",),
        "notes": ("see <i>", "", ""),
        "pureness": np.array([0.75, 1.0, np.nan]),
        "scores": pd.DataFrame({"no": [0.1, 0.2, np.nan], "yes": [0.9, 0.8, np.nan]}),
        "audit": Table.from_frame(pd.DataFrame({"age": [99], "ok": ["Xanthippe"]}), target="ok"),
    }
    return Explanations(**{**parts, **changes})


def test_one_answer_tells_its_changes_and_its_sentence():
    first, second, third = answers()
    assert first.changes == {"age": span(24, 27), "n": 2}
    assert first.sentence == (
        "If your age were 3 to 6 higher (between 24 and 27 instead of 21) and your n were 2 (instead of 1), the "
        "decision would be yes."
    )
    assert second.changes == {"pay": 4.0, "city": "<b>&"}
    assert third.changes == {} and third.sentence == "The decision is already favourable."
    assert (
        str(first)
        == first.to_text()
        == (f"{first.sentence}\n  It holds for 75% of the combinations of these values.\n  see <i>")
    )
    assert second.to_text() == second.sentence


def test_answers_are_counted_indexed_and_described():
    e = answers()
    assert len(e) == 3 and e[-1].status == "already_favourable"
    assert e.found.tolist() == [True, True, False]
    assert repr(e) == "Explanations(2 found, 1 already_favourable; No privacy guarantee: it is a <test>.)"
    assert e.to_text().count("\n") == 4
    with pytest.raises(IndexError):
        e[3]


def test_a_row_without_an_answer_says_so():
    e = answers(status=pd.Series(["found", "no_counterfactual", "found"], dtype=object))
    assert e[1].sentence == "We found nothing that you could change to get another decision."


def test_the_frame_puts_query_status_and_decision_first():
    frame = answers().to_frame()
    assert list(frame) == ["query", "status", "decision", "age", "pay", "city", "n"]
    renamed = answers(counterfactuals=answers().counterfactuals.rename(columns={"n": "status"})).to_frame()
    assert list(renamed) == ["query", "status_", "decision", "age", "pay", "city", "status"]


def test_regions_are_those_of_the_quasi_identifiers_found():
    regions = answers().regions
    assert regions.names == ["age", "city"]
    assert regions.text() == ["age 24-27, city {a, b}", "age 30, city <b>&"]
    assert len(answers(status=pd.Series(["no_counterfactual"] * 3, dtype=object)).regions) == 0


def test_json_round_trip_keeps_everything_but_the_table():
    e = answers()
    back = Explanations.from_json(e.to_json())
    assert back.to_json() == e.to_json()
    assert back.to_text() == e.to_text()
    assert back.guarantee == e.guarantee and back.schema == e.schema and back.caveats == e.caveats
    pd.testing.assert_frame_equal(back.counterfactuals, e.counterfactuals, check_dtype=False)
    assert back.pureness is not None and back.pureness[:2].tolist() == [0.75, 1.0]
    assert back.audit is None


def test_json_is_strict_and_carries_the_sentences():
    data = json.loads(answers().to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert data["sentences"][2] == "The decision is already favourable."
    assert data["counterfactuals"]["age"] == [{"from": 24, "to": 27}, 30, None]
    assert data["counterfactuals"]["city"][0] == {"any_of": ["a", "b"]}
    assert data["counterfactuals"]["n"] == [2, None, None]


def test_json_of_something_else_is_refused():
    with pytest.raises(SchemaError, match="does not hold explanations"):
        Explanations.from_json('{"kind": "release", "version": 1}')


def test_pickle_round_trip_keeps_everything_but_the_table():
    e = answers()
    back = pickle.loads(pickle.dumps(e))
    assert back.to_json() == e.to_json()
    assert back.audit is None and e.audit is not None


def test_the_training_table_stays_out_of_all_that_leaves():
    e = answers()
    shown = [e.to_json(), repr(e), e._repr_html_(), e.to_text(), e.to_frame().to_csv(), repr(pickle.dumps(e))]
    assert not any("Xanthippe" in text for text in shown)
    assert e.without_audit().audit is None


def test_measures_ask_for_the_table_once_it_is_gone():
    e = answers()
    assert e.training_table() is e.audit
    other = Table.from_frame(pd.DataFrame({"age": [1]}))
    assert e.training_table(other) is other
    with pytest.raises(SchemaError, match="Pass table="):
        e.without_audit().training_table()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_html_is_well_formed_and_escapes_every_value():
    page = Tags()
    page.feed(answers()._repr_html_())
    page.close()
    assert page.open == []
    assert page.seen == {"p", "table", "thead", "tbody", "tr", "th", "td", "strong", "em"}
    assert "<b>&" in page.text and "No privacy guarantee: it is a <test>." in page.text


@pytest.mark.parametrize("promise", [NoGuarantee("why"), KAnonymity(5), KAnonymity(3, "algorithm")])
def test_a_promise_survives_its_dictionary(promise):
    assert guarantee_from_dict(promise.to_dict()) == promise


def test_an_unknown_promise_or_adversary_is_refused():
    with pytest.raises(ParameterError, match="'promise'"):
        guarantee_from_dict({"promise": "Hope"})
    with pytest.raises(ParameterError, match="'against' parameter of KAnonymity"):
        KAnonymity(3, "nobody")


def test_k_anonymity_is_refuted_by_counting():
    frame = pd.DataFrame(
        {"age": [24, 25, 30], "pay": [1, 2, 3], "city": ["a", "b", "<b>&"], "n": [1, 2, 1], "ok": list("yny")}
    )
    table = Table.from_frame(frame, target="ok", quasi_identifiers=["age", "city"])
    # By hand: two people lie in the first region, one in the second.
    assert KAnonymity(1).refute(answers(), table) is None
    assert KAnonymity(2).refute(answers(), table) == "1 of 2 regions hold fewer than k=2 people; the least holds 1"
    assert NoGuarantee("x").refute(answers(), table) is None


def made_later():
    whole, calls = answers(), []

    def make():
        calls.append(1)
        return whole

    held = {n: getattr(whole, n) for n in ("guarantee", "provenance", "caveats", "query", "notes", "pureness", "own")}
    return whole, Explanations.later(make, **held, audit=whole.audit), calls


def test_frames_are_made_once_when_they_are_looked_at():
    whole, e, calls = made_later()
    assert len(e) == 3
    assert e.guarantee is whole.guarantee
    assert e.caveats == whole.caveats
    assert not calls
    assert e.scores is whole.scores
    assert e.factuals is whole.factuals
    assert e.counterfactuals is whole.counterfactuals
    assert calls == [1]
    assert e.to_json() == whole.to_json()
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = e.colour


def test_explanations_whose_frames_are_not_made_yet_pickle_whole():
    whole, e, _ = made_later()
    back = pickle.loads(pickle.dumps(e))
    assert back.to_json() == whole.to_json()
    assert back.audit is None
    assert set(vars(back)) == set(vars(whole))


def test_other_parts_do_not_make_the_frames():
    whole, e, calls = made_later()
    other = e.with_parts(caveats=("Mind the gap.",))
    assert other.caveats == ("Mind the gap.",) and e.caveats == whole.caveats
    assert len(other) == 3 and not calls
    assert other.counterfactuals is whole.counterfactuals and calls == [1]
    assert other.to_json() == replace(whole, caveats=("Mind the gap.",)).to_json()
    assert whole.with_parts(caveats=()).caveats == ()
