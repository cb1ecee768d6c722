"""The Python of the guide runs as it stands, pasted into one session."""

import re
from pathlib import Path

import pytest

from countervail import attack, explain, protect
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_table

KEEP = ("--keep", "income")

ROOT = Path(__file__).parents[2]
EXTENDING = ROOT / "docs" / "extending.md"
PAGES = [ROOT / "README.md", EXTENDING, *sorted((ROOT / "docs" / "guide").glob("*.md"))]
# The others take longer.
SHORT = ["budgets", "explaining", "pattern-tables", "phrases", "published-mechanisms", "tables"]


def snippets(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_snippets_import_what_they_use_and_load_bundled_data(page):
    code = snippets(page)
    compile(code, page.name, "exec")
    assert ("import countervail as cv" in code) == ("cv." in code)
    loaded = re.findall(r'cv\.load\("(\w+)"(, actionable=True)?\)', code)
    assert len(loaded) == code.count("cv.load(")
    assert {name for name, _ in loaded} <= {"german_credit", "iris", "toy_credit"}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning")
def test_snippets_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(snippets(ROOT / "docs" / "guide" / f"{name}.md"), name, "exec"), {})


@pytest.fixture
def exports():
    """Packages without what a test exports from them."""
    before = {package: set(vars(package)) for package in (attack, explain, protect)}
    yield
    for package, names in before.items():
        for name in set(vars(package)) - names:
            delattr(package, name)


def test_classes_of_the_page_on_extending_keep_their_contracts_and_run_on_the_command_line(exports, run, tmp_path):
    exec(compile(snippets(EXTENDING), EXTENDING.name, "exec"), {})
    assert {"Bands", "PublicDraw"} <= set(vars(protect)) and "Typical" in vars(explain) and "Plurality" in vars(attack)
    table = small_table()
    write_frame(table.frame, tmp_path / "people.csv")
    write_schema(table.schema, tmp_path / "people.toml")
    write_frame(small_table(5, seed=1).features, tmp_path / "asked.csv")
    given = (tmp_path / "people.csv", "--schema", tmp_path / "people.toml")
    code, out, err = run("anonymize", *given, *KEEP, "--method", "bands", "--k", 7, "-o", tmp_path / "public.csv")
    assert code == 0 and "7-anonymity" in out, err
    code, _, err = run("anonymize", *given, "--method", "bands", "--l", 2, "-o", tmp_path / "public.csv")
    assert code == 2 and "--method bands does not take --l (that is for mondrian)" in err
    for method in ("public-draw", "typical"):
        code, out, err = run("explain", *given, "--rows", tmp_path / "asked.csv", "--method", method)
        assert code == 0 and "the decision would be yes" in out, err
