"""The checks everything that explains must pass, plain explainers and protectors alike."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from countervail.core.cells import cell_text
from countervail.core.explanation import Explanation, Explanations
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
    yield check_askers_come_back_as_they_were
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
    assert plain_parameters(cloned(e)) == plain_parameters(e), "clone() changed a parameter"


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
    assert table.frame.equals(before[0]), "fit() or explain() changed the table that it was given"
    assert rows.equals(before[1]), "explain() changed the rows that it was given"


def check_refit_leaves_no_trace(e: Explainer) -> None:
    """Fitting to another table first makes no difference."""
    rows = small_table(10, seed=1)
    e = _seeded(e)
    other = clone(e).fit(small_table(40, seed=3), small_model).fit(small_table(), small_model)
    same = other.explain(rows).to_json() == _answers(e, rows=rows).to_json()
    assert same, "an earlier fit to another table shows in the answers"


def check_no_identifier_leaves(e: Explainer) -> None:
    """No identifier, by name or by value, is in anything released."""
    table, answers = small_table(), _answers(e)
    shown = set(answers.counterfactuals) & set(table.schema.names("identifier"))
    assert not shown, "an identifier is a column of the counterfactuals"
    text = answers.to_json() + answers.to_text() + answers._repr_html_() + repr(answers)
    assert not any(value in text for value in table.frame["id"]), "an identifier's value stands in what leaves"


def check_order_and_index_tell_nothing(e: Explainer) -> None:
    """Answers run in the order of the queries, with a plain index."""
    answers = _answers(e)
    for frame in (answers.factuals, answers.counterfactuals, answers.to_frame()):
        assert frame.index.equals(pd.RangeIndex(len(frame))), "a frame that leaves has an index other than 0, 1, 2, ..."
    ordered = answers.query is not None and bool((np.diff(answers.query) >= 0).all())
    assert ordered, "answers do not run in the order of the queries"


def check_guarantee_ignores_the_data(e: Explainer) -> None:
    """The promise is a function of the parameters alone."""
    before = e.guarantee()
    for seed in (0, 9):
        answers = _answers(e, small_table(seed=seed))
        asked = len(_who_asked(answers))
        assert before == e.guarantee(), "guarantee() is another one after fit: it must be known from the parameters"
        assert answers.guarantee == before.over(asked), "answers carry another promise than guarantee() states"


def check_guarantee_survives_refutation(e: Explainer) -> None:
    """The promise cannot refute itself on this release."""
    table, rows = small_table(), small_table(12, seed=1)
    answers = _answers(e, table, rows)
    refuted = e.guarantee().refute(answers, table)
    assert refuted is None, f"the promise is broken by this release: {refuted}"
    if _draws_noise(e):
        # Reruns look at the first answer only: whoever has a wanted decision already is not asked about again.
        rows = rows.take(_who_asked(answers)[:1])
        answers = _answers(e, table, rows)
        refuted = e.guarantee().refute(answers, table, lambda t: _answers(clone(e), t, rows))
        assert refuted is None, f"the promise is broken when the mechanism is run again: {refuted}"


def check_answers_have_a_wanted_decision(e: Explainer) -> None:
    """A found answer changes something, and the model decides otherwise about it; noise may leave one fit without any
    answer, but not twenty."""
    rows = small_table(40, seed=1)
    for _ in range(20 if _draws_noise(e) else 1):
        answers = _answers(clone(e), rows=rows)
        for one in answers:
            if one.found:
                _check_decision(one, proven=getattr(e, "proven", True))
        if answers.found.any():
            return
    raise AssertionError("nobody was answered: no row is found for anyone")


def _check_decision(one: Explanation, *, proven: bool) -> None:
    """The model is asked about the cells themselves, whatever the answer says of itself."""
    assert one.after != one.before, "a found answer leads to the decision that the asker has already"
    changed = dict(one.changes)
    assert changed, "a found answer changes nothing: it is the asker's own row"
    said = _decisions(_combinations(one))
    assert (said == one.after).any(), "the model decides otherwise about an answer than the answer says"
    sure = one.pureness is None or one.pureness == 1
    assert not sure or not proven or (said == one.after).all(), (
        "some values of an answer's cells do not keep its decision"
    )


def check_askers_come_back_as_they_were(e: Explainer) -> None:
    """The factual rows are those of who asked, with the model's decision about them."""
    rows = small_table(12, seed=1)
    answers = _answers(e, rows=rows)
    assert answers.query is not None, "it is not said which query an answer belongs to"
    asked = rows.features.iloc[answers.query].astype(object).to_numpy()
    assert (answers.factuals.astype(object).to_numpy() == asked).all(), "a factual row is not that of who asked"
    said = _decisions(rows.features.iloc[answers.query])
    assert (answers.before.to_numpy() == said).all(), "the model decides otherwise about who asked than is said"


def _decisions(frame: pd.DataFrame) -> Any:
    return np.array(["no", "yes"])[small_model(frame).argmax(axis=1)]


def _combinations(one: Explanation) -> pd.DataFrame:
    """Values of the cells, all of sets and the ends of ranges, in all combinations (some, where there are many)."""
    names, options = list(one.cells), [_values(one.cells[n]) for n in one.cells]
    options = [[one.factual[n]] if n in one.own else values for n, values in zip(names, options)]
    rows = list(itertools.islice(itertools.product(*options), 512))
    return pd.DataFrame(rows, columns=names)


def check_plain_answers_unless_it_says_regions(e: Explainer) -> None:
    """Ranges and sets leave only where the class says so: studies measure plain rows."""
    cells = _answers(e).counterfactuals.astype(object).to_numpy().ravel()
    wide = any(isinstance(c, (pd.Interval, frozenset)) for c in cells)
    assert fact(type(e), "gives_regions") or not wide, "answers hold ranges or sets, but gives_regions is not set"


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
            stays = all(v == one.factual["city"] for v in _values(one.cells["city"]))
            assert stays, "an immutable column is changed in an answer"
            rises = all(v >= one.factual["age"] for v in _values(one.cells["age"]))
            assert rises, "a column that may only go up goes down in an answer"
            inside = all(0 <= v <= 90 for v in _values(one.cells["income"]))
            assert inside, "a value of an answer lies outside its allowed range"


def _values(cell: Any) -> list[Any]:
    """The values of a cell; of an interval, its ends."""
    if isinstance(cell, pd.Interval):
        return [cell.left, cell.right]
    return list(cell) if isinstance(cell, frozenset) else [cell]


def check_several_answers_differ(e: Explainer) -> None:
    """Nobody gets the same answer twice, and nobody more answers than were asked for."""
    answers = _answers(clone(e).set_params(n_counterfactuals=3), rows=small_table(30, seed=1))
    assert answers.query is not None, "it is not said which query an answer belongs to"
    for q in np.unique(answers.query):
        mine = answers.counterfactuals[(answers.query == q) & answers.found].astype(object)
        assert len(mine) <= 3, "more answers are given than n_counterfactuals"
        assert len({tuple(map(cell_text, row)) for row in mine.to_numpy()}) == len(mine), "an answer is given twice"


def check_a_kept_draw_answers_alike(e: Explainer) -> None:
    """Whoever says that the noise is drawn at fit gives the same answers again; the others draw anew."""
    fitted, rows = clone(e).set_params(random_state=None).fit(small_table(), small_model), small_table(12, seed=1)
    first = fitted.explain(rows).to_json()
    alike = all(fitted.explain(rows).to_json() == first for _ in range(20))
    kept = bool(fact(type(e), "keeps_draw"))
    assert alike == kept, f"answers {'change' if kept else 'never change'} when asked again, but keeps_draw is {kept}"


def check_batch_equals_single(e: Explainer) -> None:
    """A row gets the same answer alone as in a batch."""
    rows = small_table(8, seed=1).features
    fitted = e.fit(small_table(), small_model)
    together = fitted.explain(rows)
    alone = [fitted.explain(rows.iloc[[i]]) for i in range(len(rows))]
    same = [x.to_text() for x in together] == [x.to_text() for a in alone for x in a]
    assert same, "a row gets another answer in a batch than alone"


def check_same_table_same_answers(e: Explainer) -> None:
    """Two fits to the same table answer alike: searches do not depend on chance."""
    same = _answers(clone(e)).to_json() == _answers(clone(e)).to_json()
    assert same, "two fits to the same table answer differently, but draws_noise is not set"


def check_same_seed_same_answers(e: Explainer) -> None:
    """A seed makes noisy answers repeatable."""
    same = _answers(_seeded(e)).to_json() == _answers(_seeded(e)).to_json()
    assert same, "two fits with the same random_state answer differently"


def check_no_seed_differs(e: Explainer) -> None:
    """Without a seed the noise is drawn from the system's entropy, anew for every fit."""
    free = clone(e).set_params(random_state=None)
    first = _answers(clone(free)).to_json()
    fresh = any(_answers(clone(free)).to_json() != first for _ in range(20))
    assert fresh, "21 fits without a seed gave the same answers: where is the noise?"


def check_seeded_says_so(e: Explainer) -> None:
    """A seed is a caveat, promises nothing, and is not told."""
    seed = 987654321
    answers = _answers(clone(e).set_params(random_state=seed))
    assert any("seed" in text for text in answers.caveats), "answers with seeded noise do not say so in a caveat"
    assert isinstance(answers.guarantee, NoGuarantee), "answers with seeded noise promise something"
    assert str(seed) not in answers.to_json(), "the seed stands in what leaves"
    free = _answers(clone(e).set_params(random_state=None))
    assert not any("seed" in text for text in free.caveats), "answers without a seed say that they are seeded"
    # A mechanism that is here to be measured promises nothing, seeded or not, and says so in its class.
    promised = not isinstance(free.guarantee, NoGuarantee)
    assert promised == getattr(e, "proven", True), "what is promised without a seed is not what `proven` says"


def check_pickle_and_json_round_trip(e: Explainer) -> None:
    """What leaves can be stored and read back."""
    answers = _answers(e)
    assert pickle.loads(pickle.dumps(answers)).to_json() == answers.to_json(), "a pickle gives other answers back"
    assert Explanations.from_json(answers.to_json()).to_json() == answers.to_json(), "JSON gives other answers back"


def check_table_does_not_travel(e: Explainer) -> None:
    """The training table stays in the process."""
    table = small_table()
    answers = _answers(e, table)
    assert answers.audit is not None, "answers do not know their table while it is here: measures need it"
    assert pickle.loads(pickle.dumps(answers)).audit is None, "a pickle of answers carries the training table"
    assert Explanations.from_json(answers.to_json()).audit is None, "JSON of answers carries the training table"
    told = json.loads(answers.to_json())["provenance"]
    assert len(json.dumps(told)) < 10_000, "provenance is as long as a table: it must hold parameters, no rows"


def cloned(maker: Any) -> Any:
    """A clone, for which `__init__` must store every parameter as it was given."""
    try:
        return clone(maker)
    except RuntimeError as error:  # scikit-learn's word for it
        raise AssertionError("clone() fails: __init__ must store every parameter as it was given") from error


def plain_parameters(maker: Any) -> dict[str, Any]:
    """All parameters, those of nested objects included; the objects themselves are copies in a clone."""
    return {name: v for name, v in maker.get_params(deep=True).items() if not hasattr(v, "get_params")}


def _answers(e: Explainer, table: Table | None = None, rows: Table | None = None) -> Explanations:
    fitted = e.fit(table if table is not None else small_table(), small_model)
    return fitted.explain(rows if rows is not None else small_table(12, seed=1))


def _who_asked(answers: Explanations) -> NDArray[np.int64]:
    """The queries that were answered, however many answers each got."""
    assert answers.query is not None, "it is not said which query an answer belongs to"
    return np.unique(answers.query[(answers.status != "already_favourable").to_numpy()])


def _draws_noise(e: Explainer) -> bool:
    return bool(fact(type(e), "draws_noise"))


def _seeded(e: Explainer) -> Explainer:
    """With a seed where there is noise, so that two runs can be compared."""
    copy: Explainer = clone(e)
    return copy.set_params(random_state=5) if _draws_noise(e) else copy
