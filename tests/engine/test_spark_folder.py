"""What Spark's tasks leave behind goes: files, and the folders of tasks that were run twice."""

from countervail.engine.spark.relation import _clear


def test_folders_of_tasks_that_ended_late_are_removed_too(tmp_path):
    inside = tmp_path / "written"
    (inside / "_temporary" / "0").mkdir(parents=True)
    (inside / "_SUCCESS").touch()
    (inside / "_temporary" / "0" / "part.parquet").touch()
    _clear(inside)
    assert not inside.exists()
