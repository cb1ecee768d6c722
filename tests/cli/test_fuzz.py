"""A short run of what `make fuzz` does for hours."""

import pytest
from fuzz_tables import faults_of


@pytest.mark.parametrize("block", range(4))
def test_made_up_files_break_nothing(block, seeds, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    each = len(seeds(6, 500))
    assert not {seed: found for seed in range(block * each, (block + 1) * each) if (found := faults_of(seed))}
