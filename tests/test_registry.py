"""One export line puts a class into the command line, studies, contract tests and the tables of the docs."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import clone

import countervail as cv
from countervail import attack, explain, protect, registry
from countervail.cli.anonymize import FLAGS as ANONYMIZE_FLAGS
from countervail.cli.dit import FLAGS as DIT_FLAGS
from countervail.cli.explain import FLAGS as EXPLAIN_FLAGS
from countervail.core.errors import ParameterError
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.study import mechanisms, sound
from countervail.testing import contracts, small_table
from countervail.testing.documented import attack_table, filled, promise_table

KEEP = ("--keep", "income")

ROOT = Path(__file__).parents[1]
SHELLS = ("cli", "study", "measure")


class Coarse(cv.PrivateHistograms):
    """Counterfactuals of a new protector."""

    name = "coarse"
    variants = ({}, {"epsilon": 3.0})

    def __init__(self, epsilon=2.0, *, target="favourable", random_state=None, ledger=None):
        super().__init__(epsilon, records=50, target=target, random_state=random_state, ledger=ledger)

    @classmethod
    def examples(cls):
        return [cls()]


class Pairs(cv.Mondrian):
    """Tables of a new protector."""

    name = "pairs"
    variants = ({},)

    def __init__(self, k=2, *, random_state=None):
        super().__init__(k, random_state=random_state)

    @classmethod
    def examples(cls):
        return [cls()]


class Neighbourly(explain.NICE):
    """Counterfactuals of a new explainer."""

    name = "neighbourly"

    def __init__(self, target="other"):
        super().__init__(target=target)

    @classmethod
    def examples(cls):
        return [cls()]


class Hunch(attack.Homogeneity):
    """Guess as a new attack does."""

    name = "hunch"


@pytest.fixture
def added(monkeypatch):
    """What four export lines would do."""
    for package, kind in ((protect, Coarse), (protect, Pairs), (explain, Neighbourly), (attack, Hunch)):
        monkeypatch.setattr(package, kind.__name__, kind, raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("small")
    table = small_table(120)
    write_frame(table.frame, place / "people.csv")
    write_schema(table.schema, place / "people.toml")
    write_frame(small_table(6, seed=1).features, place / "asked.csv")
    return place


def given(folder):
    return (folder / "people.csv", "--schema", folder / "people.toml")


def test_what_is_there_is_found_by_name():
    plain = {"case-based": cv.CaseBased, "face": cv.FACE, "nearest": cv.NearestCounterfactual, "sedc": cv.SEDC}
    assert registry.explainers() == {**plain, "nice": cv.NICE}
    assert registry.explanation_protectors()["dp-table"] is cv.DPTableExplainer
    assert registry.table_protectors()["dp-table"] is cv.DPTable
    assert registry.published()["published-ldp"] is cv.published.LDP
    assert registry.attacks()["linkage"] is attack.Linkage


def test_new_classes_are_registered_and_public(added):
    assert registry.explanation_protectors()["coarse"] is Coarse is cv.Coarse
    assert registry.table_protectors()["pairs"] is Pairs is cv.Pairs
    assert registry.explainers()["neighbourly"] is Neighbourly is cv.Neighbourly
    assert registry.attacks()["hunch"] is Hunch is cv.attack.Hunch


def test_without_the_line_there_is_nothing():
    assert not hasattr(cv, "Coarse") and "coarse" not in registry.explanation_protectors()
    assert "coarse" not in mechanisms() and "pairs" not in promise_table()


@pytest.mark.parametrize("method", ["coarse", "neighbourly"])
def test_a_new_method_explains_on_the_command_line(added, run, folder, tmp_path, method):
    out = tmp_path / "answers.json"
    code, _, err = run("explain", *given(folder), "--rows", folder / "asked.csv", "--method", method, "-o", out)
    assert code == 0, err
    promise = json.loads(out.read_text(encoding="utf-8"))["guarantee"]
    assert promise["promise"] == ("DifferentialPrivacy" if method == "coarse" else "NoGuarantee")
    assert promise.get("epsilon", 2.0) == 2.0


def test_a_new_method_anonymises_sweeps_and_is_tested_on_the_command_line(added, run, folder, tmp_path):
    code, text, err = run("anonymize", *given(folder), *KEEP, "--method", "pairs", "--k", 3, "-o", tmp_path / "out.csv")
    assert code == 0 and "3-anonymity" in text, err
    code, text, err = run("anonymize", *given(folder), "--method", "pairs", "--sweep", "k=2,4", "--json")
    assert code == 0 and [p["k"] for p in json.loads(text)["points"]] == [2, 4], err
    code, text, err = run("dit", *given(folder), "--method", "pairs", "--k", 3, "--records", 2, "--json")
    assert code == 0 and list(json.loads(text)["tests"]) == ["k=3"], err


@pytest.mark.parametrize(("command", "name"), [("explain", "coarse"), ("anonymize", "pairs"), ("dit", "pairs")])
def test_the_help_lists_a_new_method(added, run, command, name):
    code, text, _ = run(command, "--help")
    assert code == 0 and f"• {name}:" in text and "of a new protector" in " ".join(text.split())


def test_a_new_mechanism_is_studied_and_recommended(added, run, folder):
    assert {"coarse", "neighbourly"} <= set(mechanisms()) and "coarse" in sound() and "neighbourly" not in sound()
    assert not mechanisms()["coarse"].draws_each and not mechanisms()["coarse"].takes("neighbours")
    few = ("--people", 4, "--runs", 1, "--seeds", 1, "--audit-draws", 0)
    code, text, err = run("recommend", *given(folder), "--epsilon", 0.5, *few, "--json")
    rows = {r["mechanism"]: r for r in json.loads(text)["rows"]}
    assert code == 0 and rows["coarse"]["proven"] and rows["coarse"]["epsilon"] == 0.5, err


def test_new_classes_have_contracts(added):
    new = [c for c in contracts() if type(c.subject) in (Coarse, Pairs, Neighbourly, Hunch)]
    for contract in new:
        contract.check(clone(contract.subject))
    found = {(type(c.subject), c.check.__name__) for c in new}
    assert (Coarse, "check_a_kept_draw_answers_alike") in found
    assert (Pairs, "check_every_row_leaves_once") in found
    assert (Neighbourly, "check_batch_equals_single") in found
    assert (Hunch, "check_finds_the_leak_planted_for_it") in found


def test_new_classes_are_in_the_tables_of_the_docs(added):
    text = promise_table()
    assert "`cv.Coarse()`" in text and "`cv.Coarse(epsilon=3.0)`" in text and "epsilon = 3 for all answers" in text
    assert "`cv.Pairs()` | 2-anonymity" in text and "`cv.Neighbourly()`" in text
    assert "| `hunch` | `cv.attack.Hunch` | what was released | Guess as a new attack does. |" in attack_table()


def test_the_tables_of_the_readme_are_up_to_date():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<!-- table:promises -->" in text and "<!-- table:attacks -->" in text
    assert filled(text) == text, "run benchmarks/docs/tables.py"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "--method", "nice", "--k", 5), "--method nice does not take --k (that is for cfk)."),
        (("explain", "--epsilon", 1), "--method cfk does not take --epsilon (that is for private-histograms, "),
        (("explain", "--method", "dp-table", "--reward", "none"), "does not take --reward (that is for nice, cfk, "),
        (("explain", "--method", "noisy-counterfactual", "--neighbours", 3), "does not take --neighbours (that is"),
        (("explain", "--method", "magic"), "--method must be one of case-based, face, nearest, nice, sedc, cfk, "),
        (("anonymize", "-o", "o.csv", "--epsilon", 1), "--method mondrian does not take --epsilon (that is for dp-"),
        (("anonymize", "-o", "o.csv", "--method", "k-common", "--by-class"), "does not take --by-class (that is for m"),
        (("anonymize", "-o", "o.csv", "--method", "dp-table", "--report", "p.html"), "does not take --report (that is"),
        (("anonymize", "--method", "k-common", "--sweep", "k=2,3"), "does not take --sweep (that is for microag"),
        (
            ("anonymize", "-o", "o.csv", "--method", "dp-table", "--k", 3, "--l", 2),
            "--k (that is for microaggregation, ",
        ),
        (
            ("dit", "--method", "magic"),
            "--method must be one of dp-table, microaggregation, mondrian, k-common, published-basic-",
        ),
    ],
    ids=lambda v: " ".join(map(str, v)) if isinstance(v, tuple) else "",
)
def test_a_flag_that_a_method_does_not_take_is_refused(run, folder, monkeypatch, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(words[0], *given(folder), *words[1:])
    assert code == 2 and message in err and len(err.splitlines()) == 1 and not out
    assert not list(tmp_path.iterdir())


def test_a_noisy_table_is_written_from_the_command_line(run, folder, tmp_path):
    words = ("anonymize", *given(folder), "--method", "dp-table", "--epsilon", 2, "-o", tmp_path / "noisy.csv")
    code, text, err = run(*words)
    assert code == 0 and "120 noisy rows written" in text and "epsilon = 2" in text, err
    assert json.loads(run(*words, "--json")[1])["noisy_rows"] == 120


def test_every_flag_is_taken_by_some_method():
    explaining = {**registry.explainers(), **registry.explanation_protectors()}
    assert all(registry.takers(explaining, flag) for flag in EXPLAIN_FLAGS)
    assert all(registry.takers(registry.table_protectors(), flag) for flag in (*ANONYMIZE_FLAGS, *DIT_FLAGS))


def test_every_class_says_what_it_does_and_needs_no_argument():
    every = [*registry.explainers().values(), *registry.explanation_protectors().values()]
    every += [*registry.table_protectors().values(), *registry.published().values(), *registry.attacks().values()]
    assert all(registry.summary(kind).endswith(".") for kind in every)
    assert all(kind().get_params() is not None for kind in every)


def test_two_classes_of_one_name_are_refused(monkeypatch):
    monkeypatch.setattr(attack, "Other", type("Other", (attack.Linkage,), {}), raising=False)
    with pytest.raises(ParameterError, match="'name' parameter of Other must be a name that no other class"):
        registry.attacks()


def test_a_class_without_a_name_is_refused(monkeypatch):
    monkeypatch.setattr(attack, "Nameless", type("Nameless", (attack.Linkage,), {"name": None}), raising=False)
    with pytest.raises(ParameterError, match="'name' parameter of Nameless must be a short text"):
        registry.attacks()


def test_a_class_that_is_exported_twice_is_one_class(monkeypatch):
    monkeypatch.setattr(attack, "Link", attack.Linkage, raising=False)
    assert registry.attacks()["linkage"] is attack.Linkage


def test_the_command_line_starts_without_what_it_may_run():
    code = "import sys, countervail.cli, countervail.registry; print({'numba', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_classes_of_the_shells_have_names_of_their_own():
    places = {}
    for path in sorted((ROOT / "src" / "countervail").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.relative_to(ROOT / "src" / "countervail").parts[0])
    assert not {name: where for name, where in places.items() if len(where) > 1 and set(where) & set(SHELLS)}
