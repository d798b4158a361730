"""Operators of a case's torch peers by shapes alone: nothing of it is kept by a peer, and no set-up is run."""

from dataclasses import replace
from functools import cache

import pytest

from prism_bench.backends.cuda.peers.torch_forms import _forget, _operators, prepared_call
from prism_bench.catalogue import discover
from prism_bench.spec.case import Case
from prism_bench.spec.peer import Peer
from tests.run.conftest import TOYS

DOUBLE = discover(TOYS).anywhere("double[n=1000]")


@cache
def kept(torch):
    return torch.ones(())


def with_kept(torch, x):
    return torch.softmax(x, 0) + kept(torch)


def case_with(call):
    return Case(replace(DOUBLE.spec, peers={"torch": call}), DOUBLE.workload, "S1")


def test_what_a_peer_keeps_is_made_again():
    calls = []

    @cache
    def made(number):
        calls.append(number)

    made(1)
    with_kept.__globals__["made_here"] = made
    try:
        _forget(with_kept)
        made(1)
    finally:
        del with_kept.__globals__["made_here"]
    assert [1, 1] == calls


def test_operators_are_found_without_a_device_and_leave_no_shapes_behind():
    torch = pytest.importorskip("torch")
    found = _operators(case_with(with_kept), "torch")
    assert "_softmax" in found.names
    assert found.gains_by_autotuning
    assert [2.0] == with_kept(torch, torch.zeros(1)).tolist()


def test_a_set_up_is_not_run_with_shapes_alone():
    pytest.importorskip("torch")
    assert _operators(case_with(Peer(lambda torch, x: pytest.fail("it was run"), prepares=True)), "torch") is None


def test_what_depends_on_values_is_not_autotuned():
    pytest.importorskip("torch")
    assert _operators(case_with(lambda torch, x: x[: int(x.sum())]), "torch") is None


def test_a_peer_takes_bits_as_the_type_that_it_names():
    torch = pytest.importorskip("torch")
    bits = torch.tensor([1.0, -2.0]).bfloat16().view(torch.uint16)
    peer = Peer(lambda torch, x: x, viewed={"x": "bfloat16"})
    found = prepared_call(peer, {"torch": torch, "x": bits, "y": 1}, "here")()
    assert (torch.bfloat16, [1.0, -2.0]) == (found.dtype, found.tolist())
    assert torch.uint16 == prepared_call(Peer(lambda torch, x: x), {"torch": torch, "x": bits}, "here")().dtype
