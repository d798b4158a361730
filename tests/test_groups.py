"""How tests are shared out: what `xdist_group` names stays in one process, and each process has a GPU of its own."""

import pytest

from tests.conftest import own_gpu


@pytest.mark.xdist_group("groups")
def test_a_group_reaches_the_process_that_gives_out_tests(request: pytest.FixtureRequest) -> None:
    """xdist gives out tests by the end of their names, and a pytest that it does not know drops that end silently."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@groups")


@pytest.mark.parametrize(
    ("worker", "named", "devices", "visible"),
    [
        ("gw1", "", 4, "1"),
        ("gw5", "", 4, "1"),
        ("gw2", "GPU-a,GPU-b,GPU-c", 4, "GPU-c"),
        ("gw1", "3", 4, None),
        ("gw1", "", 1, None),
        ("gw0", "", 0, None),
        ("", "", 4, None),
    ],
)
def test_each_process_has_a_gpu_of_its_own(worker: str, named: str, devices: int, visible: str | None) -> None:
    assert visible == own_gpu(worker, named, devices)
