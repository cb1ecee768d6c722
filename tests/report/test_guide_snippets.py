"""The Python of the guide runs as it stands, pasted into one session."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
SHORT = ["budgets", "pattern-tables", "published-mechanisms", "tables"]  # the others take longer


def snippets(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_snippets_import_what_they_use_and_load_bundled_data(page):
    code = snippets(page)
    compile(code, page.name, "exec")
    assert ("import countervail as cv" in code) == ("cv." in code)
    assert set(re.findall(r'cv\.load\("(\w+)"\)', code)) <= {"german_credit", "iris"}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning")
def test_snippets_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(snippets(ROOT / "docs" / "guide" / f"{name}.md"), name, "exec"), {})
