"""The checks every attack must pass: it finds open data, and is silent on an empty release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from countervail.attack.base import OracleAttack
from countervail.attack.shared.planted import open_explanations
from countervail.core.explanation import Explanations
from countervail.explain.nice import NICE
from countervail.protect.cfk.cfk import CFK
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
        yield check_sees_no_table
    elif len(_run(attack).set_sizes):
        yield check_finds_plain_explanations


def check_attack_clone_keeps_parameters(a: Any) -> None:
    """`clone` gives the same parameters."""
    assert clone(a).get_params() == a.get_params()


def check_attack_is_reproducible(a: Any) -> None:
    """Two runs give the same figures."""
    assert _run(a).to_dict() == _run(clone(a)).to_dict()


def check_names_its_criterion(a: Any) -> None:
    """What success means is one of the criteria that an audit knows."""
    assert a.criterion in _CRITERIA


def check_finds_the_leak_planted_for_it(a: Any) -> None:
    """What is planted for this attack is found, on members and not on strangers."""
    result = _run(a)
    assert result.excess.low > 0.1
    assert not result.controls.n or result.members.low > result.controls.value
    assert not result.baseline.n or result.members.low > result.baseline.value


def check_is_silent_on_an_empty_release(a: Any) -> None:
    """Nothing released, nothing found."""
    table = small_table()
    everything = open_explanations(table)
    nothing = Explanations(
        everything.factuals,
        everything.counterfactuals,
        pd.Series(["no_counterfactual"] * len(table)),
        everything.before,
        everything.after,
        table.schema,
        everything.guarantee,
    )
    result = a.run(nothing, table, small_table(seed=1))
    assert not result.members.value > 0
    assert not result.controls.value > 0
    assert len(result.set_sizes) == 0


def check_sees_no_table(a: Any) -> None:
    """The release reaches the attack without its training table."""
    seen: list[Any] = []
    step = "guess" if hasattr(a, "guess") else "figures"

    def spy(self: Any, release: Any, *more: Any) -> Any:
        seen.append(release)
        return getattr(type(a), step)(self, release, *more)

    watched = type("Watched", (type(a),), {step: spy})
    watched(**a.get_params()).run(open_explanations(small_table()), small_table(), small_table(seed=1))
    assert seen
    assert all(release.audit is None for release in seen)


def check_finds_plain_explanations(a: OracleAttack) -> None:
    """Plain explanations leave one person; minimal regions of three people, to whoever reruns the search, fewer."""
    table, control = small_table(), small_table(seed=1)
    oracle = CFK(k=3, search="exact") if a.reruns else NICE(target="favourable")
    sizes = a.run(oracle.fit(table, small_model), table, control).set_sizes
    assert sizes.min() < 3 if a.reruns else np.median(sizes) == 1


def _run(a: Any) -> Any:
    table, control = small_table(), small_table(seed=1)
    return a.run(a.planted(table, control), table, control)
