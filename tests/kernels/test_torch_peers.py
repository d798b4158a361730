"""Forms of PyTorch peers that specs name, with a library that only has the flag."""

import importlib
from types import SimpleNamespace

import pytest

from prism_bench.catalogue import discover
from prism_bench.io.files import default_folder
from prism_bench.spec import arguments


@pytest.fixture
def in_tf32():
    discover(default_folder())
    return importlib.import_module("prism_bench_catalogue.peers.torch_peers").in_tf32


@pytest.fixture
def torch():
    products, convolutions = SimpleNamespace(allow_tf32=False), SimpleNamespace(allow_tf32=False)
    return SimpleNamespace(backends=SimpleNamespace(cuda=SimpleNamespace(matmul=products), cudnn=convolutions))


def scaled(torch, x, factor):
    return x * factor, torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32


def test_asks_for_what_the_peer_asks_for(in_tf32):
    assert ("torch", "x", "factor") == arguments.wanted(in_tf32(scaled))


@pytest.mark.parametrize("before", [False, True])
def test_tf32_is_allowed_for_the_call_alone_and_the_flag_is_left_as_found(in_tf32, torch, before):
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    flags[0].allow_tf32 = before
    assert (6, True) == in_tf32(scaled)(torch=torch, x=2, factor=3)
    assert [before, False] == [flag.allow_tf32 for flag in flags]

    def fails(torch):
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        in_tf32(fails)(torch)
    assert [before, False] == [flag.allow_tf32 for flag in flags]


def test_what_compiles_the_peer_finds_the_function_and_the_flag_apart(in_tf32, torch):
    peer = in_tf32(scaled)
    with peer.surroundings(torch):
        assert (6, True) == peer.__wrapped__(torch, 2, 3)
    assert scaled is peer.__wrapped__
