"""Two worlds with the draw fixed, on the command line: what is printed and written does not tell them apart."""

import numpy as np
import pytest

from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.core.rng import generator
from countervail.model import load_model, save_model, train_forest
from countervail.protect.dp import histograms
from countervail.protect.dp.randomiser import Randomiser
from countervail.protect.dp.synthetic.accounting import NoiseBudget
from countervail.registry import explanation_protectors, takers
from countervail.testing import small_table

PRIVATE = takers(explanation_protectors(), "epsilon")
N = 60
TABLE = small_table(N)


def alike(frame):
    """One person, as often."""
    return frame.iloc[[0] * N].assign(id=frame["id"].to_numpy())


def holes(frame):
    """Missing values of every kind, and one fraction among whole numbers."""
    made = frame.astype({"age": float, "level": object}).reset_index(drop=True)
    made.loc[0, "age"], made.loc[1, "income"], made.loc[2, "age"] = 41.5, np.nan, np.nan
    made.loc[3, ["city", "ill", "level", "ok"]] = None
    return made


def refused(frame):
    """Nobody but one has what is hoped for."""
    return frame.assign(income=1.0, ok=["yes"] + ["no"] * (N - 1))


WORLDS = {"alike": alike, "holes": holes, "refused": refused, "others": lambda frame: small_table(N, seed=8).frame}


def unseen_draw(self, codes, words):
    """Positions that follow from the shape alone."""
    rng = generator(3)
    return np.column_stack([rng.integers(0, m, codes[..., 0].size) for m in self.sizes]).reshape(codes.shape)


def unseen_counts(exact):
    """Counts that follow from the shape alone."""
    shape = np.shape(exact)
    return np.full(shape, 5_000) if np.size(exact) == 1 else generator(3).integers(0, 3_000, shape)


@pytest.fixture
def fixed(monkeypatch):
    """No noise looks at a record, and what is chosen without looking is the same in all worlds."""
    monkeypatch.setattr(Randomiser, "draw", unseen_draw)
    monkeypatch.setattr(histograms, "noisy_counts", lambda counts, *rest: unseen_counts(counts))
    monkeypatch.setattr(NoiseBudget, "_drawn", lambda self, exact, far, budget: unseen_counts(exact))
    monkeypatch.setattr(NoiseBudget, "choose", lambda self, scores, budget: 0)
    monkeypatch.setattr("countervail.core.rng.secrets.randbits", lambda bits: 7)
    monkeypatch.setattr("countervail.core.rng.os.urandom", lambda n: generator(5).bytes(n))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("worlds")
    write_schema(TABLE.schema, place / "people.toml")
    for ending in (".csv", ".parquet"):
        write_frame(small_table(6, seed=1).features.assign(number=list("uvwxyz")), place / f"asked{ending}")
    save_model(train_forest(small_table(300, seed=2)), place / "model.skops")
    write_frame(TABLE.frame, place / "people.csv")
    for name, other in WORLDS.items():
        write_frame(other(TABLE.frame), place / f"{name}.csv")
    return place


def content(path):
    """What a file says; that of a model also has times and places in memory."""
    return repr(vars(load_model(path))) if path.suffix == ".skops" else path.read_bytes()


def told(run, folder, out, name, *words):
    """All that a run prints and writes."""
    files = [w for ending in (".json", ".txt", ".html", ".csv", ".parquet") for w in ("-o", out / f"answers{ending}")]
    files += ["--changes", out / "changes.csv", "--letters", out / "letters", "--id", "number"]
    out.mkdir()
    asked = ("--schema", folder / "people.toml", "--rows", folder / "asked.csv", "--epsilon", 1)
    printed = run("explain", folder / f"{name}.csv", *asked, *words, *files)
    written = {p.relative_to(out): content(p) for p in sorted(out.rglob("*")) if p.is_file()}
    return [str(part).replace(str(out), "") for part in printed], written


@pytest.mark.parametrize("method", PRIVATE)
def test_nothing_that_is_printed_or_written_depends_on_the_table(run, folder, tmp_path, fixed, method):
    words = ("--method", method, "--model", folder / "model.skops")
    first = told(run, folder, tmp_path / "first", "people", *words)
    assert first[0][0] == "0" and len(first[1]) == 12
    for name in WORLDS:
        assert told(run, folder, tmp_path / name, name, *words) == first, name


def test_a_private_model_tells_no_more_than_its_draw(run, folder, tmp_path, fixed):
    words = ("--method", "private-synthetic", "--model-epsilon", 1)
    first = told(run, folder, tmp_path / "first", "people", *words, "--save", tmp_path / "first" / "kept.json")
    assert first[0][0] == "0"
    for name in WORLDS:
        save = ("--save", tmp_path / name / "kept.json")
        assert told(run, folder, tmp_path / name, name, *words, *save) == first, name


@pytest.mark.parametrize("method", ["private-synthetic", "private-histograms"])
def test_answers_to_very_many_tell_no_more(run, folder, tmp_path, fixed, method):
    words = ("--schema", folder / "people.toml", "--rows", folder / "asked.parquet", "--id", "number", "--epsilon", 1)
    words += ("--method", method, "--model", folder / "model.skops", "--engine", "memory", "--threads", 1)
    seen = {}
    for name in ("people", *WORLDS):
        out = tmp_path / name
        printed = run("explain", folder / f"{name}.csv", *words, "-o", out)
        assert printed[0] == 0
        written = {p.relative_to(out): content(p) for p in sorted(out.rglob("*")) if p.is_file()}
        seen[name] = [str(part).replace(str(out), "") for part in printed], written
    assert seen["people"][1] and all(s == seen["people"] for s in seen.values())


@pytest.mark.parametrize(
    "bad", [("--immutable", "nobody"), ("--missing", "nobody"), ("--epsilon", "0"), ("--delta", "2")]
)
def test_errors_are_the_same_whatever_the_table_holds(run, folder, fixed, bad):
    asked = ("--schema", folder / "people.toml", "--rows", folder / "asked.csv", "--id", "number", *bad)
    asked += ("--method", "private-synthetic", "--model", folder / "model.skops")
    said = {name: run("explain", folder / f"{name}.csv", *asked) for name in ("people", *WORLDS)}
    assert said["people"][0] == 2 and all(s == said["people"] for s in said.values())
