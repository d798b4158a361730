"""Global state of the peers' libraries: flags and random states, saved before a peer and compared after it."""

import gc
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from prism_bench.errors import BackendUnavailable
from prism_bench.spec.peer import LIBRARIES

# Global flags of libraries and of the interpreter: how each is read and written, one table for all.
#
# A flag belongs to a module; it exists where that module is loaded and this version of it has the flag. Nothing here
# imports a library.

# Set by torch's compiler itself; another value of them would not be seen before the next process.
_OF_COMPILERS = (
    "TORCHINDUCTOR_CACHE_DIR", "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", "TORCH_WARM_POOL", "TRITON_CACHE_DIR",
    "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "CUDA_HOME", "CUBLAS_WORKSPACE_CONFIG", "KMP_DUPLICATE_LIB_OK",
    "DISABLE_CUPTI_LAZY_REINIT", "TEARDOWN_CUPTI", "TORCH_CUDA_ARCH_LIST", "PYTEST_CURRENT_TEST",
)  # fmt: skip
# Beginnings of the variables that change what more than one library does.
_OF_ALL = (
    "CUBLAS", "CUDA_", "CUDNN", "CUPY", "JAX", "MKL_", "NVIDIA_", "OMP_", "PYTHON", "PYTORCH", "TF_", "TORCH", "TRITON",
    "XLA",
)  # fmt: skip


@dataclass(frozen=True)
class GlobalFlag:
    """One global value of the library `module`, under the `name` that a reason gives it.

    `quiet` ones are restored and are no finding: random states, and what compilers change. `after` names a flag that
    shows the same value in another way: a reason names this one only where that one is unchanged. `paths` are the
    dotted names by which the flag is read and written, where these are all it takes.
    """

    name: str
    module: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    quiet: bool = False
    after: str | None = None
    detail: Callable[[Any, Any], str] = lambda before, now: ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Handle:
    """An object of a library that is the same as another one with the same `key`."""

    key: object
    value: Any = field(compare=False)


def _lookup(path: str) -> Any:
    """Return what a dotted path such as `torch.backends.cudnn.benchmark` names; its first module is loaded."""
    first, *names = path.split(".")
    return reduce(getattr, names, sys.modules[first])


def _attribute(path: str, after: str | None = None) -> GlobalFlag:
    """Return the flag that is an attribute."""
    owner, _, name = path.rpartition(".")
    return GlobalFlag(
        path,
        path.partition(".")[0],
        lambda: _lookup(path),
        lambda value: setattr(_lookup(owner), name, value),
        after=after,
        paths=(path,),
    )


def _functions(getter: str, setter: str, *arguments: Any, after: str | None = None) -> GlobalFlag:
    """Return the flag that one function returns and another one sets, both after the same leading arguments."""
    inside = ", ".join(map(repr, arguments))
    return GlobalFlag(
        f"{getter}({inside})",
        getter.partition(".")[0],
        lambda: _lookup(getter)(*arguments),
        lambda value: _lookup(setter)(*arguments, value),
        after=after,
        paths=(getter, setter),
    )


_TF32 = "torch.backends.cuda.matmul.allow_tf32"
_CUDNN_TF32 = "torch.backends.cudnn.allow_tf32"
_SDP = ("flash", "mem_efficient", "math", "cudnn")

ATTRIBUTES = (
    _attribute(_TF32),
    _attribute(_CUDNN_TF32),
    _attribute("torch.backends.cuda.matmul.fp32_precision", _TF32),
    _attribute("torch.backends.cudnn.conv.fp32_precision", _CUDNN_TF32),
    _attribute("torch.backends.cudnn.rnn.fp32_precision", _CUDNN_TF32),
    _attribute("torch.backends.cudnn.fp32_precision"),
    _attribute("torch.backends.fp32_precision"),
    _attribute("torch.backends.mkldnn.fp32_precision", "torch.backends.fp32_precision"),
    _attribute("torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction"),
    _attribute("torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction"),
    _attribute("torch.backends.cuda.matmul.allow_fp16_accumulation"),
    _attribute("torch.backends.cudnn.enabled"),
    _attribute("torch.backends.cudnn.benchmark"),
    _attribute("torch.backends.cudnn.deterministic"),
    _attribute("torch.backends.opt_einsum.enabled"),
    _attribute("torch.utils.deterministic.fill_uninitialized_memory"),
)
FUNCTIONS = (
    _functions("torch.get_float32_matmul_precision", "torch.set_float32_matmul_precision", after=_TF32),
    _functions("torch.get_default_dtype", "torch.set_default_dtype"),
    _functions("torch.is_grad_enabled", "torch.set_grad_enabled"),
    _functions("torch.is_autocast_enabled", "torch.set_autocast_enabled", "cuda"),
    _functions("torch.is_autocast_enabled", "torch.set_autocast_enabled", "cpu"),
    _functions("torch.get_autocast_dtype", "torch.set_autocast_dtype", "cuda"),
    _functions("torch.get_autocast_dtype", "torch.set_autocast_dtype", "cpu"),
    _functions("torch.is_autocast_cache_enabled", "torch.set_autocast_cache_enabled"),
    _functions("torch.get_deterministic_debug_mode", "torch.set_deterministic_debug_mode"),
    _functions("torch.is_anomaly_enabled", "torch.autograd.set_detect_anomaly"),
    _functions("torch.get_num_threads", "torch.set_num_threads"),
    _functions("torch.backends.mha.get_fastpath_enabled", "torch.backends.mha.set_fastpath_enabled"),
    *(_functions(f"torch.backends.cuda.{name}_sdp_enabled", f"torch.backends.cuda.enable_{name}_sdp") for name in _SDP),
    _functions(
        "torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
        "torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp",
    ),
    _functions("torch._C._get_sdp_priority_order", "torch._C._set_sdp_priority_order"),
    _functions("cupy._core.get_routine_accelerators", "cupy._core.set_routine_accelerators"),
    _functions("cupy._core.get_reduction_accelerators", "cupy._core.set_reduction_accelerators"),
    _functions("cupy._core.get_elementwise_accelerators", "cupy._core.set_elementwise_accelerators"),
    *(_functions("cupy._core.get_compute_type", "cupy._core.set_compute_type", kind) for kind in "efd"),
    _functions("cupy.cuda.get_allocator", "cupy.cuda.set_allocator"),
    _functions("os.getcwd", "os.chdir"),
)


def _default_device() -> Any:
    context = getattr(_lookup("torch._GLOBAL_DEVICE_CONTEXT"), "device_context", None)
    return None if context is None else context.device


_KEPT: list[Any] = []  # a mode that is entered again to restore it ends when its object does


def _enter_inference_mode(value: bool) -> None:
    mode = _lookup("torch.inference_mode")(value)
    mode.__enter__()
    _KEPT.append(mode)


def _initialized() -> None:
    if not _lookup("torch.cuda.is_initialized")():
        raise LookupError("no device of torch is in use")


def _torch_random() -> bytes:
    return _lookup("torch.get_rng_state")().numpy().tobytes()


def _set_torch_random(state: bytes) -> None:
    torch = sys.modules["torch"]
    torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _cuda_random() -> bytes:
    _initialized()
    return _lookup("torch.cuda.get_rng_state")().cpu().numpy().tobytes()


def _set_cuda_random(state: bytes) -> None:
    torch = sys.modules["torch"]
    torch.cuda.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _torch_stream() -> Handle:
    _initialized()
    stream = _lookup("torch.cuda.current_stream")()
    return Handle((stream.device_index, stream.cuda_stream), stream)


def _torch_device() -> int:
    _initialized()
    return _lookup("torch.cuda.current_device")()


def _cupy_stream() -> Handle:
    stream = _lookup("cupy.cuda.get_current_stream")()
    return Handle(stream.ptr, stream)


def _numpy_random() -> tuple[Any, ...]:
    name, keys, *rest = _lookup("numpy.random.get_state")()
    return (name, keys.tobytes(), *rest)


def _set_numpy_random(state: tuple[Any, ...]) -> None:
    numpy = sys.modules["numpy"]
    name, keys, *rest = state
    numpy.random.set_state((name, numpy.frombuffer(keys, numpy.uint32), *rest))


class Variables:
    """The environment variables, without those that a compiler or a library keeps for itself."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = {name: value for name, value in values.items() if name not in _OF_COMPILERS}

    def changed(self, later: "Variables") -> list[str]:
        """Return the names of those that are others later; a new one counts only where several libraries read it."""
        names = sorted(self.values.keys() | {name for name in later.values if name.startswith(_OF_ALL)})
        return [name for name in names if self.values.get(name) != later.values.get(name)]

    def __eq__(self, later: object) -> bool:
        return isinstance(later, Variables) and not self.changed(later)

    __hash__ = None  # type: ignore[assignment]  # it is compared, never a key

    def restore(self) -> None:
        """Set those that are others now as they were."""
        for name in self.changed(Variables(os.environ)):
            if name in self.values:
                os.environ[name] = self.values[name]
            else:
                del os.environ[name]


class SearchPath:
    """The folders of modules; folders inside of them that came later are no change, since libraries add their parts."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = list(folders)

    def __eq__(self, later: object) -> bool:
        return isinstance(later, SearchPath) and self.folders == [
            folder for folder in later.folders if folder in self.folders or not self._is_part(folder)
        ]

    __hash__ = None  # type: ignore[assignment]  # it is compared, never a key

    def restore(self) -> None:
        """Set the folders again, and keep later parts of them behind."""
        sys.path[:] = [
            *self.folders,
            *(folder for folder in sys.path if folder not in self.folders and self._is_part(folder)),
        ]

    def _is_part(self, folder: str) -> bool:
        return any(known and Path(folder).is_relative_to(known) for known in self.folders)


def _set_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]  # a list, typed as a sequence
    getattr(warnings, "_filters_mutated", lambda: None)()


def _first_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the first key whose value has changed, as it is written after the name of the table: `['HOME']`."""
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    return f"['{changed[0]}']" if changed else ""


OTHERS = (
    GlobalFlag("torch.set_default_device", "torch", _default_device,
               lambda value: _lookup("torch.set_default_device")(value)),
    GlobalFlag(
        "torch.inference_mode", "torch", lambda: _lookup("torch.is_inference_mode_enabled")(), _enter_inference_mode
    ),
    GlobalFlag("torch.cuda.set_device", "torch", _torch_device, lambda index: _lookup("torch.cuda.set_device")(index)),
    GlobalFlag(
        "torch.cuda.set_stream", "torch", _torch_stream, lambda stream: _lookup("torch.cuda.set_stream")(stream.value)
    ),
    GlobalFlag("cupy.cuda.Device.use", "cupy", lambda: _lookup("cupy.cuda.Device")().id,
               lambda index: _lookup("cupy.cuda.Device")(index).use()),
    # `use` would let the end of any `with` of a library go back to the null stream.
    GlobalFlag("cupy.cuda.Stream.use", "cupy", _cupy_stream, lambda stream: stream.value.__enter__()),
    GlobalFlag(
        "numpy.seterr", "numpy", lambda: _lookup("numpy.geterr")(), lambda value: _lookup("numpy.seterr")(**value),
        detail=_first_change,
    ),
    GlobalFlag("numpy.set_printoptions", "numpy", lambda: _lookup("numpy.get_printoptions")(),
               lambda value: _lookup("numpy.set_printoptions")(**value)),
    GlobalFlag("os.environ", "os", lambda: Variables(os.environ), Variables.restore,
               detail=lambda before, now: f"['{before.changed(now)[0]}']"),
    GlobalFlag("gc.isenabled", "gc", gc.isenabled, lambda value: gc.enable() if value else gc.disable()),
    GlobalFlag("sys.path", "sys", lambda: SearchPath(sys.path), SearchPath.restore),
    GlobalFlag("warnings.filters", "warnings", lambda: list(warnings.filters), _set_filters, quiet=True),
    GlobalFlag("sys.setrecursionlimit", "sys", sys.getrecursionlimit, sys.setrecursionlimit, quiet=True),
    GlobalFlag("random", "random", random.getstate, random.setstate, quiet=True),
    GlobalFlag("numpy.random", "numpy.random", _numpy_random, _set_numpy_random, quiet=True),
    GlobalFlag("torch.random", "torch", _torch_random, _set_torch_random, quiet=True),
    GlobalFlag("torch.cuda.random", "torch", _cuda_random, _set_cuda_random, quiet=True),
)  # fmt: skip


# Global state of the libraries around a peer: remembered before it, compared and restored after it.

FLAGS = (*ATTRIBUTES, *FUNCTIONS, *OTHERS)
_CONFIGURATIONS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
_COMPILERS = ("torch._dynamo", "torch._inductor.compile_fx")
_PASSES = 3  # a flag that shows another one's value may change it when it is written
_MOST_NAMES = 3
_UNREADABLE = object()
_USUAL = object()


@dataclass(frozen=True)
class StateChange:
    """Flags that a peer changed, as reasons name them; those in `lasting` could not be restored."""

    names: Sequence[str] = ()
    lasting: Sequence[str] = ()

    @property
    def reason(self) -> str | None:
        """Why the peer has no time; None where it changed nothing that counts."""
        if not self.names:
            return None
        more = len(self.names) - _MOST_NAMES
        listed = " and ".join([*self.names[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])])
        return f"it changed {listed} and left {'it' if len(self.names) == 1 else 'them'} so"


@dataclass(frozen=True)
class _Change:
    flag: GlobalFlag
    before: Any
    now: Any

    @property
    def name(self) -> str:
        return self.flag.name + (self.flag.detail(self.before, self.now) if self.now is not _UNREADABLE else "")


class LibraryState:
    """The values of all flags of those libraries that are loaded."""

    def __init__(self, values: Sequence[tuple[GlobalFlag, Any]]) -> None:
        self._values = values

    @classmethod
    def now(cls) -> "LibraryState":
        """Return the current state."""
        values = [(flag, _value(flag)) for flag in _loaded_flags()]
        return cls([(flag, value) for flag, value in values if value is not _UNREADABLE])

    def restore(self) -> StateChange:
        """Restore what has changed, and return what that was."""
        changed = first = self._changes()
        for _ in range(_PASSES):
            for change in changed:
                _write(change.flag, change.before)
            changed = self._changes() if changed else []
        names = {change.flag.name for change in first}
        findings = [change for change in first if not change.flag.quiet and change.flag.after not in names]
        return StateChange(
            [state.name for state in findings], [state.name for state in changed if not state.flag.quiet]
        )

    def _changes(self) -> list[_Change]:
        pairs = [_Change(flag, before, _value(flag)) for flag, before in self._values]
        return [pair for pair in pairs if not _same(pair.before, pair.now)]


def ready(name: str | None) -> None:
    """Import a library of the registry and set it up as peers find it: no TF32, no gradients, the current stream.

    BackendUnavailable where it is not installed. Without a name nothing happens.
    """
    if name is None:
        return
    _import_library(name)
    if LIBRARIES[name].arrays == "torch":
        cupy = sys.modules.get("cupy")
        set_up_torch(sys.modules["torch"], cupy.cuda.get_current_stream().ptr if cupy else None)


def _import_library(name: str) -> None:
    """Import a library of the registry, and what its arrays need; BackendUnavailable where it is not installed."""
    library = LIBRARIES[name]
    if not library.is_installed():
        raise BackendUnavailable(library.why_absent)
    import_module(library.arrays)
    import_module(library.module)
    if library.arrays == "torch":
        for module in _CONFIGURATIONS:
            import_module(module)


def import_ahead(name: str) -> None:
    """Import a library of the registry with what its first use would import: for torch its compilers."""
    _import_library(name)
    if name == "torch":
        for module in _COMPILERS:
            import_module(module)


def set_up_torch(torch: Any, stream: int | None) -> None:
    """Set torch as peers find it: no TF32, no gradients, and the stream of that address, if any, as the current one."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    if stream is not None:
        torch.cuda.set_stream(torch.cuda.ExternalStream(stream))
        _settle_attention(torch)


@cache
def _settle_attention(torch: Any) -> None:
    """Call attention once, so that torch orders its kernels as this device wants them.

    The first call of a process does that, once for good. A peer that made it would be found to have changed the order,
    and with the former order restored, later peers would run without cuDNN where torch prefers it.
    """
    some = torch.zeros((1, 1, 64, 64), dtype=torch.float16, device="cuda")
    torch.nn.functional.scaled_dot_product_attention(some, some, some)


def end_failed_capture(torch: Any) -> None:
    """Give torch's device generator a state that is in no capture: one whose capture failed stays in it for good.

    Every later call that draws numbers, such as a recurrent layer of cuDNN, would raise.
    """
    with suppress(RuntimeError, AttributeError):  # the failure of the capture is what is reported
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())


def _loaded_flags() -> Iterator[GlobalFlag]:
    """Yield the flags of the libraries that are loaded, in the order in which they are restored."""
    yield from (flag for flag in FLAGS if flag.module in sys.modules)
    yield from (_configuration(sys.modules[name]) for name in _CONFIGURATIONS if name in sys.modules)
    if "jax" in sys.modules:
        yield _jax_flags(sys.modules["jax"])
    if "triton.knobs" in sys.modules:
        yield from _triton_knobs(sys.modules["triton.knobs"])


def _configuration(module: Any) -> GlobalFlag:
    """Return all keys of a configuration of torch's compilers as one flag; an alias is the key of another one."""

    def read() -> dict[str, Any]:
        # The entries' own fields: asking the module for 750 keys takes milliseconds, around each peer.
        return {key: _setting(entry) for key, entry in module._config.items() if entry.alias is None}

    def write(values: dict[str, Any]) -> None:
        now = read()
        for key in [key for key in values if not _same(values[key], now.get(key))]:
            if values[key] is _USUAL:
                module._config[key].user_override = _unset(module._config[key])
                module._is_dirty = True
            else:
                setattr(module, key, _copied(values[key]))

    return GlobalFlag(module.__name__, module.__name__, read, write, detail=_first_key)


def _setting(entry: Any) -> Any:
    """Return what a program set; `_USUAL` where it set nothing, or what the key would be without it.

    PyTorch's own `config.patch` leaves the usual value as one that was set.
    """
    value = entry.user_override
    return _USUAL if value is _unset(entry) or _same(value, _usual(entry)) else _copied(value)


def _usual(entry: Any) -> Any:
    """Return what the key is where no program sets it; what a remote switch would say is left out."""
    return entry.default if entry.env_value_default is _unset(entry) else entry.env_value_default


def _unset(entry: Any) -> Any:
    """Return the mark of an entry that no program has set."""
    return type(entry).user_override


def _jax_flags(jax: Any) -> GlobalFlag:
    def write(values: dict[str, Any]) -> None:
        now = jax.config.values
        for key in [key for key in values if not _same(values[key], now.get(key))]:
            jax.config.update(key, values[key])

    return GlobalFlag("jax.config", "jax", lambda: dict(jax.config.values), write, detail=_first_key)


def _copied(value: Any) -> Any:
    return deepcopy(value) if isinstance(value, list | dict | set) else value


def _first_key(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the first key whose value has changed, as an attribute; how many more there are follows."""
    changed = sorted(key for key in before.keys() | now.keys() if not _same(before.get(key), now.get(key)))
    more = f" ({len(changed) - 1} more keys)" if len(changed) > 1 else ""
    return f".{changed[0]}{more}" if changed else ""


def _triton_knobs(knobs: Any) -> Iterator[GlobalFlag]:
    """Yield each group of Triton's knobs; what is set there by a program is in the attributes of the group."""

    def flag(name: str, group: Any) -> GlobalFlag:
        def write(values: dict[str, Any]) -> None:
            vars(group).clear()
            vars(group).update(values)

        return GlobalFlag(f"triton.knobs.{name}", "triton", lambda: dict(vars(group)), write, detail=_first_change)

    yield from (flag(name, group) for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs))


def _value(flag: GlobalFlag) -> Any:
    """Return the flag's value; `_UNREADABLE` where this version has no such flag, or it cannot be read."""
    try:
        return flag.read()
    except Exception:  # a library may raise anything here, and what it raises is part of its state
        return _UNREADABLE


def _write(flag: GlobalFlag, value: Any) -> None:
    try:
        flag.write(value)
    except Exception:  # what could not be restored is noticed when it is read again
        return


def _same(before: Any, now: Any) -> bool:
    try:
        return before is now or bool(before == now)
    except Exception:  # values without a truth of their equality, such as arrays
        return False
