"""Forms of a torch peer: its eager calls, and what torch.compile makes of them, with proof that this is what ran."""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Self

from prism_bench.backends.cuda.peers.torch_cache import shared_cache
from prism_bench.errors import MeasurementInvalid
from prism_bench.spec.peer import Form
from prism_bench.units import count_text

MODES: Mapping[Form, str | None] = {"compiled": None, "autotuned": "max-autotune-no-cudagraphs"}


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
        self._torch, self._mode = torch, MODES[form]
        self._modules = {name: value for name, value in bound.keywords.items() if isinstance(value, ModuleType)}
        self._arguments = {name: value for name, value in bound.keywords.items() if name not in self._modules}
        self._function, self._around = inner(bound.func), surroundings(bound.func)
        self._stack = ExitStack()
        self._call: Callable[..., object] = bound.func
        self._recompiling: tuple[type[Exception], ...] = ()
        self._first_graphs = self.breaks = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(configured(self._torch, self._form))
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
def configured(torch: ModuleType, form: Form) -> Generator[None]:
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
