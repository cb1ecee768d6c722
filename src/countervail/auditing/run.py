"""May this leave the house? A battery of attacks, a verdict against a declared appetite, and a dossier."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from countervail.auditing.appetite import Appetite
from countervail.auditing.battery import (
    Setting,
    fitting_attacks,
    left_out,
    not_asked,
    not_fitting,
    not_read,
    run_battery,
)
from countervail.auditing.beside import by_group, influence
from countervail.auditing.claims import claims_of, measured
from countervail.auditing.groups import groups_of
from countervail.auditing.result import Audit
from countervail.auditing.subject import Subject, check_controls, read_subject
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee, KAnonymity, NoGuarantee
from countervail.core.people import people_in, person_columns
from countervail.core.protocols import Progress
from countervail.core.release import package_version
from countervail.core.schema import Schema
from countervail.core.table import Table

_DRAWS = 5_000  # answers on tiny tables that measure a claimed epsilon
_UNITS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_PROOFS = {
    "cfk": "docs/decisions/reciprocal-groups.md",
    "mondrian": "docs/decisions/mondrian-guarantee.md",
    "microaggregation": "docs/decisions/microaggregation.md",
}
_PACKAGES = ("numpy", "pandas", "scipy", "scikit-learn")


def audit(
    what: Any,
    table: Table,
    *,
    control: Table,
    appetite: Appetite | Mapping[str, Any] | str | Path | None = None,
    budget: str | float | None = "5 min",
    by: str | None = None,
    attacks: Sequence[str] | None = None,
    answers: int = 1000,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Try to break a release or an explainer, and say whether it may leave.

    Parameters
    ----------
    what : explainer, protector, Explanations, Release, pair of frames, or path
        What is audited. Whatever explains is asked as people of `control`; a path or a pair (factuals,
        counterfactuals) is read by :func:`countervail.read_explanations`, whoever wrote it.
    table : Table
        The people behind it.
    control : Table
        People of the same kind who were never in it: held out before model and explainer were fitted.
    appetite : Appetite, dict or path, optional
        Which recipient may be exposed to how much; by default the shipped example (`Appetite.example()`).
    budget : str or float, optional
        Time for all of it, such as "5 min" or seconds. What is not done by then is said, and never counts as passed.
        An attack that runs is interrupted; with `jobs=1` only in the main thread of a system with timers, and between
        two steps of compiled code.
    by : str, optional
        A column of the people who ask, or of the people in a published table: the group of at least 20 in which an
        attack succeeds most is shown, and rejects where it is shown to be exposed more than is accepted.
    attacks : list of str, optional
        Only these; by default all that apply. Others that apply are said to be left out, and nobody passes for them.
    answers : int
        How many people of `control` an explainer is asked about, at most.
    jobs : int, optional
        Processes; by default as many as there are processors.
    progress : callable, optional
        Told how many runs are done, of how many.

    Notes
    -----
    *Threat model*: each attack names its own. The verdict is about those that were tried, against the recipients of the
    appetite; it is no proof.

    Examples
    --------
    >>> import countervail as cv
    >>> members, others = cv.load("german_credit").split(test_size=0.4, random_state=0)
    >>> model = cv.model.train_forest(members)
    >>> plain = cv.NICE(target="favourable").fit(members, model)
    >>> cv.audit(plain, members, control=others, attacks=["linkage"], answers=100, jobs=1).verdict
    'reject'
    """
    start, limit = time.monotonic(), seconds_of(budget)
    wanted = read_appetite(appetite)
    if not (isinstance(answers, int) and answers >= 1):
        raise bad_parameter("audit", "answers", "a whole number of at least 1", answers)
    check_controls(table, control)
    subject = read_subject(what, table, control, answers=answers)
    setting = Setting(subject, table, fitting_attacks(subject, attacks), groups_of(subject, table, by))
    workers = _workers(jobs, setting)
    until = None if limit is None else start + limit
    findings = run_battery(setting, until=until, jobs=workers, progress=progress)
    findings += (
        left_out(subject, attacks) + not_asked(subject, attacks) + not_fitting(subject, attacks) + not_read(subject)
    )
    claims = claims_of(subject.guarantee, subject.maker)
    beside: dict[str, Any] = {}
    if by is not None and isinstance(subject.released, Explanations):
        beside["groups"] = by_group(subject.released, by)
    if until is None or time.monotonic() < until:
        claims = [measured(c, subject.name, _DRAWS) for c in claims]
    if (found := influence(subject, table, until)) is not None:
        beside["influence"] = found
    return Audit.settle(
        _asked(subject, table, by),
        _leaves(subject.released, table.schema),
        _promise(subject),
        wanted,
        findings=findings,
        claims=tuple(claims),
        caveats=tuple(dict.fromkeys((*subject.caveats, *_rows_of_people(table)))),
        beside=beside,
        provenance=_provenance(subject, table, wanted, limit, time.monotonic() - start),
    )


def _rows_of_people(table: Table) -> tuple[str, ...]:
    """What it means for figures that some people have several rows; nothing where nobody has."""
    if people_in(table) == len(table):
        return ()
    named = ", ".join(person_columns(table))
    return (
        f"Some people have several rows, by {named} ({len(table):,} rows of {people_in(table):,} people): attacks "
        "count people. Linkage, homogeneity and the order of rows take a person for found where one of their rows is; "
        "attacks by nearness look for one row of each person, drawn at random; released things weigh as much as if "
        "those of one person always fared alike. Whoever looks at all rows of a person together may find more.",
    )


def read_appetite(appetite: Appetite | Mapping[str, Any] | str | Path | None) -> Appetite:
    """The appetite, however it is given."""
    if appetite is None:
        return Appetite.default()
    if isinstance(appetite, Appetite):
        return appetite
    if isinstance(appetite, Mapping):
        return Appetite.from_dict(appetite)
    if isinstance(appetite, (str, Path)):
        return Appetite.read(appetite)
    raise bad_parameter("audit", "appetite", "an Appetite, a dict, or the path of a TOML file", type(appetite).__name__)


def seconds_of(budget: str | float | None) -> float | None:
    """A time such as "5 min", "90 s" or 90 in seconds.

    Examples
    --------
    >>> seconds_of("5 min"), seconds_of("1.5h"), seconds_of(20), seconds_of(None)
    (300.0, 5400.0, 20.0, None)
    """
    if budget is None:
        return None
    must = "a time such as '5 min', '90 s' or '1 h', or seconds above 0"
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*?)s?\s*", budget.lower())
        unit = None if found is None else _UNITS.get(found[2] or "s")
        if found is None or unit is None:
            raise bad_parameter("audit", "budget", must, budget)
        budget = float(found[1]) * unit
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < float("inf"):
        raise bad_parameter("audit", "budget", must, budget)
    return float(budget)


def _workers(jobs: int | None, setting: Setting) -> int:
    if jobs is not None and not (isinstance(jobs, int) and jobs >= 1):
        raise bad_parameter("audit", "jobs", "None or a whole number of at least 1", jobs)
    wanted = min(os.cpu_count() or 1, 8) if jobs is None else jobs
    if wanted == 1:
        return 1
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(setting)
    except Exception:  # noqa: BLE001 - what cannot be sent to a process, for whatever reason, stays in this one
        return 1
    return wanted


def _asked(subject: Subject, table: Table, by: str | None) -> dict[str, Any]:
    released = subject.released
    things = {"answers": int(released.found.sum())} if isinstance(released, Explanations) else {"rows": len(released)}
    today = datetime.now(UTC).date()
    return {
        "what": subject.kind,
        "name": subject.name,
        **things,
        "people": people_in(table),
        "controls": people_in(subject.strangers),
        "by": by,
        "date": today.isoformat(),
    }


def _leaves(released: Any, schema: Schema) -> dict[str, Any]:
    """Which columns leave, and how."""
    if isinstance(released, Explanations):
        shown = [str(n) for n in released.counterfactuals.columns]
        blurred = [str(a.name) for a in released.regions.axes] if released.found.any() else []
        quasi = [n for n in shown if n in schema.names("quasi")]
        return {
            "quasi_identifiers": quasi,
            "others": [n for n in shown if n not in quasi],
            "blurred": blurred if released.own is None else [],
            "own_values": "left as they are" if released.own is not None else "shown beside what changes",
        }
    generalised = [str(a.name) for a in released.regions.axes]
    plain = [str(n) for n in released.others.columns]
    return {"quasi_identifiers": generalised, "others": plain, "suppressed": int(released.suppressed)}


def _promise(subject: Subject) -> dict[str, Any]:
    guarantee = subject.guarantee
    return {
        "text": str(guarantee),
        "adversary": guarantee.adversary,
        "proof": _proof(guarantee, str(subject.released.provenance.get("protector", ""))),
        "data": guarantee.to_dict(),
    }


def _proof(guarantee: Guarantee, protector: str) -> str | None:
    """The page that proves a promise: its own, or that of who made it. Of makers of others' nothing is known."""
    if guarantee.proof or isinstance(guarantee, NoGuarantee):
        return guarantee.proof
    if protector == "cfk" and isinstance(guarantee, KAnonymity) and guarantee.against == "register":
        return "docs/decisions/k-anonymity-register.md"
    return _PROOFS.get(protector)


def _provenance(
    subject: Subject, table: Table, appetite: Appetite, limit: float | None, seconds: float
) -> dict[str, Any]:
    today = datetime.now(UTC).date()
    made = {
        k: v for k, v in subject.made.items() if k in ("protector", "explainer", "parameters", "format", "countervail")
    }
    return {
        "made": made,
        "schema": table.schema.declared().digest(),
        "countervail": package_version(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "chance": "attacks draw with fixed seeds; noise of what is audited is the system's unless it says otherwise",
        "time_limit": limit,
        "seconds": round(seconds, 1),
        "expires": months_later(today, appetite.valid_for_months).isoformat(),
    }


def months_later(day: date, months: int) -> date:
    """The same day some months later, or the last of that month.

    Examples
    --------
    >>> months_later(date(2026, 8, 31), 6)
    datetime.date(2027, 2, 28)
    """
    from calendar import monthrange

    place = day.month - 1 + months
    year, month = day.year + place // 12, place % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))
