"""Forms and kinds of peers on a device that is played: which there are, which are refused, and what is told of them."""

from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda.peers import peer as peers
from prism_bench.backends.cuda.peers import torch_forms
from prism_bench.backends.cuda.peers.peer import CudaPeer
from prism_bench.backends.cuda.peers.torch_forms import Operators, named_peer, peer_names
from prism_bench.backends.cuda.timers import StreamNotHeld, work_items
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.catalogue import discover
from prism_bench.errors import MeasurementInvalid
from prism_bench.spec.case import Case
from prism_bench.spec.peer import Peer
from tests.backends.torch_stand_in import install
from tests.run.conftest import TOYS

DOUBLE = discover(TOYS).anywhere("double[n=1000]")


def by_torch(torch, x):
    return x * 2


def case_with(label="S1", **given):
    return Case(replace(DOUBLE.spec, peers=given), DOUBLE.workload, label)


@pytest.fixture
def torch(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    return install(monkeypatch)


@pytest.fixture
def prepared(monkeypatch, torch):
    """A peer of the case, where one call enqueues as many work items as `launches` lists, one after the other."""

    def prepare(case, name, launches=(), operators=("mul",)):
        counts = iter(launches)
        monkeypatch.setattr(peers.CallableTimers, "launches", lambda self: next(counts, None))
        monkeypatch.setattr(peers, "operators_of", lambda torch, call: Operators(operators))
        pool = SimpleNamespace(free_all_blocks=lambda: None)
        runtime = SimpleNamespace(deviceSynchronize=lambda: None)
        cupy = SimpleNamespace(
            asarray=np.asarray, get_default_memory_pool=lambda: pool, cuda=SimpleNamespace(runtime=runtime)
        )
        runnable = stack.enter_context(NumpyBackend().prepare(case, case.inputs(0)))
        harness = SimpleNamespace(stream=SimpleNamespace(ptr=7))
        return stack.enter_context(CudaPeer(cupy, harness, case, name, runnable))

    with ExitStack() as stack:
        yield prepare


@pytest.mark.parametrize(
    ("label", "operators", "forms"),
    [("S0", ("mm",), ["compiled"]), ("S1", ("mm",), ["compiled", "autotuned"]),
     ("S2", ("_softmax",), ["compiled", "autotuned"]), ("S1", ("mul", "sum"), ["compiled"]),
     ("S1", None, ["compiled"])],
)  # fmt: skip
def test_each_torch_peer_has_its_forms_without_a_line_in_the_spec(monkeypatch, torch, label, operators, forms):
    found = Operators(operators) if operators else None
    monkeypatch.setattr(torch_forms, "_operators", lambda case, name: found)
    case = case_with(label, torch=by_torch, cupy=lambda cupy, x: x, torch_tf32=by_torch)
    assert peer_names(case) == (
        "torch", *(f"torch_{form}" for form in forms), "cupy",
        "torch_tf32", *(f"torch_tf32_{form}" for form in forms),
    )  # fmt: skip


def test_without_torch_only_its_own_name_is_left_to_report_that(monkeypatch):
    monkeypatch.setattr("prism_bench.spec.peer.Library.is_installed", lambda self: False)
    assert ("torch",) == peer_names(case_with(torch=by_torch))


def test_the_name_of_a_form_leads_to_its_peer():
    case = case_with(torch=by_torch, torch_tf32=by_torch)
    assert (by_torch, None) == (named_peer(case, "torch")[0].call, named_peer(case, "torch")[1])
    assert ["compiled", "autotuned"] == [
        named_peer(case, name)[1] for name in ("torch_tf32_compiled", "torch_autotuned")
    ]
    with pytest.raises(LookupError, match="has no peer called cupy_compiled"):
        named_peer(case, "cupy_compiled")


def test_a_compiled_peer_is_one_graph_of_fixed_shapes_and_has_its_facts(torch, prepared):
    peer = prepared(case_with(torch=by_torch), "torch_autotuned", launches=(3, 3))
    assert [(False, True, "max-autotune-no-cudagraphs")] == torch.compiled
    peer()
    peer.timers()
    peer.confirm()
    assert {"form": "autotuned", "kind": "compiled", "launches": 3}.items() <= peer.evidence().items()
    assert [
        {"fail_on_recompile_limit_hit": True},
        {"compile_threads": 1},
        {"error_on_recompile": True},
    ] == torch.patched


def test_a_broken_graph_is_compiled_in_parts_and_says_so(torch, prepared):
    torch.how = "in parts"
    assert 1 == prepared(case_with(torch=by_torch), "torch_compiled").evidence()["breaks"]
    assert [True, False] == [fullgraph for _, fullgraph, _ in torch.compiled]


@pytest.mark.parametrize(
    ("how", "reason"),
    [("eager", "compiled nothing of it: it ran eagerly"), ("fails", "torch.compile fails: ValueError: no such shape")],
)
def test_a_peer_that_is_not_compiled_is_refused(torch, prepared, how, reason):
    torch.how = how
    with pytest.raises(MeasurementInvalid, match=reason):
        prepared(case_with(torch=by_torch), "torch_compiled")
    assert torch.resets >= 2  # before it, and so that nothing of it is left


def test_a_peer_that_is_compiled_again_while_it_is_timed_is_refused(torch, prepared):
    torch.how = "again"
    peer = prepared(case_with(torch=by_torch), "torch_compiled")
    peer.timers()
    peer()
    with pytest.raises(MeasurementInvalid, match=r"compiled it again while it was timed \(1 graph before, 2 after\)"):
        peer.confirm()


@pytest.mark.parametrize("name", ["torch", "torch_compiled"])
def test_a_peer_whose_launches_differ_after_the_timing_is_refused(prepared, name):
    peer = prepared(case_with(torch=by_torch), name, launches=(1, 4))
    peer.timers()
    with pytest.raises(MeasurementInvalid, match="a call launched 1 kernel before it was timed, and 4 afterwards"):
        peer.confirm()


def test_launches_that_cannot_be_counted_refuse_nothing(prepared):
    peer = prepared(case_with(torch=by_torch), "torch")
    peer.timers()
    peer.confirm()
    assert "launches" not in peer.evidence()


@pytest.mark.parametrize(
    ("name", "call", "operators", "launches", "kind"),
    [("torch", by_torch, ("_softmax",), 2, "library kernel"), ("torch", by_torch, ("mm", "relu"), 2, "eager chain"),
     ("cupy", lambda cupy, x: x, (), 2, "library kernel"), ("cupy", lambda cupy, x: x, (), 3, "eager chain"),
     ("cupy", lambda cupy, x: x, (), None, "eager chain")],
)  # fmt: skip
def test_the_operators_of_torch_and_the_launches_of_cupy_decide_the_kind(
    monkeypatch, prepared, name, call, operators, launches, kind
):
    monkeypatch.setitem(__import__("sys").modules, "cupy", SimpleNamespace(__spec__=object()))
    peer = prepared(case_with(**{name: Peer(call, work="more")}), name, (launches,), operators)
    peer.timers()
    facts = peer.evidence()
    assert ("eager", kind, "more", launches) == (facts["form"], facts["kind"], facts["work"], facts.get("launches"))
    assert (len(operators) if name == "torch" else None) == facts.get("calls")


@pytest.mark.parametrize(
    ("nodes", "items"), [([0, 3, 6], 3), ([0, 3, 7], None), ([None, None], None), ([5, 6], 1), ([], None)]
)
def test_calls_that_add_as_many_nodes_each_have_that_many_work_items(nodes, items):
    assert items == work_items(nodes)


def test_wider_floats_of_a_library_are_compared_as_the_output_would_hold_them(prepared):
    peer = prepared(case_with(torch=lambda torch, x: np.asarray(x, "float64") * 2), "torch")
    peer()
    (held,) = peer.arrays(["y"]).values()
    assert "float32" == held.dtype


def test_streams_of_xla_are_never_captured():
    clocks = peers.CallableTimers(SimpleNamespace(), lambda: pytest.fail("it was called"), "jax")
    with pytest.raises(MeasurementInvalid, match="does not capture the streams of XLA"):
        clocks.capture(1)
    assert clocks.launches() is None


class Stream:
    """A harness whose stream holds the work of `holds` callables alone."""

    def __init__(self, *holds):
        self.holds, self.timed_calls = holds, []

    def timed(self, call, cold):
        self.timed_calls.append(call)
        if call not in self.holds:
            raise StreamNotHeld("the call waits for the device, or enqueues more than a stream holds")


def call():
    """More launches than a stream holds."""


def replay():
    """The same as a graph."""


def test_a_call_that_a_stream_does_not_hold_is_timed_as_a_graph(monkeypatch):
    clocks = peers.CallableTimers(Stream(replay), call, "torch")
    monkeypatch.setattr(clocks, "capture", lambda launches: replay)
    assert (replay, True) == (clocks._holdable(), clocks.replays)
    held = peers.CallableTimers(Stream(call), call, "torch")
    assert (call, False) == (held._holdable(), held.replays)


def test_a_call_that_waits_for_the_device_keeps_its_reason(monkeypatch):
    def refuse(launches):
        raise MeasurementInvalid("the call cannot be captured")

    clocks = peers.CallableTimers(Stream(), call, "torch")
    monkeypatch.setattr(clocks, "capture", refuse)
    with pytest.raises(StreamNotHeld, match="waits for the device"):
        clocks._holdable()
    assert not clocks.replays
