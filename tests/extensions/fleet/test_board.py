"""Boards of a fleet: who gets which GPU and cores, and what must be the same."""

from dataclasses import replace

import pytest

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.fleet.dispatch import _board as described_board
from prism_bench.extensions.fleet.fleet import (
    BoardClaim,
    FleetBoard,
    SeenWorker,
    claims,
    of_one_kind,
    require_equal,
    set_alike,
)
from prism_bench.spec.case import Device


def worker(name, *gpus, host="a", cores=range(8)):
    return SeenWorker(f"tcp://{host}:{name}", host, str(name), gpus, tuple(cores))


def board(name, *, device="H200", host="a", **versions):
    facts = {"device": device, "uuid": f"uuid-{name}"}
    claim = BoardClaim(worker(name, host=host), None, ())
    return FleetBoard(claim, facts, {}, {}, Device(), {"prism-bench": "1", **versions})


def test_each_worker_gets_a_gpu_of_its_own_and_a_share_of_the_cores():
    found, remarks = claims([worker(0, "x", "y"), worker(1, "x", "y"), worker(2, "z", host="b")], needs_gpu=True)
    assert ["x", "y", "z"] == [one.gpu for one in found]
    assert [(0, 1, 2, 3), (4, 5, 6, 7), tuple(range(8))] == [one.cores for one in found]
    assert [] == remarks


def test_a_worker_without_a_gpu_of_its_own_measures_nothing():
    found, (remark,) = claims([worker(0, "x"), worker(1, "x")], needs_gpu=True)
    assert [("0", "x", tuple(range(8)))] == [(one.worker.name, one.gpu, one.cores) for one in found]
    assert "a (tcp://a:1) measures nothing: its GPUs are other workers' already" == remark


def test_workers_that_see_no_gpu_are_refused_by_name():
    with pytest.raises(BackendUnavailable, match=r"no GPU on b \(tcp://b:1\), b \(tcp://b:2\);"):
        claims([worker(0, "x"), worker(1, host="b"), worker(2, host="b")], needs_gpu=True)
    found, _ = claims([worker(0), worker(1)], needs_gpu=False)
    assert [None, None] == [one.gpu for one in found]


def test_where_cores_are_fewer_than_workers_all_share_all():
    found, _ = claims([worker(n, cores=[3, 5]) for n in range(3)], needs_gpu=False)
    assert {(3, 5)} == {one.cores for one in found}


def test_another_kind_of_gpu_is_left_out_and_named():
    boards = [board(0, device="H100"), board(1), board(2)]
    alike, (remark,) = of_one_kind(boards)
    assert boards[1:] == alike
    assert remark.startswith("a uuid-0 is another kind (H100, not H200) and measures nothing")


def configured(name, **board_facts):
    found = board(name)
    return replace(found, facts={**found.facts, "board": {"host": f"host {name}", "vbios": name, **board_facts}})


def test_a_board_whose_clocks_or_power_limit_are_set_differently_is_left_out_and_named():
    usual = {"power_limit": 700.0, "application_sm_clock": 1.98e9, "boost_sm_clock": 1.98e9}
    low = configured(0, **usual | {"power_limit": 500.0, "application_sm_clock": 1.395e9})
    unknown = configured(3, power_limit=700.0)
    boards = [low, configured(1, **usual), configured(2, **usual), unknown]
    alike, remarks = set_alike(boards)
    assert boards[1:3] == alike, "hosts and firmware may differ"
    assert remarks[0].startswith(
        "a uuid-0 is set differently and measures nothing: power limit 500 W, not 700 W, application SM clock "
        "1395 MHz, not 1980 MHz; set it like the others"
    )
    assert "application SM clock unknown, not 1980 MHz" in remarks[1]
    assert ([], ([low], [])) == (set_alike([board(1)])[1], set_alike([low]))


def test_boards_that_differ_are_refused_with_everything_in_which_they_do():
    require_equal([board(0, cupy="13"), board(1, cupy="13")])
    with pytest.raises(UsageError) as refused:
        require_equal([board(0, cupy="13", nvrtc="12"), board(1, cupy="14"), board(2, cupy="13", nvrtc="12", host="b")])
    text = str(refused.value)
    assert "\n  cupy: 13 on a uuid-0, b uuid-2; 14 on a uuid-1" in text
    assert "\n  nvrtc: 12 on a uuid-0, b uuid-2; absent on a uuid-1" in text
    assert "prism-bench:" not in text


def test_a_board_is_known_by_its_gpu_else_by_its_first_worker():
    assert "uuid-3" == board(3).key
    without = replace(board(3), facts={"device": "none"})
    assert "a/3" == without.key
    again = replace(without, claim=BoardClaim(worker(9), None, ()), name=without.key)
    assert "a/3" == again.key


def test_a_worker_that_is_lost_while_it_is_described_is_named_in_plain_words():
    class KilledWorker(Exception):
        """As Dask has it."""

        __module__ = "distributed.scheduler"

    claim = BoardClaim(SeenWorker("tcp://h:1", "h", "0", (), ()), None, ())
    with pytest.raises(
        BackendUnavailable, match=r"^worker h \(tcp://h:1\) was lost while it opened its backend; start"
    ):
        described_board(claim, KilledWorker("Attempted to run task prism-bench-1"))
