"""countervail warm: everything that is compiled at its first use, compiled beforehand."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Annotated

import typer

from countervail.cli.shared.common import AsJson, progress, say, say_json
from countervail.core.errors import ParameterError, PrivacyWarning


def warm(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="What to compile for, as `--list` names it, or `demo`; without, everything."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one per processor.", show_default=False)] = None,
    listing: Annotated[bool, typer.Option("--list", help="Only list the names.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile everything once, on all processors: what is used for the first time later answers at once.

    What is compiled is kept in numba's cache folder and used by every later process on this machine.

    Example: `countervail warm`
    """
    from countervail.study.first_uses import DEMO, first_uses

    known = list(first_uses())
    wanted = [n for given in names or known for n in (DEMO if given == "demo" else (given,))]
    if unknown := [n for n in wanted if n not in known]:
        raise ParameterError(f"Nothing is called '{unknown[0]}'. What there is: {', '.join(known)}, and demo.")
    if jobs is not None and jobs < 1:
        raise ParameterError(f"--jobs must be at least 1. Got {jobs}.")
    if listing:
        if as_json:
            say_json(known)
        else:
            say("\n".join(known))
        return
    seconds = _compile(wanted, jobs or os.cpu_count() or 1, quiet=as_json)
    compiled = sum(seconds.values())
    if as_json:
        say_json({"compiled": compiled, "functions": seconds})
    elif compiled:
        say(f"{compiled} functions were compiled and are kept: later processes start at once.")
    else:
        say("Nothing had to be compiled.")


def _compile(names: list[str], jobs: int, *, quiet: bool) -> dict[str, int]:
    """How many functions each first use had to compile, in as many processes as may run at once."""
    out: dict[str, int] = {}
    # Fresh processes: a fork would share locks of the libraries that were loaded here.
    pool = ProcessPoolExecutor(min(jobs, len(names)), mp_context=get_context("spawn"))
    with pool, progress("Compiling", quiet=quiet) as tick:
        for done in as_completed([pool.submit(count_compiled, n) for n in names]):
            name, count = done.result()
            out[name] = count
            tick(len(out), len(names))
    return {n: out[n] for n in names}


def count_compiled(name: str) -> tuple[str, int]:
    """Use something once: its name, and how many functions had to be compiled for it."""
    from numba.core import event

    from countervail.study.first_uses import first_uses

    recorder = event.RecordingListener()
    with event.install_listener("numba:compile", recorder), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # nothing leaves
        first_uses()[name]()
    return name, sum(e.is_start for _, e in recorder.buffer)
