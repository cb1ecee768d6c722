"""The checks every attack must pass: it finds open data, and is silent where there is nothing to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from countervail.attack.base import OracleAttack, ReleaseAttack
from countervail.attack.shared.planted import open_explanations, open_release
from countervail.core.errors import SchemaError
from countervail.core.explanation import Explanations
from countervail.core.release import Release
from countervail.core.table import Table
from countervail.explain.nice import NICE
from countervail.protect.cfk.cfk import CFK
from countervail.testing.explainers import cloned
from countervail.testing.tables import small_model, small_table

Check = Callable[[Any], None]
_CRITERIA = ("singling out", "linkability", "inference", "membership", "model")


def attack_checks(attack: Any) -> Iterator[Check]:
    """The checks that apply to this attack."""
    yield check_attack_clone_keeps_parameters
    yield check_attack_is_reproducible
    yield check_names_its_criterion
    yield check_finds_the_leak_planted_for_it
    if not isinstance(attack, OracleAttack):
        yield check_is_silent_on_an_empty_release
        yield check_is_silent_on_strangers
        yield check_sees_no_table
    if isinstance(attack, ReleaseAttack):
        yield check_sizes_count_people
    if isinstance(attack, OracleAttack) and len(_run(attack).set_sizes):
        yield check_finds_plain_explanations
        yield check_groups_keep_their_people


def check_attack_clone_keeps_parameters(a: Any) -> None:
    """`clone` gives the same parameters."""
    assert cloned(a).get_params() == a.get_params(), "clone() changed a parameter"


def check_attack_is_reproducible(a: Any) -> None:
    """Two runs give the same figures."""
    assert _run(a).to_dict() == _run(clone(a)).to_dict(), "two runs of the attack give different figures"


def check_names_its_criterion(a: Any) -> None:
    """What success means is one of the criteria that an audit knows."""
    assert a.criterion in _CRITERIA, f"the attack's criterion must be one of {_CRITERIA}"


def check_finds_the_leak_planted_for_it(a: Any) -> None:
    """What is planted for this attack is found, on members and not on strangers."""
    result = _run(a)
    assert result.excess.low > 0.1, "the attack does not find the leak that it plants for itself"
    told = not result.controls.n or result.members.low > result.controls.value
    assert told, "the attack finds people who were never in the data as often as those who were"
    better = not result.baseline.n or result.members.low > result.baseline.value
    assert better, "the attack is no better than a blind guess on the leak that it plants for itself"


def check_is_silent_on_an_empty_release(a: Any) -> None:
    """Nothing released, nothing found."""
    table = small_table()
    if a.tables_only:
        hidden = replace(open_release(table), others=pd.DataFrame(index=pd.RangeIndex(len(table))))
        assert _silent(a, hidden, table), "the attack finds something in a table whose columns are all left out"
        return
    everything = open_explanations(table)
    nothing = Explanations(
        everything.factuals,
        everything.counterfactuals.map(lambda _: None),
        pd.Series(["no_counterfactual"] * len(table)),
        everything.before,
        everything.after,
        table.schema,
        everything.guarantee,
    )
    result = a.run(nothing, table, small_table(seed=1))
    assert not result.members.value > 0, "the attack finds members where nothing was released"
    assert not result.controls.value > 0, "the attack finds strangers where nothing was released"
    assert len(result.set_sizes) == 0, "the attack counts people behind answers where none was released"


def check_is_silent_on_strangers(a: Any) -> None:
    """A release about other people altogether tells nothing about members: these fare as the controls do."""
    quiet = _silent(a, _opened(a, small_table(seed=7)), small_table())
    assert quiet, "the attack claims to find members in a release that none of them is in"


def _opened(a: Any, table: Table) -> Explanations | Release:
    """Everybody's record as it is, in the form that the attack looks at."""
    return open_release(table) if a.tables_only else open_explanations(table)


def _silent(a: Any, release: Explanations | Release, table: Table) -> bool:
    """Whether an attack finds no members; one that says that there is nothing to look at finds none."""
    try:
        result = a.run(release, table, small_table(seed=1))
    except SchemaError:
        return bool(a.tables_only)
    return not result.excess.low > 0.1


def check_sizes_count_people(a: ReleaseAttack) -> None:
    """Records as they are fit one person each; cells that hold everybody's values fit everybody."""
    table = small_table()
    shown, register = open_explanations(table), a.register(table, small_table(seed=1))
    alone = a.sizes(shown.without_audit(), register)
    assert len(alone) == len(table), "`sizes` must give a number for each answer that was found"
    assert alone.min() == 1, "a record as it is fits one person, and `sizes` says more"
    cells = shown.counterfactuals.astype(object)
    for name in table.schema.features:
        values = pd.concat([table.frame[name], small_table(seed=1).frame[name]])
        wide: Any = frozenset(values)
        if table.schema[name].numeric:
            wide = pd.Interval(values.min(), values.max(), closed="both")
        cells[name] = pd.Series([wide] * len(cells), dtype=object)
    blurred = a.sizes(replace(shown, counterfactuals=cells).without_audit(), register)
    assert (blurred == len(register)).all(), "cells that hold everybody's values fit everybody, and `sizes` says fewer"


def check_sees_no_table(a: Any) -> None:
    """The release reaches the attack without its training table."""
    seen: list[Any] = []
    step = "guess" if hasattr(a, "guess") else "figures"

    def spy(self: Any, release: Any, *more: Any) -> Any:
        seen.append(release)
        return getattr(type(a), step)(self, release, *more)

    watched = type("Watched", (type(a),), {step: spy})
    watched(**a.get_params()).run(_opened(a, small_table()), small_table(), small_table(seed=1))
    assert seen, "the attack never looked at what was released"
    assert all(release.audit is None for release in seen), "the attack was given the training table with the release"


def check_finds_plain_explanations(a: OracleAttack) -> None:
    """Plain explanations leave one person; minimal regions of three people, to whoever reruns the search, fewer."""
    table, control = small_table(), small_table(seed=1)
    oracle = CFK(k=3, search="exact") if a.reruns else NICE(target="favourable")
    sizes = a.run(oracle.fit(table, small_model), table, control).set_sizes
    found = sizes.min() < 3 if a.reruns else np.median(sizes) == 1
    assert found, "the attack leaves more people than plain explanations, or minimal regions, hide"


def check_groups_keep_their_people(a: OracleAttack) -> None:
    """Where every answer is that of a settled group of five, nobody is left with fewer."""
    table, control = small_table(), small_table(seed=1)
    sizes = a.run(CFK(k=5).fit(table, small_model), table, control).set_sizes
    assert len(sizes) and sizes.min() >= 5, "the attack leaves fewer people of a group than none can tell apart"


def _run(a: Any) -> Any:
    table, control = small_table(), small_table(seed=1)
    return a.run(a.planted(table, control), table, control)
