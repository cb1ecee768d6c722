"""Microaggregation: groups of at least k similar people, each published as the group's centre."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.core.errors import bad_parameter
from countervail.core.files.json_data import is_number as is_json_number
from countervail.core.files.json_data import need, texts
from countervail.core.guarantee import KAnonymity
from countervail.core.people import rows_per_person, say_rows_per_person
from countervail.core.release import Release
from countervail.core.rng import RandomState
from countervail.core.schema import Schema
from countervail.core.sealed import value_from_json, value_to_json
from countervail.core.table import Rows, Table
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._classes import NEW_ROWS, Classes, ClassProtector
from countervail.protect._fitted import live_table, verify_promised, verify_unchanged
from countervail.protect.microaggregation.mdav import mdav, v_mdav
from countervail.protect.microaggregation.points import Scale, centres, nearest_centre, place, scales
from countervail.protect.mondrian.columns import deduplicate, describe, encode
from countervail.protect.mondrian.constraints import FAILS_K, FITS, Requirements, check_word, is_number
from countervail.protect.mondrian.labels import class_regions
from countervail.protect.saved import Savable, release_from_json, release_to_json

CENTRES = (
    "Quasi-identifiers are centres of groups (means of numbers, medians of levels, commonest labels): a cell tells of "
    "the group, and may hold a value that nobody of it has, or only one."
)


class Microaggregation(Savable, ClassProtector):
    """Microaggregation (MDAV, V-MDAV): groups of at least k similar people, published as their centres.

    Parameters
    ----------
    k : int
        The least number of people in a group, 2 or more.
    method : {"mdav", "v-mdav"}
        Groups of k, as nearly as equal rows allow; or of k to 2k - 1, where somebody is near to a group and not to
        others.
    gamma : float
        Of "v-mdav": somebody joins who is nearer to the group than `gamma` times the distance to the next person
        outside. The authors take 0.2 for scattered people and 1.1 for clustered ones.
    random_state : int, optional
        Seed of the shuffle; default: the system's entropy, the only choice fit for publication.
    ledger : Ledger, optional
        Records the groups before a table leaves; other groups of the same people are refused from then on, and so are
        rows that are not the fitted table.

    Notes
    -----
    Numbers and ranks of levels are compared in standard deviations; two labels are equal or as far apart as two people
    are in a number on average. Numbers leave as means, levels as medians, labels as the commonest of the group; a
    missing value is compared as a label. Equal rows stay together, so groups may be larger than asked for.

    *Threat model*: someone who holds a register of everybody's quasi-identifiers and reruns this code: groups are a
    function of quasi-identifiers alone. Somebody who knows all of a group but one person learns that person's numbers
    from the means; ranges would tell less. Columns that are neither identifiers nor quasi-identifiers are published as
    they are. See docs/decisions/microaggregation.md. A fitted object holds what it publishes, and no rows.

    References
    ----------
    Domingo-Ferrer, Torra: Ordinal, continuous and heterogeneous k-anonymity through microaggregation (2005). Solanas,
    Martinez-Balleste: V-MDAV: a multivariate microaggregation with variable group size (2006).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("toy_credit")
    >>> release = cv.Microaggregation(k=5).fit(table).protect(table)
    >>> print("; ".join(sorted(release.regions.text())))
    age 25, gender F, city Antwerp; age 47.8, gender M, city Brussels
    """

    name: ClassVar[str] = "microaggregation"
    cells_hold: ClassVar[bool] = False

    def __init__(
        self,
        k: int = 10,
        *,
        method: Literal["mdav", "v-mdav"] = "mdav",
        gamma: float = 0.2,
        random_state: RandomState = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.k = k
        self.method = method
        self.gamma = gamma
        self.random_state = random_state
        self.ledger = ledger

    def guarantee(self) -> KAnonymity:
        """k against whoever knows the code: only quasi-identifiers are looked at."""
        verify_promised(self)
        return KAnonymity(self.k, against="algorithm", centres=True)

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(k=5), cls(k=4, method="v-mdav", gamma=1.1)]

    def _released(self, rows: Rows | None) -> Release:
        """With a ledger only the fitted table leaves, once its groups are recorded."""
        verify_unchanged(self)
        if self.ledger is not None and rows is not None and rows is not live_table(self):
            must = "the fitted table itself with a ledger: two sets of rows that overlap can be subtracted"
            hint = "Fit to all rows that are to be released, or leave `rows` out to release the fitted table."
            raise bad_parameter(self._owner, "rows", must, "other rows", hint)
        release = super()._released(rows)
        if self.ledger is not None:
            self.ledger.record_grouping(self.partition_, self.name)
        return release

    def _learn(self, table: Table) -> Classes:
        required = Requirements(self._owner, self.k)
        self._check_parameters(required)
        least = self.k * rows_per_person(table)  # so many rows hold k people
        required.check_part(FITS if len(table) >= least else FAILS_K, len(table), table, None)
        quasi, codes = encode(table, {})
        data = describe(quasi, tree_loss=False)
        distinct, _, weight, which = deduplicate(codes, np.zeros(len(codes), np.int32), data.sizes, 1)
        self.scales_ = scales(quasi, data, distinct, weight)
        points, sizes = place(quasi, data, self.scales_, distinct, weight), int(data.sizes.max()) + 1
        fixed = self.method == "mdav"
        group = mdav(points, sizes, least) if fixed else v_mdav(points, sizes, least, float(self.gamma))
        self.regions_ = centres(quasi, data, distinct, weight, group)
        of = group[which].astype(np.int32)
        held = class_regions(quasi, codes, of, len(self.regions_), data, groups=False)
        return Classes(of, self.regions_, (*say_rows_per_person(table, self.k), CENTRES), held=held)

    def _assign(self, frame: pd.DataFrame) -> Classes:
        return Classes(nearest_centre(frame, self.scales_, self.regions_), self.regions_, (*NEW_ROWS, CENTRES))

    def _check_parameters(self, required: Requirements) -> None:
        required.check()
        if self.k < 2:
            raise bad_parameter(self._owner, "k", "a whole number of at least 2", self.k)
        check_word(self._owner, "method", self.method, ("mdav", "v-mdav"))
        if not (is_number(self.gamma) and 0 <= self.gamma < np.inf):
            raise bad_parameter(self._owner, "gamma", "a number of at least 0", self.gamma)
        check_ledger(self.ledger, self._owner)

    def _saved(self) -> dict[str, Any]:
        self._refuse_when_continued("a saved protector")
        if self.ledger is not None:
            self.ledger.record_grouping(self.partition_, self.name)
        return {
            "release": release_to_json(self.release_),
            "schema": self.schema_.to_dict(),
            "inferred": [c.name for c in self.schema_ if c.inferred],
            "scales": [
                {
                    "name": s.name,
                    "numeric": s.numeric,
                    "ordered": s.ordered,
                    "known": [value_to_json(v) for v in s.known],
                    "mean": s.mean,
                    "deviation": s.deviation,
                }
                for s in self.scales_
            ],
        }

    def _restore(self, data: dict[str, Any], model: Any) -> None:
        self.schema_ = Schema.from_dict(data["schema"]).with_inferred(texts(data["inferred"]))
        self.release_ = release_from_json(data["release"], self.guarantee())
        self.regions_, self.partition_, self.version_ = self.release_.regions, b"", 1
        self.scales_ = [_scale(s) for s in data["scales"]]
        need([s.name for s in self.scales_] == self.regions_.names)


def _scale(data: dict[str, Any]) -> Scale:
    need(isinstance(data["numeric"], bool) and isinstance(data["ordered"], bool))
    need(is_json_number(data["mean"]) and is_json_number(data["deviation"]) and data["deviation"] > 0)
    (name,), known = texts([data["name"]]), tuple(value_from_json(v) for v in data["known"])
    return Scale(name, data["numeric"], data["ordered"], known, float(data["mean"]), float(data["deviation"]))
