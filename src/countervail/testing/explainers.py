"""The checks everything that explains must pass, plain explainers and protectors alike."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from countervail.core.cells import cell_text
from countervail.core.explanation import Explanations
from countervail.core.guarantee import NoGuarantee
from countervail.core.table import Table
from countervail.explain.base import Explainer as PlainExplainer
from countervail.protect.base import ExplanationProtector
from countervail.registry import fact
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
    yield check_plain_answers_unless_it_says_regions
    taken = explainer.get_params(deep=False)
    if fact(type(explainer), "gives_regions") and taken.get("reward") == "none":
        taken = {}  # whole neighbours, as published: they obey nothing, and say so
    if "immutable" in taken:
        yield check_constraints_hold_for_every_value
        yield check_what_the_schema_declares_holds
    if "n_counterfactuals" in taken:
        yield check_several_answers_differ
    if _draws_noise(explainer):
        yield check_same_seed_same_answers
        yield check_no_seed_differs
        yield check_seeded_says_so
        yield check_a_kept_draw_answers_alike
    else:
        yield check_batch_equals_single
        yield check_same_table_same_answers
    yield check_pickle_and_json_round_trip
    yield check_table_does_not_travel


def check_clone_keeps_parameters(e: Explainer) -> None:
    """`clone` gives the same parameters."""
    assert plain_parameters(clone(e)) == plain_parameters(e)


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
    e = _seeded(e)
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
        answers = _answers(e, small_table(seed=seed))
        asked = len(_who_asked(answers))
        assert answers.guarantee == before.over(asked) and before == e.guarantee()


def check_guarantee_survives_refutation(e: Explainer) -> None:
    """The promise cannot refute itself on this release."""
    table, rows = small_table(), small_table(12, seed=1)
    answers = _answers(e, table, rows)
    assert e.guarantee().refute(answers, table) is None
    if _draws_noise(e):
        # Reruns look at the first answer only: whoever has a wanted decision already is not asked about again.
        rows = rows.take(_who_asked(answers)[:1])
        answers = _answers(e, table, rows)
        assert e.guarantee().refute(answers, table, lambda t: _answers(clone(e), t, rows)) is None


def check_answers_have_a_wanted_decision(e: Explainer) -> None:
    """A found answer changes the decision; noise may leave one fit without any, but not twenty."""
    rows = small_table(40, seed=1)
    for _ in range(20 if _draws_noise(e) else 1):
        answers = _answers(clone(e), rows=rows)
        assert (answers.before[answers.found] != answers.after[answers.found]).all()
        if answers.found.any():
            return
    raise AssertionError("No row was answered.")


def check_plain_answers_unless_it_says_regions(e: Explainer) -> None:
    """Ranges and sets leave only where the class says so: studies measure plain rows."""
    cells = _answers(e).counterfactuals.astype(object).to_numpy().ravel()
    assert fact(type(e), "gives_regions") or not any(isinstance(c, (pd.Interval, frozenset)) for c in cells)


def check_constraints_hold_for_every_value(e: Explainer) -> None:
    """Immutable columns, ways and ranges hold for every value of every cell that leaves."""
    asked = {"immutable": ["city"], "monotone": {"age": "up"}, "ranges": {"income": (0.0, 90.0)}}
    _check_bound(_answers(clone(e).set_params(**asked), rows=small_table(30, seed=1)))


def check_what_the_schema_declares_holds(e: Explainer) -> None:
    """The same, declared in the schema."""
    table = small_table()
    schema = table.schema.with_column("city", actionable="no").with_column("age", actionable="up")
    bound = Table(table.frame, schema.with_column("income", range=(0.0, 90.0)))
    free = {"immutable": (), "monotone": None, "ranges": None}
    _check_bound(_answers(clone(e).set_params(**free), bound, small_table(30, seed=1)))


def _check_bound(answers: Explanations) -> None:
    for one in answers:
        if one.found:
            assert all(v == one.factual["city"] for v in _values(one.cells["city"]))
            assert all(v >= one.factual["age"] for v in _values(one.cells["age"]))
            assert all(0 <= v <= 90 for v in _values(one.cells["income"]))


def _values(cell: Any) -> list[Any]:
    """The values of a cell; of an interval, its ends."""
    if isinstance(cell, pd.Interval):
        return [cell.left, cell.right]
    return list(cell) if isinstance(cell, frozenset) else [cell]


def check_several_answers_differ(e: Explainer) -> None:
    """Nobody gets the same answer twice, and nobody more answers than were asked for."""
    answers = _answers(clone(e).set_params(n_counterfactuals=3), rows=small_table(30, seed=1))
    assert answers.query is not None
    for q in np.unique(answers.query):
        mine = answers.counterfactuals[(answers.query == q) & answers.found].astype(object)
        assert len(mine) <= 3 and len({tuple(map(cell_text, row)) for row in mine.to_numpy()}) == len(mine)


def check_a_kept_draw_answers_alike(e: Explainer) -> None:
    """Whoever says that the noise is drawn at fit gives the same answers again; the others draw anew."""
    fitted, rows = clone(e).set_params(random_state=None).fit(small_table(), small_model), small_table(12, seed=1)
    first = fitted.explain(rows).to_json()
    alike = all(fitted.explain(rows).to_json() == first for _ in range(20))
    assert alike if fact(type(e), "keeps_draw") else not alike


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


def check_same_seed_same_answers(e: Explainer) -> None:
    """A seed makes noisy answers repeatable."""
    assert _answers(_seeded(e)).to_json() == _answers(_seeded(e)).to_json()


def check_no_seed_differs(e: Explainer) -> None:
    """Without a seed the noise is drawn from the system's entropy, anew for every fit."""
    free = clone(e).set_params(random_state=None)
    first = _answers(clone(free)).to_json()
    assert any(_answers(clone(free)).to_json() != first for _ in range(20))


def check_seeded_says_so(e: Explainer) -> None:
    """A seed is a caveat, promises nothing, and is not told."""
    seed = 987654321
    answers = _answers(clone(e).set_params(random_state=seed))
    assert any("seed" in text for text in answers.caveats)
    assert isinstance(answers.guarantee, NoGuarantee)
    assert str(seed) not in answers.to_json()
    free = _answers(clone(e).set_params(random_state=None))
    assert not any("seed" in text for text in free.caveats)
    # A mechanism that is here to be measured promises nothing, seeded or not, and says so in its class.
    assert isinstance(free.guarantee, NoGuarantee) != getattr(e, "proven", True)


def check_pickle_and_json_round_trip(e: Explainer) -> None:
    """What leaves can be stored and read back."""
    answers = _answers(e)
    assert pickle.loads(pickle.dumps(answers)).to_json() == answers.to_json()
    assert Explanations.from_json(answers.to_json()).to_json() == answers.to_json()


def check_table_does_not_travel(e: Explainer) -> None:
    """The training table stays in the process."""
    table = small_table()
    answers = _answers(e, table)
    assert answers.audit is not None
    assert pickle.loads(pickle.dumps(answers)).audit is None
    assert Explanations.from_json(answers.to_json()).audit is None


def plain_parameters(maker: Any) -> dict[str, Any]:
    """All parameters, those of nested objects included; the objects themselves are copies in a clone."""
    return {name: v for name, v in maker.get_params(deep=True).items() if not hasattr(v, "get_params")}


def _answers(e: Explainer, table: Table | None = None, rows: Table | None = None) -> Explanations:
    fitted = e.fit(table if table is not None else small_table(), small_model)
    return fitted.explain(rows if rows is not None else small_table(12, seed=1))


def _who_asked(answers: Explanations) -> NDArray[np.int64]:
    """The queries that were answered, however many answers each got."""
    assert answers.query is not None
    return np.unique(answers.query[(answers.status != "already_favourable").to_numpy()])


def _draws_noise(e: Explainer) -> bool:
    return bool(fact(type(e), "draws_noise"))


def _seeded(e: Explainer) -> Explainer:
    """With a seed where there is noise, so that two runs can be compared."""
    copy: Explainer = clone(e)
    return copy.set_params(random_state=5) if _draws_noise(e) else copy
