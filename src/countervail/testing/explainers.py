"""The checks everything that explains must pass, plain explainers and protectors alike."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from countervail.core.explanation import Explanations
from countervail.core.table import Table
from countervail.explain.base import Explainer as PlainExplainer
from countervail.protect.base import ExplanationProtector
from countervail.testing.tables import small_model, small_table

Explainer = PlainExplainer | ExplanationProtector
Check = Callable[[Explainer], None]


def explainer_checks(explainer: Explainer) -> Iterator[Check]:
    """The checks that apply to this explainer."""
    yield check_clone_keeps_parameters
    yield check_unfitted_raises
    yield check_input_is_untouched
    yield check_refit_leaves_no_trace
    yield check_no_identifier_leaves
    yield check_order_and_index_tell_nothing
    yield check_guarantee_ignores_the_data
    yield check_guarantee_survives_refutation
    yield check_answers_have_a_wanted_decision
    yield check_batch_equals_single
    yield check_same_table_same_answers
    yield check_pickle_and_json_round_trip
    yield check_table_does_not_travel


def check_clone_keeps_parameters(e: Explainer) -> None:
    """`clone` gives the same parameters."""
    assert clone(e).get_params() == e.get_params()


def check_unfitted_raises(e: Explainer) -> None:
    """`explain` before `fit` raises NotFittedError."""
    try:
        e.explain(small_table())
    except NotFittedError:
        return
    raise AssertionError("explain() before fit() must raise NotFittedError")


def check_input_is_untouched(e: Explainer) -> None:
    """Neither the table nor the queries change."""
    table, rows = small_table(), small_table(10, seed=1).features
    before = table.frame.copy(deep=True), rows.copy(deep=True)
    e.fit(table, small_model).explain(rows)
    pd.testing.assert_frame_equal(table.frame, before[0])
    pd.testing.assert_frame_equal(rows, before[1])


def check_refit_leaves_no_trace(e: Explainer) -> None:
    """Fitting to another table first makes no difference."""
    rows = small_table(10, seed=1)
    other = clone(e).fit(small_table(40, seed=3), small_model).fit(small_table(), small_model)
    assert other.explain(rows).to_json() == _answers(e, rows=rows).to_json()


def check_no_identifier_leaves(e: Explainer) -> None:
    """No identifier, by name or by value, is in anything released."""
    table, answers = small_table(), _answers(e)
    assert not set(answers.counterfactuals) & set(table.schema.names("identifier"))
    text = answers.to_json() + answers.to_text() + answers._repr_html_() + repr(answers)
    assert not any(value in text for value in table.frame["id"])


def check_order_and_index_tell_nothing(e: Explainer) -> None:
    """Answers run in the order of the queries, with a plain index."""
    answers = _answers(e)
    for frame in (answers.factuals, answers.counterfactuals, answers.to_frame()):
        assert frame.index.equals(pd.RangeIndex(len(frame)))
    assert answers.query is not None and (np.diff(answers.query) >= 0).all()


def check_guarantee_ignores_the_data(e: Explainer) -> None:
    """The promise is a function of the parameters alone."""
    before = e.guarantee()
    for seed in (0, 9):
        assert _answers(e, small_table(seed=seed)).guarantee == before == e.guarantee()


def check_guarantee_survives_refutation(e: Explainer) -> None:
    """The promise cannot refute itself on this release."""
    table = small_table()
    assert e.guarantee().refute(_answers(e, table), table, lambda t: _answers(clone(e), t)) is None


def check_answers_have_a_wanted_decision(e: Explainer) -> None:
    """A found answer changes the decision."""
    answers = _answers(e)
    assert answers.found.any()
    assert (answers.before[answers.found] != answers.after[answers.found]).all()


def check_batch_equals_single(e: Explainer) -> None:
    """A row gets the same answer alone as in a batch."""
    rows = small_table(8, seed=1).features
    fitted = e.fit(small_table(), small_model)
    together = fitted.explain(rows)
    alone = [fitted.explain(rows.iloc[[i]]) for i in range(len(rows))]
    assert [x.to_text() for x in together] == [x.to_text() for a in alone for x in a]


def check_same_table_same_answers(e: Explainer) -> None:
    """Two fits to the same table answer alike: searches do not depend on chance."""
    assert _answers(clone(e)).to_json() == _answers(clone(e)).to_json()


def check_pickle_and_json_round_trip(e: Explainer) -> None:
    """What leaves can be stored and read back."""
    answers = _answers(e)
    assert pickle.loads(pickle.dumps(answers)).to_json() == answers.to_json()
    assert Explanations.from_json(answers.to_json()).to_json() == answers.to_json()


def check_table_does_not_travel(e: Explainer) -> None:
    """The training table stays in the process."""
    answers = _answers(e)
    assert answers.audit is not None
    assert pickle.loads(pickle.dumps(answers)).audit is None
    assert Explanations.from_json(answers.to_json()).audit is None


def _answers(e: Explainer, table: Table | None = None, rows: Table | None = None) -> Explanations:
    fitted = e.fit(table if table is not None else small_table(), small_model)
    return fitted.explain(rows if rows is not None else small_table(12, seed=1))
