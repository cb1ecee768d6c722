"""What tests of protectors share."""

import pytest

from countervail.protect.cfk.groups import grouping


@pytest.fixture
def quick_groups(monkeypatch):
    """Little rebuilding: what holds of the groups holds however well they are formed."""
    monkeypatch.setattr(grouping, "_WORK", 1)
