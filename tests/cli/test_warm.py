"""countervail warm, and what is said while something is compiled."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numba import njit
from typer.testing import CliRunner

from countervail import cli
from countervail.cli.warm import count_compiled
from countervail.core import _kernels, compiling
from countervail.core.errors import ParameterError
from countervail.study.first_uses import DEMO, first_uses

# Kernels that Python calls, by first use, at most: each is compiled for one kind of arguments, with what it calls.
BOUNDS = {"mondrian": 2, "cfk": 10, "k-common": 3, "lers": 3, "nice": 1}
NICE = 10  # functions, numba's own among them
_COUNT = """
import json, sys
from countervail.cli.warm import count_compiled
print(json.dumps(count_compiled(sys.argv[1])[1]))
"""
_LOADED = """
import json, sys
from numba.core.dispatcher import Dispatcher
from countervail.cli.warm import count_compiled
from countervail.study.first_uses import first_uses
first_uses()
found = {}
for name in sys.argv[1:]:
    count_compiled(name)
    modules = [m for n, m in list(sys.modules.items()) if n.startswith("countervail")]
    kernels = {id(k): k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
    seen = {f"{k.__module__}.{k.__name__}": len(k.signatures) for k in kernels.values() if k.signatures}
    found[name] = seen
print(json.dumps(found))
"""


def run(code, *words, cache):
    """A fresh interpreter with a cache folder of its own."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.Popen([sys.executable, "-c", code, *words], env=env, stdout=subprocess.PIPE, text=True)


def test_every_export_has_a_first_use_and_the_demo_names_some():
    known = first_uses()
    assert set(DEMO) <= set(known)
    assert {"nice", "cfk", "mondrian", "k-common", "dp-table", "attack-linkage", "dit-mondrian", "lers"} <= set(known)


def test_names_are_listed_and_unknown_ones_refused():
    listed = CliRunner().invoke(cli.app, ["warm", "--list", "--json"])
    assert json.loads(listed.stdout) == list(first_uses())
    asked = CliRunner().invoke(cli.app, ["warm", "lukewarm"])
    assert isinstance(asked.exception, ParameterError)
    assert "lukewarm" in str(asked.exception)
    assert "mondrian" in str(asked.exception)
    few = CliRunner().invoke(cli.app, ["warm", "nice", "--jobs", "0"])
    assert "--jobs" in str(few.exception)


def test_the_second_time_nothing_is_compiled():
    first = CliRunner().invoke(cli.app, ["warm", "nice", "--jobs", "1", "--json"])
    assert first.exit_code == 0, first.exception
    second = CliRunner().invoke(cli.app, ["warm", "nice", "--jobs", "1"])
    assert "Nothing had to be compiled" in second.stdout


def test_a_nearest_neighbour_compiles_few_functions(tmp_path):
    with run(_COUNT, "nice", cache=tmp_path) as process:
        assert 0 < int(process.stdout.read()) <= NICE


@pytest.mark.parametrize("name", BOUNDS)
def test_a_first_use_takes_few_kernels_and_one_signature_of_each(name):
    count_compiled(name)  # from here on they are only loaded, if they were not before
    with run(_LOADED, name, cache=os.environ.get("NUMBA_CACHE_DIR", "")) as process:
        loaded = json.loads(process.stdout.read())[name]
    assert set(loaded.values()) == {1}
    assert len(loaded) <= BOUNDS[name], sorted(loaded)


def test_two_processes_that_compile_at_once_both_succeed(tmp_path):
    code = (
        "import numpy as np\n"
        "from countervail.protect.mondrian.labels import by_cell\n"
        "print(by_cell(np.array([1, 0, 1], np.int32), 2)[1].tolist())\n"
    )
    both = [run(code, cache=tmp_path) for _ in range(2)]
    assert [p.communicate()[0].strip() for p in both] == ["[1, 0, 2]"] * 2
    assert [p.returncode for p in both] == [0, 0]
    assert list(tmp_path.rglob("*by_cell*.nbi"))


def test_the_first_compilation_is_told_once():
    told = []
    compiling.when_compiling(lambda: told.append(True))
    for add in (1, 2):
        assert njit(_plus(add))(np.ones(2))[0] == 1 + add  # kept nowhere, so compiled each time
    assert told == [True]


def _plus(more):
    def plus(x):
        return x + more

    return plus


def test_a_command_says_that_it_compiles_unless_a_program_reads_it(monkeypatch):
    asked = []
    monkeypatch.setattr(cli, "app", lambda: None)
    monkeypatch.setattr(compiling, "when_compiling", asked.append)
    for words in (["rules", "x.csv"], ["rules", "x.csv", "--json"], ["warm"]):
        monkeypatch.setattr(sys, "argv", ["countervail", *words])
        cli.main()
    assert len(asked) == 1
    said = []
    monkeypatch.setattr(cli, "remark", said.append)
    asked[0]()
    assert "countervail warm" in said[0]


def test_without_a_folder_to_write_to_everything_works_and_it_is_said_once(monkeypatch):
    compile_ = _kernels.njit

    def read_only(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available for file")
        return compile_(**options)

    monkeypatch.setattr(_kernels, "njit", read_only)
    monkeypatch.setattr(compiling, "_kept", [])
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        first = _kernels.kernel(_plus(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = _kernels.inner(_plus(4))
    assert first(np.ones(1))[0] == 4
    assert second is not None


@pytest.mark.parametrize("name", ["mondrian", "k-common"])
def test_what_is_compiled_already_is_not_compiled_again(name):
    count_compiled(name)
    assert count_compiled(name) == (name, 0)
