"""One change for several people: the fewest of all proposed changes that help everybody whom one of them helps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.cells import cell_text, fits
from countervail.core.constraints import Constraints
from countervail.core.encode import Encoder, encode_queries
from countervail.core.errors import bad_parameter, check_count
from countervail.core.explanation import Explanations
from countervail.core.guarantee import DifferentialPrivacy, Guarantee
from countervail.core.table import Table
from countervail.explain.answering import Aim, Queries
from countervail.model.decision import Decision

_OWNER = "share_changes"
_COMBINATIONS = 256  # of the values of a change, tried on each person
_POINTS = 9  # of a range of numbers
_SAMPLED = "Of long ranges and of very many combinations some were tried on each person, the ends of ranges included."


@dataclass(frozen=True, eq=False, slots=True)
class SharedChanges:
    """Changes, the most helpful first, and whom each helps: places of the people who asked, in their order.

    Everybody is named once, with the first change that helps. `asked` are those who need one: without people who have
    the wanted decision already.
    """

    changes: tuple[Mapping[str, Any], ...]
    people: tuple[Ints, ...] = field(repr=False)
    asked: int
    guarantee: Guarantee
    caveats: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def helped(self) -> int:
        """How many people one of the changes helps."""
        return sum(map(len, self.people))

    def to_frame(self) -> pd.DataFrame:
        """One row per change: how many people it helps, and its cells as text (blank: stays as it is)."""
        names = list(dict.fromkeys(n for c in self.changes for n in c))
        cells = [{n: cell_text(c[n]) if n in c else "" for n in names} for c in self.changes]
        return pd.DataFrame({"people": [len(p) for p in self.people]}).join(pd.DataFrame(cells, columns=names))

    def to_text(self) -> str:
        """The changes line by line, and how many of those who asked they help."""
        lines = [
            f"{len(who)} people: {', '.join(f'{n} {cell_text(c)}' for n, c in change.items())}"
            for change, who in zip(self.changes, self.people)
        ]
        return "\n".join([*lines, f"{self.helped} of {self.asked} people are helped by {len(self)} change(s)."])


def share_changes(
    found: Explanations,
    model: Any,
    *,
    most: int | None = None,
    target: Any = "favourable",
    table: Table | None = None,
    immutable: Iterable[str] = (),
    ranges: Mapping[str, Any] | None = None,
    monotone: Mapping[str, str] | None = None,
    forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
    max_changes: int | None = None,
) -> SharedChanges:
    """The fewest changes, out of those that answers propose, that help all people whom any of them helps.

    Every answer's change is tried on everybody who asked: cells that a person does not lie in move, all else stays her
    own, and all combinations of the cells' values must lead to a wanted decision and be allowed (of long ranges nine
    points from end to end are tried, of very many combinations 256). Then the change that helps most people is taken,
    the next for those who are left, and so on.

    Parameters
    ----------
    found : Explanations
        Answers to the people, of any explainer or protector; several to each person propose more.
    model : estimator with `predict`, or function
        The one that was explained.
    most : int, optional
        How many changes there may be; 1: one for all, whoever it helps.
    target : "favourable", "other", a label or several
        The decisions that help.
    table : Table, optional
        The training table; default: the one that the answers still hold in this process. It tells how columns are
        stored and which labels there are; no row of it is looked at. Of answers that owe their privacy to noise nothing
        of it is: they and the model tell that themselves.
    immutable, ranges, monotone, forbidden, max_changes : optional
        What may not be asked of people, as in :class:`NICE`, beside what the schema declares: give what the explainer
        was given, since a change that one person may make another may not.

    Notes
    -----
    *Threat model*: that of the answers, whose promise is passed on: what is chosen follows from answers, the people who
    asked and the model. A shared change may have been proposed to one of those who asked (a round amount that is just
    enough, say): others who see it learn that somebody in the group needs so much.

    The choice is greedy: it needs at most 1 + ln(n) times as many changes as the fewest possible.

    References
    ----------
    Goethals, Sörensen, Martens: The privacy issue of counterfactual explanations: explanation linkage attacks (2023),
    which names counterfactuals for a group of instances as a way to anonymised ones; the promise and the choice are
    ours.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> table = small_table(200)
    >>> answers = cv.CFK(k=5).fit(table, small_model).explain(small_table(40, seed=1))
    >>> shared = cv.share_changes(answers, small_model)
    >>> shared.helped == shared.asked and len(shared) < shared.asked
    True
    """
    if not isinstance(found, Explanations):
        raise bad_parameter(_OWNER, "found", "Explanations", type(found).__name__, "Call explain first.")
    if most is not None:
        check_count(_OWNER, "most", most)
    assert found.query is not None
    first = np.unique(found.query, return_index=True)[1]
    people = found.factuals.iloc[first].reset_index(drop=True)
    noisy = isinstance(found.guarantee, DifferentialPrivacy)
    held = _stand_in(found, people, model) if noisy else found.training_table(table)
    encoder = Encoder.fit(held)
    wider, frame, x = encode_queries(people, held.schema, encoder, _OWNER)
    decision = Decision(model, held, _OWNER, ask_rows=False)
    asked = Aim(decision, target, held.schema, _OWNER).ask(wider, frame, x)
    given = {"immutable": immutable, "ranges": ranges, "monotone": monotone, "forbidden": forbidden}
    limits = Constraints.of(encoder, _OWNER, max_changes=max_changes, **given).coded(wider)
    proposed = list({_key(e.changes): e.changes for e in found if e.found and e.changes}.values())
    tries = _Tries(decision, asked, limits, people)
    helps = np.array([tries.helped(change) for change in proposed]).reshape(len(proposed), len(x))
    taken = _covering(helps, [len(c) for c in proposed], most)
    caveats = (*found.caveats, *((_SAMPLED,) if tries.sampled else ()))
    chosen, whom = tuple(proposed[j] for j, _ in taken), tuple(who for _, who in taken)
    return SharedChanges(chosen, whom, int((~asked.already).sum()), found.guarantee, caveats)


def _stand_in(found: Explanations, people: pd.DataFrame, model: Any) -> Table:
    """A table that stores columns as the answers do, of those who asked, with every label: nobody of the training
    table has a part in it."""
    schema = found.schema
    target = schema[str(schema.target)]
    labels = None if target.numeric else target.public
    if labels is None:
        labels = tuple(np.asarray(getattr(model, "classes_", found.after.dropna())).tolist())
    rows = people.iloc[np.arange(max(len(people), len(labels))) % len(people)].reset_index(drop=True)
    marked = [labels[i % len(labels)] for i in range(len(rows))]
    return Table(rows.assign(**{target.name: marked})[[n for n in schema.names() if n in {*rows, target.name}]], schema)


class _Tries:
    """Changes tried on everybody who asked."""

    def __init__(self, decision: Decision, asked: Queries, limits: Constraints, people: pd.DataFrame) -> None:
        self._decision, self._asked, self._limits, self._people = decision, asked, limits, people
        self.sampled = False

    def helped(self, change: Mapping[str, Any]) -> Bools:
        """Whom a change helps: whatever of its values are taken, the decision is wanted and nothing is forbidden."""
        asked, names = self._asked, self._asked.encoder.names
        places = [names.index(n) for n in change]
        moves = np.array([[not fits(v, c) for v in self._people[n]] for n, c in change.items()], dtype=bool).T
        lists = [self._values(names.index(n), c) for n, c in change.items()]
        self.sampled |= float(np.prod([float(len(v)) for v in lists])) > _COMBINATIONS
        picked = np.array(list(islice(product(*lists), _COMBINATIONS)))
        helped = ~asked.already & moves.any(axis=1)
        if self._limits.max_changes is not None:
            helped &= moves.sum(axis=1) <= self._limits.max_changes
        at = np.flatnonzero(helped)
        if not len(at):
            return helped
        rows = np.repeat(asked.x[at][:, None, :], len(picked), axis=1)
        rows[:, :, places] = np.where(moves[at][:, None, :], picked[None], rows[:, :, places])
        flat: Matrix = rows.reshape(-1, rows.shape[2])
        who = np.repeat(at, len(picked))
        said = self._decision.decide(asked.encoder.decode(flat))
        fine = asked.wanted[who, said] & self._limits.holds(asked.x[who], flat).all(axis=1)
        helped[at] = fine.reshape(len(at), -1).all(axis=1)
        return helped

    def _values(self, j: int, cell: Any) -> Floats:
        """The values of a cell as numbers and codes; of a long range, points from end to end."""
        coding = self._asked.encoder.codings[j]
        if isinstance(cell, pd.Interval):
            whole = pd.api.types.is_integer_dtype(coding.dtype)
            points = np.linspace(float(cell.left), float(cell.right), _POINTS)
            self.sampled |= not whole or cell.right - cell.left >= _POINTS
            return np.unique(np.rint(points) if whole else points)
        values = sorted(cell, key=cell_text) if isinstance(cell, frozenset) else [cell]
        coded: Floats = np.asarray(
            coding.encode(pd.Series(values, dtype=None if coding.numeric else object)), dtype=float
        )
        return coded


def _covering(helps: Bools, sizes: list[int], most: int | None) -> list[tuple[int, Ints]]:
    """Greedily: the change that helps most of those who are left; of equals the one of fewest cells, then the first."""
    left: Bools = np.asarray(helps.any(axis=0), dtype=bool) if len(helps) else np.zeros(0, dtype=bool)
    taken: list[tuple[int, Ints]] = []
    while left.any() and (most is None or len(taken) < most):
        counts = (helps & left).sum(axis=1)
        best = min(range(len(helps)), key=lambda j: (-counts[j], sizes[j], j))
        who = np.flatnonzero(helps[best] & left)
        taken.append((best, who))
        left = left & ~helps[best]
    return taken


def _key(change: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What tells changes apart."""
    return tuple((n, repr(cell_text(c))) for n, c in change.items())
