"""Every proof that a promise names can be read, in a checkout and where the package is installed."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import countervail as cv
from countervail.core.errors import DataNotFoundError
from countervail.core.guarantee import AllOf, proofs

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(p.stem for p in (ROOT / "docs" / "decisions").glob("*.md") if p.stem != "README")
NAMED = sorted(
    {n for p in (ROOT / "src").rglob("*.py") for n in re.findall(r"docs/decisions/[\w-]+\.md", p.read_text("utf-8"))}
)


def promises():
    kinds = [getattr(cv, n) for n in cv.__all__]
    for kind in (k for k in kinds if hasattr(k, "guarantee") and hasattr(k, "examples")):
        for made in kind.examples():
            held = made.guarantee()
            yield from held.parts if isinstance(held, AllOf) else (held,)


def test_the_list_has_every_page_with_its_heading(run):
    code, out, _ = run("proof")
    assert code == 0
    assert all(name in out and proofs.proof_title(name) in out for name in PAGES)
    assert json.loads(run("proof", "--json")[1]) == {name: proofs.proof_title(name) for name in PAGES}


@pytest.mark.parametrize("name", NAMED)
def test_pages_that_the_code_names_are_shown(run, name):
    code, out, _ = run("proof", name)
    assert code == 0
    assert out == (ROOT / name).read_text(encoding="utf-8")


def test_pages_that_promises_print_are_shown(run):
    named = {p.proof for p in promises() if p.proof} | set(
        re.findall(r"docs/decisions/[\w-]+\.md", " ".join(map(str, promises())))
    )
    assert len(named) >= 5
    assert all(run("proof", name)[1].startswith("# ") for name in named)


def test_a_page_that_is_not_there_says_which_are(run):
    code, _, err = run("proof", "nothing")
    assert code == 2
    assert "dp-table" in err


def test_a_package_without_its_pages_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(proofs, "_PLACES", (tmp_path / "none",))
    with pytest.raises(DataNotFoundError, match="wheel or a checkout"):
        proofs.proof_names()


def test_the_wheel_is_told_to_take_the_pages():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert data["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]["docs/decisions"] == "countervail/proofs"


def test_an_installed_wheel_has_the_pages(tmp_path):
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(place)
    ask = (
        "from countervail.core.guarantee import proofs as p; "
        "print(p.__file__, *(n for n in p.proof_names() if p.proof_page(n)))"
    )
    found = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = subprocess.run(
        [sys.executable, "-c", ask],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(found)},
    )
    file, *names = told.stdout.split()
    assert Path(file).is_relative_to(place)
    assert names == PAGES
