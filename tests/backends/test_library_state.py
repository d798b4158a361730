"""What a peer changes globally is found, named and restored: each flag of the table, in libraries or stand-ins."""

import os
import random
import sys
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda.peers.library_state import (
    ATTRIBUTES,
    FLAGS,
    FUNCTIONS,
    OTHERS,
    LibraryState,
    end_failed_capture,
    ready,
)
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.peer import LIBRARIES

OF_LIBRARIES = [flag for flag in FLAGS if flag.module in ("torch", "cupy")]
OF_THE_INTERPRETER = [flag for flag in FLAGS if flag not in OF_LIBRARIES]


def by_name(flag):
    return flag.name


def put(root, path, value):
    """Set what a dotted path names, and every namespace on its way."""
    *owners, name = path.split(".")
    for owner in owners:
        if not hasattr(root, owner):
            setattr(root, owner, SimpleNamespace())
        root = getattr(root, owner)
    setattr(root, name, value)


class Bytes(bytes):
    """A state of random numbers as a library's tensor."""

    def cpu(self):
        return self

    def numpy(self):
        return self

    def tobytes(self):
        return bytes(self)


class Held:
    """A stream, a device or a mode that becomes the current one by being used or entered."""

    def __init__(self, where, name, value):
        self.ptr = self.id = self.cuda_stream = self.device_index = value
        self._where, self._name = where, name

    def use(self):
        self._where[self._name] = self.id

    __enter__ = use


@pytest.fixture
def stand_ins(monkeypatch):
    """Modules in the place of torch and CuPy with every flag of the table, each `1`; returns their values."""
    values = {}
    modules = {name: SimpleNamespace() for name in ("torch", "cupy")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for flag in (*ATTRIBUTES, *FUNCTIONS):
        if flag.module not in modules:
            continue
        path = lambda dotted: dotted.partition(".")[2]  # noqa: E731
        if len(flag.paths) == 1:
            put(modules[flag.module], path(flag.name), 1)
            continue
        getter, setter = flag.paths
        put(modules[flag.module], path(getter), lambda *key, getter=getter: values.get((getter, *key), 1))
        put(modules[flag.module], path(setter),
            lambda *key, getter=getter: values.update({(getter, *key[:-1]): key[-1]}))  # fmt: skip
    _add_handles(modules["torch"], modules["cupy"], values)
    return values


def _add_handles(torch, cupy, values):
    """Add what the table reads in ways of its own."""
    torch._GLOBAL_DEVICE_CONTEXT = SimpleNamespace()
    torch.set_default_device = lambda device: setattr(
        torch._GLOBAL_DEVICE_CONTEXT, "device_context", device and SimpleNamespace(device=device)
    )
    torch.is_inference_mode_enabled = lambda: values.get("mode", False)
    torch.inference_mode = lambda value: Held(values, "mode", value)
    torch.uint8 = None
    torch.frombuffer = lambda state, dtype: Bytes(state)
    for prefix in ("", "cuda."):
        put(torch, f"{prefix}get_rng_state", lambda prefix=prefix: values.get(f"{prefix}random", Bytes(b"1")))
        put(torch, f"{prefix}set_rng_state", lambda state, prefix=prefix: values.update({f"{prefix}random": state}))
    torch.cuda.is_initialized = lambda: True
    torch.cuda.current_device = lambda: values.get("device", 0)
    torch.cuda.set_device = lambda index: values.update(device=index)
    torch.cuda.current_stream = lambda: Held(values, "stream", values.get("stream", 0))
    torch.cuda.set_stream = lambda stream: stream.use()
    cupy.cuda.Device = lambda *index: Held(values, "cupy device", *(index or [values.get("cupy device", 0)]))
    cupy.cuda.get_current_stream = lambda: Held(values, "cupy stream", values.get("cupy stream", 0))


def next_stream(stream):
    """Another stream of the same stand-in."""
    return Held(stream._where, stream._name, 7)


IN_STAND_INS = {
    "torch.set_default_device": lambda torch, cupy: torch.set_default_device("meta"),
    "torch.inference_mode": lambda torch, cupy: torch.inference_mode(True).__enter__(),
    "torch.cuda.set_device": lambda torch, cupy: torch.cuda.set_device(1),
    "torch.cuda.set_stream": lambda torch, cupy: torch.cuda.set_stream(next_stream(torch.cuda.current_stream())),
    "cupy.cuda.Device.use": lambda torch, cupy: cupy.cuda.Device(1).use(),
    "cupy.cuda.Stream.use": lambda torch, cupy: next_stream(cupy.cuda.get_current_stream()).use(),
    "torch.random": lambda torch, cupy: torch.set_rng_state(Bytes(b"2")),
    "torch.cuda.random": lambda torch, cupy: torch.cuda.set_rng_state(Bytes(b"2")),
}


@pytest.mark.parametrize("flag", OF_LIBRARIES, ids=by_name)
def test_every_flag_of_a_library_is_restored_in_a_stand_in(stand_ins, flag):
    state, before = LibraryState.now(), flag.read()
    if flag.name in IN_STAND_INS:
        IN_STAND_INS[flag.name](sys.modules["torch"], sys.modules["cupy"])
    else:
        flag.write(2)
    assert flag.read() != before
    change = state.restore()
    assert ([] if flag.quiet else [flag.name], []) == (change.names, change.lasting)
    assert flag.read() == before


CHANGES = {
    "numpy.seterr": (lambda: np.seterr(divide="raise"), "numpy.seterr['divide']"),
    "numpy.set_printoptions": (lambda: np.set_printoptions(precision=3), "numpy.set_printoptions"),
    "os.environ": (lambda: os.environ.update(NVIDIA_TF32_OVERRIDE="1"), "os.environ['NVIDIA_TF32_OVERRIDE']"),
    "sys.path": (lambda: sys.path.insert(0, "/nowhere"), "sys.path"),
    "gc.isenabled": (lambda: __import__("gc").disable(), "gc.isenabled"),
    "os.getcwd()": (lambda: os.chdir("/"), "os.getcwd()"),
    "warnings.filters": (lambda: warnings.simplefilter("ignore"), None),
    "sys.setrecursionlimit": (lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1), None),
    "random": (random.random, None),
    "numpy.random": (lambda: np.random.random(), None),  # noqa: NPY002
}


@pytest.mark.parametrize("flag", OF_THE_INTERPRETER, ids=by_name)
def test_every_flag_of_the_interpreter_is_restored(flag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change, name = CHANGES[flag.name]
    state, before = LibraryState.now(), flag.read()
    change()
    assert flag.read() != before
    found = state.restore()
    assert (name and [name] or [], []) == (found.names, found.lasting)
    assert flag.read() == before


def test_variables_that_were_there_are_restored_and_a_library_may_add_its_own(monkeypatch):
    monkeypatch.setenv("OF_A_USER", "1")
    monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
    state = LibraryState.now()
    os.environ["CUTE_DSL_ARCH"] = "sm_90a"
    assert None is state.restore().reason
    assert "sm_90a" == os.environ.pop("CUTE_DSL_ARCH")
    del os.environ["OF_A_USER"]
    assert ["os.environ['OF_A_USER']"] == state.restore().names
    assert "1" == os.environ["OF_A_USER"]


def test_variables_that_a_compiler_sets_and_folders_of_a_package_are_its_own(monkeypatch):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    state = LibraryState.now()
    os.environ["TRITON_CACHE_DIR"] = "/cache"
    sys.path.append(part := f"{next(filter(None, sys.path))}/library/parts")
    assert None is state.restore().reason
    assert ("/cache", True) == (os.environ["TRITON_CACHE_DIR"], part in sys.path)
    first = next(filter(None, sys.path))
    sys.path.insert(0, "/elsewhere")
    sys.path.remove(first)
    assert ["sys.path"] == state.restore().names
    assert (first, part, False) == (next(filter(None, sys.path)), sys.path[-1], "/elsewhere" in sys.path)


def test_the_configuration_of_jax_and_the_knobs_of_triton_are_restored(monkeypatch):
    values = {"jax_enable_x64": False}
    jax = SimpleNamespace(config=SimpleNamespace(values=values, update=values.__setitem__))
    knobs = ModuleType("triton.knobs")
    knobs.base_knobs = type("base_knobs", (), {})
    knobs.compilation = knobs.base_knobs()
    for name, module in {"jax": jax, "triton.knobs": knobs}.items():
        monkeypatch.setitem(sys.modules, name, module)
    state = LibraryState.now()
    values["jax_enable_x64"] = knobs.compilation.always_compile = True
    assert ["jax.config.jax_enable_x64", "triton.knobs.compilation['always_compile']"] == state.restore().names
    assert ({"jax_enable_x64": False}, {}) == (values, vars(knobs.compilation))


def test_what_cannot_be_restored_is_reported_as_lasting(stand_ins, monkeypatch):
    torch = sys.modules["torch"]
    state = LibraryState.now()
    torch.set_default_dtype(2)
    monkeypatch.setattr(torch, "set_default_dtype", lambda value: None)
    change = state.restore()
    assert ["torch.get_default_dtype()"] == change.names == change.lasting


def test_a_flag_that_can_no_longer_be_read_has_changed(stand_ins):
    torch = sys.modules["torch"]
    state, read = LibraryState.now(), torch.get_default_dtype
    del torch.get_default_dtype
    assert ["torch.get_default_dtype()"] == state.restore().lasting
    torch.get_default_dtype = read


def test_many_changes_are_named_in_short(stand_ins):
    torch = sys.modules["torch"]
    state = LibraryState.now()
    for set_flag in (torch.set_default_dtype, torch.set_grad_enabled, torch.set_num_threads):
        set_flag(2)
    torch.backends.cudnn.benchmark = 2
    names = "torch.backends.cudnn.benchmark and torch.get_default_dtype() and torch.is_grad_enabled() and 1 more"
    assert f"it changed {names} and left them so" == state.restore().reason


def test_no_library_is_imported_to_read_its_flags(monkeypatch):
    for name in ("torch", "cupy", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    LibraryState.now().restore()
    assert not {"torch", "cupy", "jax"} & set(sys.modules)
    ready(None)


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    absent = type(LIBRARIES["torch"])("torch", "no_such_module", "torch", "torch", extra="peers")
    monkeypatch.setattr("prism_bench.backends.cuda.peers.library_state.LIBRARIES", {"torch": absent})
    with pytest.raises(BackendUnavailable, match="torch is not installed"):
        ready("torch")


def test_flags_have_names_of_their_own():
    assert len(FLAGS) == len({flag.name for flag in FLAGS}) == len(ATTRIBUTES) + len(FUNCTIONS) + len(OTHERS)


def test_a_capture_that_failed_leaves_no_generator_in_it():
    held = []
    generator = SimpleNamespace(clone_state=lambda: "free", graphsafe_set_state=held.append)
    cuda = SimpleNamespace(current_device=lambda: 1, default_generators=(None, generator))
    end_failed_capture(SimpleNamespace(cuda=cuda))
    assert ["free"] == held
