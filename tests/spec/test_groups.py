"""How tests are shared out: what `xdist_group` names stays in one process, and each process has a GPU of its own."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import own_gpu

NAMES = [*(f"test_a.py::test_x[{number}]" for number in range(7)), *(f"test_b.py::test_y[{n}]@pair" for n in range(2))]


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


class Process:
    """What xdist gives tests to."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.given: list[str] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += [NAMES[index] for index in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def sharing(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Process, Process]:
    """Tests shared out to two processes that have not begun."""
    pytest.importorskip("xdist.scheduler")
    from tests.scheduling import Sharing

    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    sharing, one, other = Sharing(pytestconfig), Process(), Process()
    for node in (one, other):
        sharing.add_node(node)
        sharing.add_node_collection(node, NAMES)
    sharing.schedule()
    return sharing, one, other


def test_each_test_is_given_once_and_groups_whole(sharing: tuple[Any, Process, Process]) -> None:
    shared, *nodes = sharing
    ended = dict.fromkeys(nodes, 0)
    while not shared.tests_finished or any(ended[node] < len(node.given) for node in nodes):
        for node in nodes:
            if ended[node] < len(node.given):
                shared.mark_test_complete(node, NAMES.index(node.given[ended[node]]))
                ended[node] += 1
    assert sorted(NAMES) == sorted(nodes[0].given + nodes[1].given)
    assert [2] == [count for node in nodes if (count := sum("@pair" in name for name in node.given))]
    assert all(node.shutting_down for node in nodes)
    assert not shared.has_pending


def test_tests_of_a_process_that_crashed_are_given_to_the_other(sharing: tuple[Any, Process, Process]) -> None:
    shared, one, other = sharing
    ended, crashed, *lost = one.given
    shared.mark_test_complete(one, NAMES.index(ended))
    assert crashed == shared.remove_node(one)
    done = 0
    while done < len(other.given):
        shared.mark_test_complete(other, NAMES.index(other.given[done]))
        done += 1
    assert set(lost) <= set(other.given)
    assert not {ended} & set(other.given) or "@pair" in ended
