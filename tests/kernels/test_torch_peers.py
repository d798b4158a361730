"""Forms of PyTorch peers, with a library that only notes what it is asked."""

import importlib
from types import SimpleNamespace

import pytest

from prism_bench import byname
from prism_bench.catalogue import discover
from prism_bench.files import default_folder


@pytest.fixture
def peers():
    discover(default_folder())
    return importlib.import_module("prism_bench_catalogue.include.torch_peers")


class Library:
    """Counts compilations, and holds the flag for TF32."""

    def __init__(self):
        self.compiled, self.backends = (
            0,
            SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False))),
        )

    def compile(self, function, dynamic):
        self.compiled += 1
        return function


@pytest.fixture
def torch():
    return Library()


def scaled(torch, x, factor):
    return x * factor, torch.backends.cuda.matmul.allow_tf32


def test_a_form_asks_for_what_the_peer_asks_for(peers):
    assert ("torch", "x", "factor") == byname.wanted(peers.compiled(scaled)) == byname.wanted(peers.in_tf32(scaled))


def test_one_compilation_a_process(peers, torch):
    peer = peers.compiled(scaled)
    assert [(6, False)] * 2 == [peer(torch=torch, x=2, factor=3) for _ in range(2)]
    assert 1 == torch.compiled


def test_tf32_is_allowed_for_the_call_alone(peers, torch):
    assert (6, True) == peers.in_tf32(peers.compiled(scaled))(torch=torch, x=2, factor=3)
    assert not torch.backends.cuda.matmul.allow_tf32

    def fails(torch):
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        peers.in_tf32(fails)(torch)
    assert not torch.backends.cuda.matmul.allow_tf32
