"""Forms of a torch peer: eager calls, what torch.compile makes of them, its caches and its operators."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from prism_bench.backends.base import kept_build
from prism_bench.errors import MeasurementInvalid
from prism_bench.io.files import SHARED, lock, writable_cache
from prism_bench.monitor.nvml import cache_of_gpu
from prism_bench.spec import arguments as byname
from prism_bench.spec.case import Case
from prism_bench.spec.peer import AUTOTUNED_LABELS, COMPILED_FORMS, Form, Peer, form_name
from prism_bench.units import count_text

# Inductor's and Triton's caches below ours, and their benchmarks one at a time, for all processes of one GPU.

_FORMS = "TORCHINDUCTOR_CACHE_DIR"  # what Inductor keeps of each form is in a folder of the form
_TRITON = "TRITON_CACHE_DIR"
_LOCK = "benchmark.lock"
_CACHE = "inductor"
_DESCENT = b'"found_by_coordesc": true'


def cache_variables(torch: ModuleType, form: Form) -> dict[str, str]:
    """Return the environment variables that lead Inductor and Triton to our cache, one for each version of torch.

    Forms and GPUs share the kernels that Triton compiles, but not what Inductor chose among their configurations: the
    one would not accept the other's choice, and replace it by its own.
    """
    version = str(torch.__version__)
    return {_FORMS: str(_folder(torch) / form), _TRITON: str(writable_cache(_CACHE) / version / "triton")}


@contextmanager
def shared_cache(torch: ModuleType, form: Form) -> Generator[None]:
    """Let Inductor and Triton use our cache of a form; afterwards the environment and the benchmarks are as before.

    Both time the configurations that they choose from. The processes that compile ahead share one GPU, so each of its
    benchmarks waits for the lock: what another process runs meanwhile would decide in place of the code.
    """
    with _variables(cache_variables(torch, form)), _one_benchmark_at_a_time(_folder(torch) / _LOCK):
        yield


def forget_choices() -> int:
    """Remove what Inductor chose on this GPU among given configurations, by any version of torch; return the number.

    The compiled code stays: a process that is alone on the device times the configurations again. A choice found by
    coordinate descent stays too, since finding it takes seconds.
    """
    found = [
        file
        for file in writable_cache(cache_of_gpu(_CACHE)).rglob("*.best_config")
        if _DESCENT not in file.read_bytes()
    ]
    for file in found:
        file.unlink(missing_ok=True)
    return len(found)


def _folder(torch: ModuleType) -> Path:
    return writable_cache(cache_of_gpu(_CACHE)) / str(torch.__version__)


@contextmanager
def _variables(values: Mapping[str, str]) -> Generator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _one_benchmark_at_a_time(file: Path) -> Generator[None]:
    kind: Any = type(import_module("torch._inductor.runtime.benchmarking").benchmarker)
    original: Callable[..., Any] = kind.benchmark_gpu

    def alone(*arguments: Any, **named: Any) -> Any:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w") as guard:
            lock(guard.fileno())
            return original(*arguments, **named)

    kind.benchmark_gpu = alone
    try:
        yield
    finally:
        kind.benchmark_gpu = original


# Forms of a torch peer: its eager calls, and what torch.compile makes of them, with proof that this is what ran.

_MODES: Mapping[Form, str | None] = {"compiled": None, "autotuned": "max-autotune-no-cudagraphs"}


class CompiledCall(AbstractContextManager["CompiledCall"]):
    """The call of a torch peer compiled for its arguments, alone in a clean Dynamo; call it in its `with` block.

    `breaks` counts the places where the graph broke and Python went on, `graphs` the graphs compiled so far. A peer
    that ran eagerly has none, and raises MeasurementInvalid at the beginning of the block, as does one that fails to
    compile. One that would be compiled again raises where it is called: no call falls back to eager silently.
    """

    def __init__(self, torch: ModuleType, call: Callable[[], object], form: Form) -> None:
        """Take a peer's function with all its arguments bound, or a call that needs none."""
        bound = call if isinstance(call, partial) else partial(call)
        self._form: Form = form
        self._torch, self._mode = torch, _MODES[form]
        self._modules = {name: value for name, value in bound.keywords.items() if isinstance(value, ModuleType)}
        self._arguments = {name: value for name, value in bound.keywords.items() if name not in self._modules}
        self._function, self._around = inner(bound.func), surroundings(bound.func)
        self._stack = ExitStack()
        self._call: Callable[..., object] = bound.func
        self._recompiling: tuple[type[Exception], ...] = ()
        self._first_graphs = self.breaks = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(_configured(self._torch, self._form))
            try:
                self._compile()
            except MeasurementInvalid:
                raise
            except Exception as error:
                raise MeasurementInvalid(f"torch.compile fails: {_in_short(error)}") from error
            dynamo = import_module("torch._dynamo")
            stack.enter_context(dynamo.config.patch(error_on_recompile=True))
            self._recompiling = dynamo.exc.RecompileError, dynamo.exc.FailOnRecompileLimitHit
            self._stack = stack.pop_all()
        return self

    def __call__(self) -> object:
        try:
            with self._around(self._torch):
                return self._call(**self._arguments)
        except self._recompiling as error:
            raise MeasurementInvalid(f"torch.compile would compile it again: {_in_short(error)}") from error

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
        self._call, self._arguments = _closed, {}

    @property
    def graphs(self) -> int:
        """How many graphs were compiled since the beginning of the block."""
        return _counted("stats", "unique_graphs")

    def require_same(self) -> None:
        """Raise MeasurementInvalid where something was compiled since the first call: the calls are not all alike."""
        if self.graphs != self._first_graphs:
            raise MeasurementInvalid(
                "torch.compile compiled it again while it was timed "
                f"({count_text(self._first_graphs, 'graph')} before, "
                f"{self.graphs} after)"
            )

    def _compile(self) -> None:
        """Compile as one graph, else in parts; MeasurementInvalid where no part of it was compiled."""
        refused: type[Exception] = import_module("torch._dynamo.exc").TorchDynamoException
        try:
            self._first_call(fullgraph=True)
        except refused:
            self._first_call(fullgraph=False)
            self.breaks = _counted("graph_break")
        self._first_graphs = self.graphs
        if not self.graphs or not _counted("stats", "calls_captured"):
            raise MeasurementInvalid("torch.compile compiled nothing of it: it ran eagerly")

    def _first_call(self, fullgraph: bool) -> None:
        """Compile: the second call must find what the first one compiled, as all that are timed."""
        self._torch._dynamo.reset()
        _counters().clear()
        function = partial(self._function, **self._modules) if self._modules else self._function
        self._call = self._torch.compile(function, dynamic=False, fullgraph=fullgraph, mode=self._mode)
        self()


@contextmanager
def _configured(torch: ModuleType, form: Form) -> Generator[None]:
    """Give Dynamo and Inductor the configuration of every compiled peer; afterwards it is as it was before.

    Dynamo raises where it would fall back to eager. Inductor compiles in this process, into our own cache, which the
    processes that compiled ahead have filled: a pool of compilers would take the cores from what is measured.
    """
    with shared_cache(torch, form):
        dynamo, inductor = import_module("torch._dynamo"), import_module("torch._inductor.config")
        with dynamo.config.patch(fail_on_recompile_limit_hit=True), inductor.patch(compile_threads=1):
            try:
                yield
            finally:
                dynamo.reset()


def surroundings(function: Callable[..., object]) -> Callable[[ModuleType], AbstractContextManager[object]]:
    """Return what a peer runs within: flags that it sets for its call, which no compiled graph could set."""
    return getattr(function, "surroundings", lambda torch: nullcontext())


def inner(function: Callable[..., object]) -> Callable[..., object]:
    """Return what of a peer is compiled: the function within its surroundings."""
    return getattr(function, "__wrapped__", function) if hasattr(function, "surroundings") else function


def _closed(**arguments: object) -> object:
    raise MeasurementInvalid("the peer is closed")


def _counters() -> Any:
    return import_module("torch._dynamo.utils").counters


def _counted(group: str, name: str | None = None) -> int:
    """Return one of Dynamo's counters, or the sum of a group."""
    found = _counters()[group]
    return sum(found.values()) if name is None else found[name]


def _in_short(error: Exception) -> str:
    """Return the first lines of an error of Dynamo, which spreads a reason over several of them."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:180]


# Operators of a torch peer: which of the library's operators one eager call runs, and what kind of work they do.

# Operators without a kernel that their schema does not mark as views.
_METADATA = frozenset(
    ("_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "is_same_size",
     "resize_", "record_stream", "set_")
)  # fmt: skip
_PRODUCTS = frozenset(
    ("mm", "bmm", "addmm", "addmm_", "baddbmm", "addbmm", "_scaled_mm", "linear", "_addmm_activation", "convolution",
     "_convolution", "cudnn_convolution", "cudnn_convolution_relu", "cudnn_convolution_add_relu", "_grouped_mm")
)  # fmt: skip
_VECTOR_PRODUCTS = frozenset(("mv", "addmv"))
_NORMS = frozenset(
    ("native_layer_norm", "native_batch_norm", "native_group_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
     "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update", "rms_norm",
     "_fused_rms_norm", "_softmax", "_log_softmax", "_safe_softmax")
)  # fmt: skip
_ATTENTION = ("scaled_dot_product", "_flash_attention", "_efficient_attention", "_cudnn_attention")


@dataclass(frozen=True)
class Operators:
    """Names of the operators that one call runs, in order, without views and without what only allocates.

    `without_tensor_cores` is whether one of them is a product of matrices that tensor cores do not take: in float64, or
    in float32 where TF32 is not allowed.
    """

    names: tuple[str, ...]
    without_tensor_cores: bool = False

    @property
    def calls(self) -> int:
        """How many operators there are."""
        return len(self.names)

    @property
    def gains_by_autotuning(self) -> bool:
        """Whether there is a product, a norm or attention among them, for which max-autotune has several kernels.

        Products without tensor cores are excluded: Inductor takes about half a minute for each and finds nothing faster
        than the library's kernel (within 0.3 % of it on an H200, 2026-11-22).
        """
        return not self.without_tensor_cores and any(map(_gains, self.names))


def _gains(name: str) -> bool:
    known = name in _PRODUCTS or name in _VECTOR_PRODUCTS or name in _NORMS
    return known or any(part in name for part in _ATTENTION)


def operators_of(torch: ModuleType, call: Callable[[], object]) -> Operators:
    """Run `call` once, eagerly, and return the operators that PyTorch dispatched for it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names: list[str] = []
    products: list[bool] = []

    class OperatorTrace(TorchDispatchMode):
        """Notes each operator and runs it."""

        def __torch_dispatch__(
            self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            if _works(func):
                names.append(func.overloadpacket.__name__)
                products.extend([_without_tensor_cores(torch, args)] if names[-1] in _PRODUCTS else [])
            return func(*args, **(kwargs or {}))

    with OperatorTrace():
        call()
    return Operators(tuple(names), any(products))


def _without_tensor_cores(torch: ModuleType, arguments: tuple[Any, ...]) -> bool:
    """Return whether tensor cores do not take the operands of a product as the library's flags are now."""
    types = {argument.dtype for argument in arguments if isinstance(argument, torch.Tensor)}
    wide = {torch.float64, torch.complex64, torch.complex128}
    if not torch.backends.cuda.matmul.allow_tf32:
        wide.add(torch.float32)
    return bool(types & wide)


def _works(operator: Any) -> bool:
    """Return whether an operator has work for the device: a view shares its argument's memory and has none."""
    if operator.namespace == "prim" or operator.overloadpacket.__name__ in _METADATA:
        return False
    returns = operator._schema.returns
    return not any(value.alias_info is not None and not value.alias_info.is_write for value in returns)


# Forms of a case's torch peers: which there are, found without running anything on the device.

_Kept = type(lru_cache(lambda: None))


def peer_names(case: Case) -> tuple[str, ...]:
    """Return the names of the case's peers; each torch peer is followed by its compiled forms.

    The autotuned form is one of S1 and S2 where the peer has a product, a norm or attention.
    """
    names: list[str] = []
    for name in case.spec.peers:
        peer = case.spec.peer(name)
        names += [name, *(form_name(name, form) for form in _forms(case, name, peer))]
    return tuple(dict.fromkeys(names))


def named_peer(case: Case, name: str) -> tuple[Peer, Form | None]:
    """Return the peer of the spec that has this name or is compiled under it, and the form; LookupError without one."""
    if name in case.spec.peers:
        return case.spec.peer(name), None
    for form in COMPILED_FORMS:
        base = name.removesuffix(form_name("", form))
        if base != name and base in case.spec.peers:
            return case.spec.peer(base), form
    raise LookupError(f"{case.name} has no peer called {name}")


def _forms(case: Case, name: str, peer: Peer) -> list[Form]:
    if peer.library.name != "torch" or not peer.library.is_installed():
        return []
    if case.label not in AUTOTUNED_LABELS:
        return ["compiled"]
    return list(COMPILED_FORMS) if _gains_by_autotuning(case, name) else ["compiled"]


@lru_cache(maxsize=64)  # asked for again for each step of the case
def _gains_by_autotuning(case: Case, name: str) -> bool:
    """Return whether the peer has an operator that gains by autotuning, as an earlier process kept it for this code."""
    torch, call = import_module("torch"), inner(case.spec.peer(name).call)
    code = getattr(call, "__code__", None)
    known = code and (code.co_filename, code.co_firstlineno, code.co_code.hex(), code.co_names)
    key = (
        "autotuned",
        torch.__version__,
        case.name,
        name,
        known,
        _sources(Path(code.co_filename).parent) if code else "",
    )

    def look() -> bytes:
        operators = _operators(case, name)
        return b"yes" if operators and operators.gains_by_autotuning else b"no"

    return (kept_build(key, look) if code else look()) == b"yes"


@lru_cache(maxsize=256)
def _sources(folder: Path) -> str:
    """Return a digest of all that a spec in this folder and what it shares with others say."""
    digest = sha256()
    shared = [file for kind in SHARED for file in (folder.parent / kind).rglob("*.py")]
    for file in sorted([*folder.glob("*.py"), *shared]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _operators(case: Case, name: str) -> Operators | None:
    """Return the operators of a peer for tensors that are only shapes; None where they depend on values.

    The set-up of a peer that prepares itself is not run with only shapes: it may time, or capture a graph.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    torch, peer = import_module("torch"), case.spec.peer(name)
    if peer.prepares:
        return None
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            offered = {**case.axes, **_empty_tensors(torch, case), "torch": torch}
            return operators_of(torch, prepared_call(peer, offered, f"{case.spec.name}: peer {name}"))
    except Exception:  # whatever it is, it is raised again where the peer is timed, and reported there
        return None
    finally:
        _forget(inner(peer.call))


def _forget(function: Callable[..., object]) -> None:
    """Clear what the functions of a peer's module keep: a tensor that is only a shape would be used in real calls."""
    for value in getattr(function, "__globals__", {}).values():
        if isinstance(value, _Kept):
            value.cache_clear()


def _empty_tensors(torch: ModuleType, case: Case, device: str = "cuda") -> dict[str, Any]:
    """Return tensors like the case's inputs on the device, with any values; within a fake mode, only shapes."""
    return {
        array.name: torch.empty(case.sizes.shape(array.name), dtype=getattr(torch, str(array.dtype)), device=device)
        for array in case.spec.inputs
    }


def prepared_call(peer: Peer, offered: Mapping[str, Any], where: str) -> Callable[[], object]:
    """Return the call to time, with the names that it asks for bound; set up if the peer prepares itself."""
    make = byname.call if peer.prepares else byname.bind
    return make(peer.call, viewed(peer, offered), where)


def viewed(peer: Peer, offered: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is offered to the call, with the inputs that it takes as another type."""
    if not peer.viewed:
        return offered
    torch = import_module("torch")
    views = {name: offered[name].view(getattr(torch, dtype)) for name, dtype in peer.viewed.items()}
    return {**offered, **views}
