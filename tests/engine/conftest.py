"""One cluster of Spark for all tests that need it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from spark_cluster import cluster, has_java


@pytest.fixture(scope="session")
def sessions(tmp_path_factory):
    """A classic and a Connect session of Spark on two workers, with speculative execution."""
    if not has_java():
        pytest.skip("Spark needs Java 17")
    with cluster(tmp_path_factory.mktemp("cluster")) as held:
        yield dict(zip(("classic", "connect"), held))


def pytest_collection_modifyitems(items):
    """All that share the cluster run in one process, whatever the number of processes."""
    for item in items:
        if "sessions" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.spark)
