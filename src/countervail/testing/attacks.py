"""The checks every attack must pass: it finds open data, and is silent on an empty release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from countervail.attack.base import OracleAttack, ReleaseAttack
from countervail.core.explanation import Explanations
from countervail.core.guarantee import NoGuarantee
from countervail.core.table import Table
from countervail.explain.nice import NICE
from countervail.protect.cfk.cfk import CFK
from countervail.testing.tables import small_model, small_table

Check = Callable[[Any], None]


def attack_checks(attack: Any) -> Iterator[Check]:
    """The checks that apply to this attack."""
    yield check_attack_clone_keeps_parameters
    yield check_attack_is_reproducible
    if isinstance(attack, ReleaseAttack):
        yield check_finds_open_data
        yield check_is_silent_on_an_empty_release
        yield check_sees_no_table
    if isinstance(attack, OracleAttack):
        yield check_finds_plain_explanations


def open_release(table: Table) -> Explanations:
    """Everybody's record, handed out as if it were an explanation."""
    n = len(table)
    same = pd.Series(["found"] * n)
    yes, no = pd.Series(["yes"] * n, dtype=object), pd.Series(["no"] * n, dtype=object)
    return Explanations(table.features, table.features, same, no, yes, table.schema, NoGuarantee("raw"), audit=table)


def check_attack_clone_keeps_parameters(a: Any) -> None:
    """`clone` gives the same parameters."""
    assert clone(a).get_params() == a.get_params()


def check_attack_is_reproducible(a: Any) -> None:
    """Two runs give the same figures."""
    assert _run(a).to_dict() == _run(clone(a)).to_dict()


def check_finds_open_data(a: ReleaseAttack) -> None:
    """Everybody's record is found out, and strangers are not."""
    result = _run(a)
    assert result.excess > 0.2
    assert result.members.low > result.baseline.high


def check_is_silent_on_an_empty_release(a: ReleaseAttack) -> None:
    """Nothing released, nothing found."""
    table = small_table()
    everything = open_release(table)
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
    assert (result.members.value, result.controls.value) == (0, 0)
    assert len(result.set_sizes) == 0


def check_sees_no_table(a: ReleaseAttack) -> None:
    """The release reaches the attack without its training table."""
    seen: list[Explanations] = []

    class Spy(type(a)):  # type: ignore[misc]
        def guess(self, release: Explanations, known: Any) -> pd.DataFrame:
            seen.append(release)
            return super().guess(release, known)  # type: ignore[no-any-return]

    Spy(**a.get_params()).run(open_release(small_table()), small_table(), small_table(seed=1))
    assert seen
    assert all(release.audit is None for release in seen)


def check_finds_plain_explanations(a: OracleAttack) -> None:
    """Plain explanations leave one person; minimal regions of three people, to whoever reruns the search, fewer."""
    sizes = _run(a).set_sizes
    assert sizes.min() < 3 if a.reruns else np.median(sizes) == 1


def _run(a: Any) -> Any:
    table, control = small_table(), small_table(seed=1)
    if isinstance(a, OracleAttack):
        oracle = CFK(k=3, search="exact") if a.reruns else NICE(target="favourable")
        return a.run(oracle.fit(table, small_model), table, control)
    return a.run(open_release(table), table, control)
