"""The battery: every attack that applies, each with a planted leak that it must find, within a limit of time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from countervail import registry
from countervail.attack import AttackResult, OracleAttack
from countervail.attack.base import UnansweredError
from countervail.auditing.finding import (
    ANSWERS_ALONE,
    LEFT_OUT,
    TIME_UP,
    UNSTEADY,
    Counts,
    Finding,
    SetSizes,
    detail_of,
    group_details,
    worst_group,
)
from countervail.auditing.groups import GroupPart
from countervail.auditing.subject import Subject
from countervail.core.errors import CountervailError, RefusedError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Invertible, Progress
from countervail.core.rng import generator
from countervail.core.table import Table
from countervail.engine.pool import ONE_THREAD

_TARGETS, _ASKED, _COPIED = 1000, 150, 50  # people attacked at most: by reading, by asking, to copy the model
_PAIRS, _LEAST = 2 * 10**8, 200  # people times released things, above which fewer people are attacked, but not below
_ENOUGH = 20  # cases that a planted leak must give an attack for it to be able to show anything
_PLANTED = 500  # people among whom a leak is planted
_SMALL, _NARROW = 500, 10  # released things and columns up to which patient attacks are tried
_ENDED = "a process that attacks were carried out in was ended from outside, perhaps for want of memory"
Outcome = Literal["run", "does not apply", "cannot show anything", "failed"]


@dataclass(frozen=True, eq=False, slots=True)
class Setting:
    """What all attacks share."""

    subject: Subject
    table: Table
    attacks: tuple[Any, ...]
    groups: tuple[GroupPart, ...] = ()

    @property
    def asking(self) -> Table:
        """Those who were asked about and got an answer; all of them where nobody did."""
        released = self.subject.released
        if not isinstance(released, Explanations) or released.query is None or not released.found.any():
            return self.subject.askers
        return self.subject.askers.take(np.unique(released.query[released.found]))

    @property
    def some(self) -> tuple[Table, Table]:
        """Members and controls among whom leaks are planted."""
        return tuple(_some_of(t) for t in (self.table, self.subject.strangers))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Step:
    """One run of one attack: on its planted leak, on what is audited, or on the answers to one group."""

    attack: int
    on: str  # "planted", "real", or "group"
    group: int = -1


@dataclass(frozen=True, eq=False, slots=True)
class Done:
    """How a step ended; `why` names a reason, never a value."""

    step: Step
    outcome: Outcome
    seconds: float
    result: AttackResult | None = None
    why: str = ""


def fitting_attacks(subject: Subject, only: Sequence[str] | None = None) -> tuple[Any, ...]:
    """The attacks of the registry that can be tried on a subject, in their usual settings."""
    kinds = registry.attacks()
    if only is not None and (unknown := [n for n in only if n not in kinds]):
        raise bad_parameter("audit", "attacks", f"some of {', '.join(kinds)}", ", ".join(unknown))
    chosen = [kind for name, kind in kinds.items() if only is None or name in only]
    read = min(_TARGETS, max(_LEAST, _PAIRS // max(_things(subject), 1)))

    def most(kind: type[Any]) -> int:
        if not issubclass(kind, OracleAttack):
            return read
        return _COPIED if kind.criterion == "model" else _ASKED

    return tuple(
        registry.made(kind, {"n_targets": most(kind), **settings})
        for kind in chosen
        if _can(kind, subject)
        for settings in registry.fact(kind, "variants")
    )


def not_asked(subject: Subject, only: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """Attacks that ask, where only answers are there: they were not run, which no recipient who asks may pass."""
    if subject.oracle is not None or subject.is_table:
        return ()
    return tuple(
        Finding(kind().label, kind.criterion, True, registry.summary(kind), why=ANSWERS_ALONE)
        for name, kind in registry.attacks().items()
        if issubclass(kind, OracleAttack) and not kind.reruns and (only is None or name in only)
    )


def left_out(subject: Subject, only: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """Attacks that could be tried and were not asked for: nobody passes for what was not tried."""
    if only is None:
        return ()
    kinds = [k for name, k in registry.attacks().items() if name not in only and _can(k, subject)]
    return tuple(
        Finding(
            registry.made(kind, settings).label,
            kind.criterion,
            issubclass(kind, OracleAttack),
            registry.summary(kind),
            why=LEFT_OUT,
        )
        for kind in kinds
        if subject.is_table or not kind.tables_only
        for settings in registry.fact(kind, "variants")
    )


def not_fitting(subject: Subject, only: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """Attacks that are too patient for so much, or need a search that can be rerun: they are said not to apply."""
    found = []
    for name, kind in registry.attacks().items():
        if (only is not None and name not in only) or _can(kind, subject):
            continue
        asks = issubclass(kind, OracleAttack)
        if asks and (subject.is_table or (subject.oracle is None and not kind.reruns)):
            continue  # there is nothing to ask, or `not_asked` says so
        why = (
            "it reruns the search of a protector, and none that can be rerun was given"
            if asks
            else f"it would take too long for more than {_SMALL} released things or {_NARROW} columns"
        )
        found.append(
            Finding(kind().label, kind.criterion, asks, registry.summary(kind), status="does not apply", why=why)
        )
    return tuple(found)


def not_read(subject: Subject) -> tuple[Finding, ...]:
    """What leaves and is tried by no attack, and answers that change: no recipient may pass for either."""
    found = []
    if subject.unread:
        why = f"no attack reads this: {'; '.join(subject.unread)}"
        found.append(
            Finding("beside the values", "singling out", False, "Texts and orders beside the values.", why=why)
        )
    if not subject.steady:
        summary = "Ask the same questions again, in another order."
        found.append(Finding("asked twice", "singling out", True, summary, status="failed", why=UNSTEADY))
    return tuple(found)


def _by_group(attack: Any, subject: Subject) -> bool:
    """Whether an attack can be tried on a group: on answers to it, or person by person."""
    return not isinstance(attack, OracleAttack) and (
        not subject.is_table or bool(registry.fact(type(attack), "by_person"))
    )


def run_battery(
    setting: Setting, *, until: float | None = None, jobs: int = 1, progress: Progress | None = None
) -> tuple[Finding, ...]:
    """All attacks, quick ones first; what is not done by `until` (a time.monotonic()) is said to be not run."""
    plan = in_order(setting)
    ended: dict[Step, Done] = {}
    for done in _in_processes(setting, plan, until, jobs) if jobs > 1 else _one_by_one(setting, plan, until):
        ended[done.step] = done
        if progress is not None:
            progress(len(ended), len(plan))
    return tuple(_finding(setting, i, ended) for i in range(len(setting.attacks)))


def in_order(setting: Setting) -> list[Step]:
    """Attacks that read, then those that ask, then patient ones; of each sort the planted leaks before the others."""
    sorts: list[list[int]] = [[], [], []]
    for i, attack in enumerate(setting.attacks):
        patient = bool(registry.fact(type(attack), "for_small_tables"))
        sorts[2 if patient else int(isinstance(attack, OracleAttack))].append(i)
    plan = []
    for sort in sorts:
        plan += [Step(i, on) for on in ("planted", "real") for i in sort]
        by_group = [i for i in sort if _by_group(setting.attacks[i], setting.subject)]
        plan += [Step(i, "group", g) for i in by_group for g in range(len(setting.groups))]
    return plan


class TimeUp(BaseException):
    """The time of a battery is up; no error, so that no attack takes it for one of its own."""


def _one_by_one(setting: Setting, plan: Sequence[Step], until: float | None) -> Iterator[Done]:
    for step in plan:
        if until is not None and time.monotonic() >= until:
            return
        try:
            with alarm(until):
                done = carry_out(setting, step)
        except TimeUp:
            return
        yield done


@contextmanager
def alarm(until: float | None) -> Iterator[None]:
    """End what runs in here when the time is up: in the main thread, where the system has a timer for it."""
    here = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if until is None or not here or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def ring(*_: Any) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _in_processes(setting: Setting, plan: Sequence[Step], until: float | None, jobs: int) -> Iterator[Done]:
    """Steps in processes of their own, which are ended when the time is up."""
    from concurrent.futures import BrokenExecutor, as_completed
    from concurrent.futures import TimeoutError as LateError

    from joblib.externals.loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(max_workers=jobs, initializer=_remember, initargs=(setting,), env=ONE_THREAD)
    try:
        futures = {pool.submit(_remembered, step): step for step in plan}
        left = None if until is None else max(until - time.monotonic(), 0.0)
        try:
            for future in as_completed(futures, timeout=left):
                try:
                    done = future.result()
                except BrokenExecutor:  # with it all steps that were waiting are lost
                    done = Done(futures[future], "failed", 0.0, why=_ENDED)
                yield done
        except LateError:
            return
    finally:
        pool.shutdown(wait=False, kill_workers=True)


_SETTING: list[Setting] = []  # of the process that carries steps out


def _remember(setting: Setting) -> None:
    _SETTING[:] = [setting]


def _remembered(step: Step) -> Done:
    return carry_out(_SETTING[0], step)


def carry_out(setting: Setting, step: Step) -> Done:
    """One step; whatever it raises is told by its kind."""
    attack, start = setting.attacks[step.attack], time.perf_counter()
    try:
        people, strangers = setting.table, setting.subject.strangers
        if step.on == "planted":
            people, strangers = setting.some
            what = attack.planted(people, strangers)
        elif step.on == "group":
            part = setting.groups[step.group]
            what, people, strangers = part.released, part.members, part.strangers
        elif isinstance(attack, OracleAttack):
            what = setting.subject.oracle
            # Whoever looks for people in answers asks as those who get one.
            strangers = setting.asking if attack.criterion == "singling out" else strangers
        else:
            what = setting.subject.released
        result = attack.run(what, people, strangers)
    except UnansweredError as error:
        why = f"what is audited raised {_kind(error)} when it was asked"
        return Done(step, "failed", time.perf_counter() - start, why=why)
    except CountervailError as error:
        told = step.on == "planted" and isinstance(error, RefusedError)  # there is no leak that it could find
        outcome: Outcome = "cannot show anything" if told else "does not apply"
        return Done(step, outcome, time.perf_counter() - start, why=str(error))
    except Exception as error:  # noqa: BLE001 - one attack that fails must not end the others; its text may hold rows
        return Done(step, "failed", time.perf_counter() - start, why=f"it raised {type(error).__name__}")
    return Done(step, "run", time.perf_counter() - start, result)


def _kind(error: UnansweredError) -> str:
    return type(error.__cause__).__name__


def _finding(setting: Setting, i: int, ended: dict[Step, Done]) -> Finding:
    """What became of an attack."""
    attack = setting.attacks[i]
    empty = Finding(
        attack.label,
        attack.criterion,
        isinstance(attack, OracleAttack),
        registry.summary(type(attack)),
    )
    planted, real = ended.get(Step(i, "planted")), ended.get(Step(i, "real"))
    seconds = sum(d.seconds for s, d in ended.items() if s.attack == i)
    if idle := next((d for d in (planted, real) if d is not None and d.outcome == "does not apply"), None):
        return replace(empty, status="does not apply", why=idle.why, seconds=seconds)
    found = None if planted is None or planted.result is None else Counts.of(planted.result)
    if planted is not None and planted.outcome == "cannot show anything":
        return replace(empty, status="does not apply", why=planted.why, seconds=seconds)
    if failed := next((d for d in (planted, real) if d is not None and d.outcome == "failed"), None):
        return replace(empty, status="failed", why=failed.why, planted=found, seconds=seconds)
    if found is not None and found.n < _ENOUGH:
        why = f"even where everything is open it has {found.n} cases here, too few to be told from chance"
        return replace(empty, status="does not apply", why=why, planted=found, seconds=seconds)
    if planted is None or real is None or real.result is None:
        return replace(empty, why=TIME_UP, planted=found, seconds=seconds)
    groups = {
        setting.groups[s.group].name: Counts.of(d.result)
        for s, d in ended.items()
        if s.attack == i and s.on == "group" and d.result is not None
    }
    return replace(
        empty,
        status="run",
        why=_left_out(setting, i, ended),
        counts=Counts.of(real.result),
        baseline=real.result.baseline,
        planted=found,
        sets=SetSizes.of(real.result.set_sizes),
        detail={**detail_of(real.result), **group_details(groups)},
        remarks=real.result.remarks,
        curve=real.result.curve,
        worst=worst_group(groups),
        seconds=seconds,
    )


def _left_out(setting: Setting, i: int, ended: dict[Step, Done]) -> str:
    """Groups on which an attack was to be tried and was not: what it found is not said of them."""
    if not _by_group(setting.attacks[i], setting.subject):
        return ""
    ends = [ended.get(Step(i, "group", g)) for g in range(len(setting.groups))]
    late, failed = sum(d is None for d in ends), sum(d is not None and d.outcome == "failed" for d in ends)
    said = [f"{TIME_UP} for {late} of {len(ends)} groups"] * bool(late)
    return "; ".join(said + [f"it failed on {failed} of {len(ends)} groups"] * bool(failed))


def _some_of(table: Table) -> Table:
    if len(table) <= _PLANTED:
        return table
    return table.take(np.sort(generator(0).permutation(len(table))[:_PLANTED]))


def _things(subject: Subject) -> int:
    """How many answers or rows were released."""
    released = subject.released
    return int(released.found.sum()) if isinstance(released, Explanations) else len(released.groups)


def _can(kind: type[Any], subject: Subject) -> bool:
    released = subject.released
    things = _things(subject) if isinstance(released, Explanations) else len(released.regions)
    if registry.fact(kind, "for_small_tables") and (things > _SMALL or len(released.schema.features) > _NARROW):
        return False
    if not issubclass(kind, OracleAttack):
        return True
    if subject.oracle is None:
        return False
    return not kind.reruns or isinstance(subject.oracle, Invertible)
