"""What Spark's tasks leave behind goes, also what a task that was run twice puts there late."""

import threading
import time

from countervail.engine.spark.relation import _clear


def test_what_a_late_task_leaves_is_removed_too(tmp_path):
    inside = tmp_path / "written"
    (inside / "_temporary" / "0").mkdir(parents=True)
    (inside / "_SUCCESS").touch()
    (inside / "_temporary" / "0" / "part.parquet").touch()

    def late():
        for _ in range(5):
            (inside / "_temporary").mkdir(parents=True, exist_ok=True)
            time.sleep(0.02)

    task = threading.Thread(target=late)
    task.start()
    task.join()
    _clear(inside)
    assert not inside.exists()
