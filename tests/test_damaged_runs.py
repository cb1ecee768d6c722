"""Files that a stopped run is taken up from: whatever is wrong with one is said in one line, or the run goes on."""

import json
import random

import numpy as np
import pytest

from countervail.attack.differential.checkpoint import Checkpoint, Progressed
from countervail.core.errors import CountervailError, ParameterError, SchemaError
from countervail.study.plan import Cell
from countervail.study.result import FIGURES, CellResult, Moments
from countervail.study.store import CellFolder
from test_damaged_json import damaged

PEOPLE, REPEATS = 6, 2


def checkpoint(path):
    return Checkpoint(path, "a digest", "DifferentialInferenceTest")


@pytest.fixture
def resumed(tmp_path):
    """The file of a run of six people, of whom four are done; one figure is not finite."""
    found = np.random.default_rng(0).random((PEOPLE, 3, REPEATS))
    found[1, 0, 0] = np.inf
    file = checkpoint(tmp_path / "run.json")
    file.save(Progressed(found, np.array([True, True, False, True, True, False])))
    return file


def test_a_whole_file_is_taken_up(resumed):
    again = resumed.load(PEOPLE, REPEATS)
    assert again.done.tolist() == [True, True, False, True, True, False]
    assert np.isnan(again.found[[2, 5]]).all() and np.isinf(again.found[1, 0, 0])


def test_a_run_that_found_nothing_yet_is_taken_up(tmp_path):
    file = checkpoint(tmp_path / "run.json")
    file.save(Progressed(np.full((PEOPLE, 3, REPEATS), np.nan), np.zeros(PEOPLE, bool)))
    assert not file.load(PEOPLE, REPEATS).done.any()


def test_a_damaged_file_of_a_stopped_run_is_one_line(resumed, seeds):
    whole, refused = resumed.path.read_text(), 0
    for seed in seeds(400, 50_000):
        rng = random.Random(seed)
        text = damaged(whole, rng) if rng.random() < 0.9 else whole[: rng.randrange(len(whole) - 1)]
        resumed.path.write_text(text)
        try:
            again = resumed.load(PEOPLE, REPEATS)
        except ParameterError as error:
            refused += 1
            assert "'checkpoint' parameter" in str(error) and "\n" not in str(error) and len(str(error)) < 400
            continue
        assert again.found.shape == (PEOPLE, 3, REPEATS) and again.done.dtype == bool
    assert refused > 250


@pytest.mark.parametrize(
    "change",
    [
        {"found": None},
        {"found": []},
        {"found": [[["0.5"] * REPEATS] * 3] * 4},
        {"found": [[[0.5] * REPEATS] * 3] * 5},
        {"found": [[[0.5] * 3] * REPEATS] * 4},
        {"found": [[[True] * REPEATS] * 3] * 4},
        {"found": [[[10**400] * REPEATS] * 3] * 4},
        {"found": [0.5] * 4 * 3 * REPEATS},
        {"done": [True] * 4},
        {"done": [1, 1, 0, 1, 1, 0]},
        {"done": "TTFTTF"},
        {"done": [[True]] * 6},
    ],
)
def test_parts_that_do_not_belong_together_are_named_as_damage(resumed, change):
    resumed.path.write_text(json.dumps(json.loads(resumed.path.read_text()) | change))
    with pytest.raises(ParameterError, match="Got 'a damaged file' instead"):
        resumed.load(PEOPLE, REPEATS)


CELL = Cell("small", "forest", 0, "nice", None, None)


@pytest.fixture
def folder(tmp_path):
    store = CellFolder.open(tmp_path)
    moments = Moments.of(np.array([0.5, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 1]))
    store.keep("cell", CELL, CellResult(dict.fromkeys(FIGURES, moments), 6, 0.9, 1.5))
    store.write("audit", {"audited": -np.inf})
    return store


def used(result):
    """What a study does with a cell."""
    for name, moments in result.moments.items():
        both = moments + moments
        both.estimate(share=name in ("correctness", "m0", "m1"))
        both.deviation()


def test_whole_cells_are_read(folder):
    used(folder.result("cell"))
    assert folder.audited("audit") == {"audited": -np.inf} and folder.audited("another") is None


@pytest.mark.parametrize("name", ["cell", "audit", "study"])
def test_a_damaged_file_of_a_study_is_one_line(folder, name, seeds):
    path = folder.folder / f"{name}.json"
    whole, refused = path.read_text(), 0
    for seed in seeds(400, 50_000):
        rng = random.Random(seed)
        text = damaged(whole, rng) if rng.random() < 0.9 else whole[: rng.randrange(len(whole) - 2)]
        path.write_text(text)
        try:
            if name == "study":
                CellFolder.open(folder.folder).key("a cell")
            elif name == "audit":
                found = folder.audited("audit")["audited"]
                assert found is None or isinstance(found + 0.5, float)
            else:
                used(folder.result("cell"))
        except CountervailError as error:
            refused += 1
            assert isinstance(error, SchemaError) and f"'{name}.json' in " in str(error) and "\n" not in str(error)
    assert refused > 100


@pytest.mark.parametrize("text", ["[" * 100_000, "\x00", "", "null", "[]", '{"result": {}}'])
def test_a_file_of_something_else_is_named(folder, text):
    path = folder.folder / "cell.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=r"'cell\.json' in the folder of the study is damaged"):
        folder.result("cell")
