"""A test that was stopped goes on where it was, in one process or several."""

import json

import numpy as np
import pytest

import countervail as cv
from countervail import DifferentialInferenceTest
from countervail.core.errors import ParameterError
from countervail.testing import small_table

TABLE = small_table().with_roles(sensitive=["ill"])


def test_of(**changes):
    settings = {"n_records": 24, "beside": 0, "path": "general", **changes}
    return DifferentialInferenceTest(cv.Mondrian(4), **settings)


test_of.__test__ = False


class Stopped(Exception):
    """Somebody pressed Ctrl-C."""


def stop_after(n, seen):
    def tick(done, total):
        seen.append((done, total))
        if len(seen) == n:
            raise Stopped

    return tick


def test_a_stopped_run_goes_on_and_finds_the_same(tmp_path):
    file, first, then = tmp_path / "run.json", [], []
    with pytest.raises(Stopped):
        test_of().run(TABLE, checkpoint=file, progress=stop_after(5, first))
    assert first[-1][0] < 24
    resumed = test_of().run(TABLE, checkpoint=file, progress=lambda d, n: then.append((d, n)))
    assert then[0][0] > first[-1][0]
    assert then[-1] == (24, 24)
    straight = test_of().run(TABLE)
    assert (resumed.d_pp == straight.d_pp).all()
    assert (resumed.rows == straight.rows).all()


def test_a_finished_run_is_read_from_its_file(tmp_path):
    file, seen = tmp_path / "run.json", []
    test_of().run(TABLE, checkpoint=file)
    test_of().run(TABLE, checkpoint=file, progress=lambda d, n: seen.append(d))
    assert seen == []


def test_the_file_holds_no_values_and_no_row_numbers(tmp_path):
    file = tmp_path / "run.json"
    test_of().run(TABLE, checkpoint=file)
    data = json.loads(file.read_text())
    assert set(data) == {"digest", "done", "found"}
    assert np.array(data["found"]).shape == (24, 3, 1)


@pytest.mark.parametrize(
    "changes",
    [{"encoding": "tf-hot"}, {"random_state": 1}, {"distance": "kl"}, {"anonymiser": cv.Mondrian(5)}],
    ids=["encoding", "seed", "distance", "anonymiser"],
)
def test_the_file_of_another_run_is_refused(tmp_path, changes):
    file = tmp_path / "run.json"
    test_of().run(TABLE, checkpoint=file)
    other = DifferentialInferenceTest(**{**test_of().get_params(deep=False), **changes})
    with pytest.raises(ParameterError, match="another run"):
        other.run(TABLE, checkpoint=file)


def test_the_file_of_another_table_and_of_another_kind_are_refused(tmp_path):
    file = tmp_path / "run.json"
    test_of().run(TABLE, checkpoint=file)
    with pytest.raises(ParameterError, match="another run"):
        test_of().run(small_table(seed=3).with_roles(sensitive=["ill"]), checkpoint=file)
    file.write_text("[]")
    with pytest.raises(ParameterError, match="another kind"):
        test_of().run(TABLE, checkpoint=file)


def test_several_processes_find_the_same():
    alone = test_of(n_records=6).run(TABLE)
    together = test_of(n_records=6, n_jobs=2).run(TABLE)
    assert (alone.d_pp == together.d_pp).all()
