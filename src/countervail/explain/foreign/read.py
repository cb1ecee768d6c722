"""The one door for explanations that other tools wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from countervail.core.conform import plain
from countervail.core.errors import SchemaError, bad_parameter, listed
from countervail.core.explanation import Explanations
from countervail.core.table import Table
from countervail.explain.base import check_table
from countervail.explain.foreign.assembling import STRANGE_LABELS, assembled
from countervail.explain.foreign.decoding import blank_rows, decoded, known_values
from countervail.explain.foreign.fitting import fit_cells
from countervail.explain.foreign.pairs import matched
from countervail.explain.foreign.sources import take
from countervail.explain.foreign.taken import OWNER, Taken


def read_explanations(
    source: Any,
    table: Table,
    *,
    factuals: Any = None,
    query: Any = None,
    columns: Sequence[str] | None = None,
    decode: Any = None,
    labels: Mapping[Any, Any] | Sequence[Any] | None = None,
    model: Any = None,
    own: Literal["nothing", "unchanged"] | Sequence[str] = "nothing",
) -> Explanations:
    """Explanations that another tool wrote, ready for every attack and measure.

    Parameters
    ----------
    source : pair, path, JSON text, object, frame, array, or list of them
        A pair `(factuals, counterfactuals)` of frames, arrays or files; DiCE's JSON and objects; Alibi's JSON and
        objects of its counterfactual explainers; objects of cfnow and CEL; frames of CARLA and RobustX, arrays of
        NICEx; what `Explanations.to_json()` wrote. A list holds one output per row that was explained, or per batch.
    table : Table
        The data that the tool looked at: whom the explanations must not give away.
    factuals : frame, array or path, optional
        The rows that were explained, where the source does not hold them (or not all of their columns).
    query : str or list of int, optional
        Which factual each counterfactual answers, where it is not told by equal indexes or equal lengths: a column of
        the counterfactuals (with what it says in the factuals' column of that name, or else in their index), or places.
    columns : list of str, optional
        The names of the columns of arrays; default: the table's features in order.
    decode : optional
        How to undo an encoding: 'one-hot' (joins columns such as sex_male), a function of the rows, an object with
        `inverse_transform`, a mapping of column to its labels in the order of their codes or to an inverse of its own;
        or a list of these, one step after the other. Factuals and counterfactuals are decoded alike.
    labels : mapping or list, optional
        The table's name for each decision as the tool calls it.
    model : optional
        Asked for decisions that the source does not tell.
    own : {"nothing", "unchanged"} or list of str
        Which cells are taken for the asker's own, and count for nothing where people are counted: none, which is right
        for tools that answer with whole records; those that equal the factual's; or those of these columns that do.

    Returns
    -------
    Explanations
        Without a guarantee. `caveats` say what could not be read and how it was taken.

    Notes
    -----
    *Threat model*: everything that is read is taken to have left. A row that leads to the same decision as before
    counts as found. Where a value cannot be read, nothing is said there, and it fits everybody.

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> answer = table.features.iloc[[5]]  # what some tool answered: Fiona's record
    >>> e = cv.read_explanations((lisa, answer), table)
    >>> cv.attack.Linkage().run(e, table, control=table).members.value
    0.1
    """
    check_table(table, OWNER)
    own = _own(own, table)
    taken = take(source, factuals, table.schema)
    if isinstance(taken, Explanations):
        return _ours(taken, table)
    taken = _placed(taken, query, table)
    taken = taken.only(np.flatnonzero(~blank_rows(taken.counterfactuals, table.schema.features)))
    asked = decoded(_asked(taken), decode, table, columns)
    answered = decoded(taken.counterfactuals, decode, table, columns) if len(taken.counterfactuals) else asked.iloc[:0]
    taken = _with_decisions(taken, asked, answered, table, labels)
    fitted = fit_cells(asked, answered, taken.query, table)
    made = {"explainer": taken.format, "parameters": {"own": own, "decoded": decode is not None}}
    return assembled(taken, fitted, table, own=own, model=model, made=made)


def _own(own: Any, table: Table) -> list[str]:
    """The columns whose unchanged values are the asker's own."""
    if isinstance(own, str) and own in ("nothing", "unchanged"):
        return table.schema.features if own == "unchanged" else []
    if isinstance(own, str) or not isinstance(own, Sequence) or not set(own) <= set(table.schema.features):
        raise bad_parameter(OWNER, "own", "'nothing', 'unchanged', or a list of feature columns", own)
    return list(own)


def _ours(e: Explanations, table: Table) -> Explanations:
    """What we wrote ourselves, about the same columns."""
    if lacking := [n for n in e.counterfactuals.columns if n not in table.schema]:
        raise SchemaError(f"These explanations are about columns that the table does not have: {listed(lacking)}.")
    return replace(e, audit=table)


def _placed(taken: Taken, query: Any, table: Table) -> Taken:
    """With the place of each counterfactual's factual."""
    if taken.query is None:
        places, named = matched(_asked(taken), taken.counterfactuals, query, table.schema)
        kept = taken.counterfactuals
        kept = kept.drop(columns=[named]) if named is not None and isinstance(kept, pd.DataFrame) else kept
        return replace(taken, query=places, counterfactuals=kept)
    if query is not None:
        raise bad_parameter(OWNER, "query", f"None: {taken.format} says itself which row was explained", query)
    if int(taken.query.max(initial=-1)) >= len(_asked(taken)):
        raise SchemaError(
            f"{OWNER} got {len(_asked(taken)):,} factuals, but the explanations are about "
            f"{int(taken.query.max()) + 1:,} rows."
        )
    return taken


def _asked(taken: Taken) -> Any:
    if taken.factuals is None:
        raise bad_parameter(OWNER, "factuals", f"the rows that were explained: {taken.format} does not hold them", None)
    if not len(taken.factuals):
        raise SchemaError(f"The factuals given to {OWNER} are empty: at least one row is needed.")
    return taken.factuals


def _with_decisions(taken: Taken, asked: pd.DataFrame, answered: pd.DataFrame, table: Table, labels: Any) -> Taken:
    """Decisions as the table calls them, of the factuals and of the counterfactuals; None where nothing is known."""
    target = table.schema.target
    known = {} if target is None else {plain(v): v for v in known_values(table, target)}
    if labels is not None:
        given = dict(labels) if isinstance(labels, Mapping) else dict(enumerate(labels))
        if unknown := [v for v in given.values() if plain(v) not in known]:
            raise bad_parameter(OWNER, "labels", f"about labels of the target, {listed(list(known.values()))}", unknown)
        known = {plain(k): known[plain(v)] for k, v in given.items()}

    def said(own: Sequence[Any] | None, frame: pd.DataFrame) -> list[Any]:
        held = frame[target].tolist() if own is None and target in frame.columns else own
        return [known.get(plain(v)) for v in held or [None] * len(frame)]

    told = taken.before is not None or taken.after is not None or target in answered.columns
    before, after = said(taken.before, asked), said(taken.after, answered)
    remarks = (STRANGE_LABELS,) if told and target is not None and None in after else ()
    return replace(taken, before=before, after=after, remarks=(*taken.remarks, *remarks))
