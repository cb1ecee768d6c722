"""No page of any command shows a value that few people hold, unless the release itself shows it."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.core.schema import Column, Schema

FLOOR = 10
ROWS = 160


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """People with values of their own in every column: numbers, dates, codes, labels; and others."""
    folder = tmp_path_factory.mktemp("rare")
    rng = np.random.default_rng(0)

    def people(first):
        at = np.arange(first, first + ROWS)
        return pd.DataFrame(
            {
                "years": 10_007 + 37 * at,
                "born": [f"19{40 + i % 60}-{1 + i % 12:02}-{1 + (7 * i) % 28:02}" for i in at],
                "place": [f"Xq{i}town" if i % 4 == 0 else ("Ghent", "Bruges", "Liege")[i % 3] for i in at],
                "pay": 1_000_003 + 61 * at,
                "illness": [f"Zw{i}itis" if i % 5 == 0 else ("flu", "cold")[i % 2] for i in at],
                "group": rng.choice(["a", "b"], ROWS),
                "ok": rng.choice(["no", "yes"], ROWS),
            }
        )

    columns = (
        Column("years", "numeric", "quasi", domain=(10_000, 30_000)),
        Column("born", "date", "quasi", order="ymd"),
        Column("place", role="quasi"),
        Column("pay", "numeric"),
        Column("illness", role="sensitive"),
        Column("group"),
        Column("ok", role="target"),
    )
    write_schema(Schema(columns, ("yes",)), folder / "s.toml")
    members, others = people(0), people(ROWS)
    known = {n: tuple(sorted({*members[n], *others[n]})) for n in ("place", "illness", "group")}
    known |= {"pay": (10**6, 2 * 10**6), "born": ("1900-01-01", "2020-01-01")}
    declared = tuple(replace(c, domain=known.get(c.name, c.domain)) for c in columns)
    write_schema(Schema(declared, ("yes",)), folder / "g.toml")
    write_frame(members, folder / "d.csv")
    write_frame(others, folder / "c.csv")
    return folder, pd.concat([members, others], ignore_index=True)


DATA = ("d.csv", "-s", "s.toml")
RELEASE = ("--k", "5", "--keep", "pay", "-o", "p2.csv", "--report", "page.html")
MOVED = ("--method", "microaggregation", "--keep", "born", "--keep", "place")
OTHERS = ("--against", "d.csv", "--control", "c.csv")
PAGES = {
    "risk": ("risk", *DATA, "-o", "page.html"),
    "check": ("check", "p.csv", "-s", "s.toml", "--k", "5", "-o", "page.html"),
    "anonymize": ("anonymize", *DATA, *RELEASE),
    "hierarchy": ("anonymize", *DATA, *RELEASE, "--labels", "hierarchy"),
    "microaggregation": ("anonymize", "d.csv", "-s", "m.toml", *RELEASE, *MOVED),
    "sweep": ("anonymize", *DATA, "--sweep", "k=2,5", "--report", "page.html"),
    "dit": ("dit", *DATA, "--k", "5", "--records", "5", "--sensitive", "illness", "-o", "page.html"),
    "audit": ("audit", "p.csv", "-s", "s.toml", *OTHERS, "--jobs", "1", "--by", "group", "-o", "page.html"),
    "recommend": (
        *("recommend", "d.csv", "-s", "g.toml", "--people", "2", "--runs", "1", "--seeds", "1", "--neighbours", "3"),
        *("--audit-draws", "0", "-o", "page.html"),
    ),
    "audit of answers": ("audit", "a.json", "-s", "s.toml", *OTHERS, "--jobs", "1", "--by", "group", "-o", "page.html"),
    "compare": ("compare", *DATA, "--answers", "10", "-o", "page.html"),
}


def rare(frame):
    """Texts of values that fewer than ten people hold, long enough not to stand in a page by chance."""
    texts = set()
    for name in frame.columns:
        counts = frame[name].value_counts()
        texts |= {str(v) for v in counts.index[counts < FLOOR] if len(str(v)) >= 5}
    return texts


def prepare(run, folder, monkeypatch):
    """The release and the answers that some of the commands look at."""
    monkeypatch.chdir(folder)
    if not (folder / "p.csv").exists():
        assert run("anonymize", *DATA, "--k", "5", "--keep", "pay", "-o", "p.csv")[0] == 0
        text = (folder / "s.toml").read_text(encoding="utf-8")
        numeric = re.sub(r'(\[columns\.(?:born|place)\]\n(?:type = "\w+"\n)?role = )"quasi"', r'\1"attribute"', text)
        (folder / "m.toml").write_text(numeric, encoding="utf-8")
        assert run("explain", *DATA, "--k", "5", "-o", "a.json")[0] == 0


@pytest.mark.parametrize("name", PAGES)
def test_no_page_shows_a_value_that_few_people_hold(run, files, monkeypatch, name):
    folder, everybody = files
    prepare(run, folder, monkeypatch)
    (folder / "page.html").unlink(missing_ok=True)
    code, _, errors = run(*PAGES[name])
    assert code in (0, 1) and (folder / "page.html").exists(), errors
    page = (folder / "page.html").read_text(encoding="utf-8")
    shown = tokens(re.sub(r'\b(?:d|points|x|y|id)="[^"]*"', "", page))  # what is drawn is no text
    assert sorted((rare(everybody) & shown) - released(folder, name)) == []


def released(folder, name):
    """What leaves anyway: the cells of the release, and the ends of its ranges."""
    csv = (folder / "p2.csv").read_text(encoding="utf-8") if "p2.csv" in PAGES[name] else ""
    return tokens(csv) | set(re.findall(r"\w+", csv))


@pytest.mark.parametrize("name", PAGES)
def test_no_json_shows_a_value_that_few_people_hold(run, files, monkeypatch, name):
    folder, everybody = files
    prepare(run, folder, monkeypatch)
    code, out, errors = run(*PAGES[name], "--json")
    assert code in (0, 1), errors
    json.loads(out)
    assert sorted((rare(everybody) & (tokens(out) | tokens(errors))) - released(folder, name)) == []


ATTACKS = ("linkage", "singling-out", "membership", "reidentification", "attribute-inference", "linkability")
PRINTED = {
    **{f"{name} of a table": ("attack", name, "p.csv", "-s", "s.toml", *OTHERS) for name in ATTACKS},
    **{f"{name} of answers": ("attack", name, "a.json", "-s", "s.toml", *OTHERS) for name in ATTACKS[:3]},
    "check of answers": ("check", "a.json", "-s", "s.toml", "--against", "d.csv", "--k", "5"),
    "holdout": ("holdout", *DATA, "--members", "in.csv", "--control", "out.csv"),
    **{name: words for name, words in PAGES.items() if name in ("risk", "check", "dit", "compare")},
}


@pytest.mark.parametrize("name", PRINTED)
def test_nothing_that_is_printed_shows_a_value_that_few_people_hold(run, files, monkeypatch, name):
    """What is printed as text or as JSON where there is no page, and for people beside pages."""
    folder, everybody = files
    prepare(run, folder, monkeypatch)
    printed = [
        (code, out + errors) for words in ((), ("--json",)) for code, out, errors in [run(*PRINTED[name], *words)]
    ]
    for code, text in printed:
        assert code in (0, 1, 2) and text, text
        assert sorted(rare(everybody) & tokens(text)) == []
    assert name == "linkability of a table" or printed[0][0] != 2, printed[0][1]


def test_a_page_of_a_budget_shows_no_value_at_all(run, files, monkeypatch):
    folder, everybody = files
    prepare(run, folder, monkeypatch)
    (folder / "b.ledger").unlink(missing_ok=True)
    assert run("ledger", "create", "b.ledger", "--dataset", "people", "--epsilon", "4")[0] == 0
    counted = ("--ledger", "b.ledger", "--dataset", "people")
    assert run("anonymize", *DATA, "--k", "5", "--keep", "pay", "-o", "counted.csv", *counted)[0] == 0
    _, out, errors = run("ledger", "history", "b.ledger", "-o", "page.html", "--json")
    _, shown, _ = run("ledger", "show", "b.ledger")
    for text in (out, errors, shown, (folder / "page.html").read_text(encoding="utf-8")):
        assert sorted(rare(everybody) & tokens(text)) == []


def tokens(text):
    """The words of a text, and its numbers without marks between thousands."""
    plain = html.unescape(text)
    return {w for text in (plain, re.sub(r"(?<=\d),(?=\d)", "", plain)) for w in re.findall(r"[\w-]+", text)}


def test_pages_of_explanations_show_nothing_of_others_beyond_the_answers(run, files, monkeypatch):
    """Askers see their own values and those of their answers; no picture, table or schema shows anybody else's."""
    folder, everybody = files
    monkeypatch.chdir(folder)
    members, askers = everybody.iloc[:ROWS], everybody.iloc[ROWS : ROWS + 30]
    write_frame(askers, folder / "q.csv")
    asked = ("explain", *DATA, "--k", "10", "--rows", "q.csv")
    assert run(*asked, "-o", "e.json")[0] == run(*asked, "-o", "e.html")[0] == 0
    code, printed, errors = run(*asked)
    assert code == 0
    answers = json.loads((folder / "e.json").read_text(encoding="utf-8"))
    held = tokens(json.dumps(answers["counterfactuals"])) | set(askers.astype(str).to_numpy().ravel())
    page = re.sub(r'\b(?:d|points|x|y|id)="[^"]*"', "", (folder / "e.html").read_text(encoding="utf-8"))
    assert answers["status"] and rare(members) & tokens(json.dumps(answers["counterfactuals"]))
    for text in (page, json.dumps(answers), printed, errors):
        assert sorted((rare(members) & tokens(text)) - held) == []


@pytest.mark.parametrize("ending", ["csv", "txt", "json", "html", ""])
def test_rules_show_no_value_that_few_people_hold(run, files, monkeypatch, ending):
    """Not in a file, on a page, on the terminal or in what is printed as JSON, whatever k is."""
    folder, everybody = files
    monkeypatch.chdir(folder)
    words = ("-o", f"r.{ending}") if ending else ()
    for k in (2, 3):
        code, out, errors = run("rules", *DATA, "--k", k, *words)
        printed = run("rules", *DATA, "--k", k, "--json")[1]
        told = (folder / f"r.{ending}").read_text(encoding="utf-8") if ending else out
        assert code == 0 and re.search(r"(?:pay|years|born) is ", told) and json.loads(printed)["rules"]
        for text in (told, out, errors, printed):
            plain = re.sub(r'\b(?:d|points|x|y|id)="[^"]*"', "", text)
            assert sorted(rare(everybody.iloc[:ROWS]) & tokens(plain)) == []


def test_rules_for_the_owners_eyes_say_so(run, files, monkeypatch):
    folder, everybody = files
    monkeypatch.chdir(folder)
    code, out, errors = run("rules", *DATA, "--k", 3, "--exact-bounds")
    assert code == 0 and rare(everybody) & tokens(out) and "do not hand them out" in errors


def test_a_day_that_many_share_is_on_no_page_where_the_release_says_years(run, tmp_path):
    # Forty people gave the first of January for want of a better date: a picture of that one day would mislead, too.
    born = ["1970-01-01"] * 40 + [f"19{50 + i % 40}-{1 + i % 12:02}-{2 + i % 26:02}" for i in range(160)]
    frame = pd.DataFrame({"born": born, "group": ["a", "b"] * 100})
    write_frame(frame, tmp_path / "d.csv")
    write_schema(Schema((Column("born", "date", "quasi", order="ymd"), Column("group"))), tmp_path / "s.toml")
    asked = ("anonymize", tmp_path / "d.csv", "-s", tmp_path / "s.toml", "--k", 30, "--labels", "hierarchy")
    code, _, errors = run(*asked, "-o", tmp_path / "p.csv", "--report", tmp_path / "page.html")
    assert code == 0, errors
    published = set(pd.read_csv(tmp_path / "p.csv", dtype=str)["born"]) - {"1970-01-01"}
    assert published and not [text for text in published if len(text) > 7]  # months at most, but for that day
    page = (tmp_path / "page.html").read_text(encoding="utf-8").split("<h2>born")[1].split("<h2>")[0]
    assert "<svg" not in page and "Published as" in page and all(f"{text} (" in page for text in published)


def test_the_page_says_options_in_words(run, files, monkeypatch):
    folder, _ = files
    prepare(run, folder, monkeypatch)
    code, _, errors = run(*PAGES["anonymize"])
    assert code == 0, errors
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert re.search(r"<td>by class</td>\s*<td>no</td>", page) and "by_class" not in page and "False" not in page
