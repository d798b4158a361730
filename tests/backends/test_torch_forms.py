"""Compiled forms of torch peers: what ran eagerly, or is compiled again, is refused; the configuration is restored."""

import os
from contextlib import contextmanager
from functools import partial

import pytest

from prism_bench.backends.cuda.peers.torch_forms import CompiledCall, cache_variables
from prism_bench.errors import MeasurementInvalid


@pytest.fixture
def torch(monkeypatch, tmp_path):
    """PyTorch on the host; graphs are run as they were captured, since only what Dynamo does is of interest."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    compile_with = torch.compile
    monkeypatch.setattr(torch, "compile", lambda call, mode, **more: compile_with(call, backend="eager", **more))
    yield torch
    torch._dynamo.reset()


def doubled(torch, x, factor=2):
    return torch.relu(x) * factor


def compiled(torch, function, **arguments):
    return CompiledCall(torch, partial(function, torch=torch, **arguments), "compiled")


def test_a_peer_is_compiled_once_as_one_graph(torch):
    x = torch.arange(-4.0, 4.0)
    with compiled(torch, doubled, x=x, factor=3) as call:
        assert torch.equal(doubled(torch, x, 3), call())
        call.require_same()
        assert (1, 0) == (call.graphs, call.breaks)


def test_a_call_without_arguments_is_compiled_too(torch):
    x = torch.ones(3)
    with CompiledCall(torch, lambda: x * 2, "autotuned") as call:
        assert torch.equal(x * 2, call())


def test_cases_after_each_other_begin_with_a_clean_dynamo(torch):
    for size in range(1, 12):  # more than the recompile limit of one code object
        with compiled(torch, doubled, x=torch.ones(size)) as call:
            assert size == len(call())
            call.require_same()


def test_a_broken_graph_is_counted(torch):
    def broken(torch, x):
        y = x * 2
        print("a graph breaks here")
        return y + 1

    with compiled(torch, broken, x=torch.ones(3)) as call:
        assert [3.0] * 3 == call().tolist()
        assert (2, True) == (call.graphs, call.breaks > 0)


def test_a_peer_that_runs_eagerly_is_refused(torch):
    @torch._dynamo.disable
    def hidden(x):
        return x * 2

    with (
        pytest.raises(MeasurementInvalid, match="compiled nothing of it: it ran eagerly"),
        compiled(torch, lambda torch, x: hidden(x), x=torch.ones(3)),
    ):
        pass


def test_a_peer_whose_compilation_fails_has_the_reason(torch):
    def fails(torch, x):
        return x.view(7, -1) * 2

    with pytest.raises(MeasurementInvalid, match="torch.compile fails: "), compiled(torch, fails, x=torch.ones(3)):
        pass


def test_a_peer_that_would_be_compiled_again_while_it_is_timed_is_refused(torch):
    calls = []

    def changing(torch, x):
        return x * len(calls)

    with compiled(torch, changing, x=torch.ones(3)) as call:
        calls.append(1)
        with pytest.raises(MeasurementInvalid, match="would compile it again"):
            call()


def test_graphs_that_were_compiled_since_are_noticed(torch):
    with compiled(torch, doubled, x=torch.ones(3)) as call:
        with torch._dynamo.config.patch(error_on_recompile=False):
            torch.compile(lambda x: x + 1, mode=None, dynamic=False)(torch.ones(4))
        with pytest.raises(MeasurementInvalid, match=r"again while it was timed \(1 graph before, 2 after\)"):
            call.require_same()


def test_the_recompile_limit_raises_where_it_would_fall_back_to_eager(torch):
    with compiled(torch, doubled, x=torch.ones(3)) as call:
        assert torch._dynamo.config.fail_on_recompile_limit_hit
        assert torch._dynamo.config.error_on_recompile
        call()


@pytest.mark.parametrize("fails", [False, True])
def test_the_configuration_is_left_as_found(torch, monkeypatch, fails):
    from torch._inductor import config

    monkeypatch.setenv("TRITON_CACHE_DIR", "mine")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    before = torch._dynamo.config.save_config(), config.save_config(), dict(os.environ)
    try:
        with compiled(torch, doubled, x="no tensor" if fails else torch.ones(3)):
            assert cache_variables(torch, "compiled").items() <= os.environ.items()
    except MeasurementInvalid:
        assert fails
    assert before[:2] == (torch._dynamo.config.save_config(), config.save_config())
    assert before[2] == {name: value for name, value in os.environ.items() if name in before[2]}
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


def test_a_peer_s_flags_are_set_around_the_compiled_call(torch):
    inside = []

    @contextmanager
    def surroundings(torch):
        inside.append(True)
        yield
        inside.append(False)

    def peer(torch, **given): ...

    peer.surroundings, peer.__wrapped__ = surroundings, doubled
    with compiled(torch, peer, x=torch.ones(3)) as call:
        assert [True, False] == inside
        assert [2.0] * 3 == call().tolist()
    assert [True, False] * 2 == inside
