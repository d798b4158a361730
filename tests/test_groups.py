"""Tests that share files or a costly build run in one process: what `xdist_group` names stays together."""

import pytest


@pytest.mark.xdist_group("groups")
def test_a_group_reaches_the_process_that_gives_out_tests(request: pytest.FixtureRequest) -> None:
    """xdist gives out tests by the end of their names, and a pytest that it does not know drops that end silently."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@groups")
