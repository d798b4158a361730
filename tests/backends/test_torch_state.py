"""The global flags of the real PyTorch: each one that a peer changes is found, named and restored."""

import sys
from functools import partial

import pytest

from prism_bench.backends.cuda.peers.library_state import FLAGS, LibraryState, ready
from prism_bench.backends.cuda.peers.torch_forms import CompiledCall

OF_A_DEVICE = ("torch.cuda.set_device", "torch.cuda.set_stream")  # tested where there is one
OF_TORCH = [flag for flag in FLAGS if flag.module == "torch" and flag.name not in OF_A_DEVICE]


def by_name(flag):
    return flag.name


OTHER_VALUES = {
    "torch.get_float32_matmul_precision()": "high",
    "torch.backends.cudnn.rnn.fp32_precision": "ieee",
    "torch.backends.cudnn.conv.fp32_precision": "ieee",
    "torch._C._get_sdp_priority_order()": [2, 1, 0, 3, 4],
}


def other(torch, flag, value):
    """Another value of the flag."""
    if flag.name in OTHER_VALUES:
        return OTHER_VALUES[flag.name]
    if flag.name.endswith("fp32_precision"):
        return "ieee" if value == "tf32" else "tf32"
    if isinstance(value, torch.dtype):
        return torch.float64 if value == torch.float32 else torch.float16 if value == torch.bfloat16 else torch.bfloat16
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else torch.device("meta")


@pytest.fixture
def torch():
    """The real library, in the state in which peers find it."""
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    ready("torch")
    state = LibraryState.now()
    yield module
    state.restore()


@pytest.mark.parametrize("flag", OF_TORCH, ids=by_name)
def test_every_flag_of_torch_is_restored(torch, flag):
    try:
        before = flag.read()
    except LookupError:
        pytest.skip("no GPU")
    state = LibraryState.now()
    flag.write(other(torch, flag, before))
    assert flag.read() != before
    change = state.restore()
    assert [] == change.lasting
    assert flag.quiet is (not change.names)
    assert flag.quiet or flag.name in change.names or flag.after in change.names
    assert flag.read() == before
    assert ([], []) == (state.restore().names, [])


@pytest.mark.parametrize("module", ["torch._dynamo.config", "torch._inductor.config", "torch._functorch.config"])
def test_every_key_of_the_compilers_is_restored(torch, module):
    configuration = sys.modules[module]
    state, keys = LibraryState.now(), 0
    for key, entry in configuration._config.items():
        before = getattr(configuration, key)
        if entry.alias is None and isinstance(before, bool):
            setattr(configuration, key, not before)
            if getattr(configuration, key) is before:
                continue  # an environment variable decides it
            assert [f"{module}.{key}"] == state.restore().names
            assert getattr(configuration, key) is before
            keys += 1
    assert keys > 20


def test_a_patch_of_the_compilers_that_has_ended_is_no_change(torch):
    import torch._dynamo
    import torch._inductor.config

    state = LibraryState.now()
    with torch._dynamo.config.patch(error_on_recompile=True), torch._inductor.config.patch(compile_threads=1):
        pass
    change = state.restore()
    assert ([], []) == (change.names, change.lasting)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["compiled", "autotuned"])
def test_compiling_a_peer_leaves_no_change(torch, form):
    ready("torch")
    x = torch.ones(8)
    state = LibraryState.now()
    with CompiledCall(torch, partial(lambda torch, x: x.cos() + 1, torch=torch, x=x), form) as call:
        call()
    change = state.restore()
    assert ([], []) == (change.names, change.lasting)


def test_a_list_of_the_compilers_that_grew_is_restored(torch):
    configuration = sys.modules["torch._inductor.config"]
    key = next(key for key in configuration._config if isinstance(getattr(configuration, key), list))
    state, before = LibraryState.now(), list(getattr(configuration, key))
    getattr(configuration, key).append("more")
    assert [f"torch._inductor.config.{key}"] == state.restore().names
    assert before == getattr(configuration, key)


@pytest.mark.parametrize(
    "statement",
    [
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.set_float32_matmul_precision('high')",
    ],
)
def test_every_way_to_tf32_has_the_same_reason(torch, statement):
    state = LibraryState.now()
    exec(statement, {"torch": torch})
    assert "it changed torch.backends.cuda.matmul.allow_tf32 and left it so" == state.restore().reason
    assert not torch.backends.cuda.matmul.allow_tf32
    assert "highest" == torch.get_float32_matmul_precision()


def test_peers_of_torch_begin_without_tf32_and_gradients(torch):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.set_grad_enabled(True)
    ready("torch")
    assert (False, False, False) == (
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.is_grad_enabled()
    )  # fmt: skip
