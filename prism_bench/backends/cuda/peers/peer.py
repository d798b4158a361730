"""Library calls on the kernel's own device arrays, timed by the same clock."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.backends.cuda.peers.library_state import end_failed_capture
from prism_bench.backends.cuda.peers.torch_forms import CompiledCall, named_peer, operators_of, prepared_call
from prism_bench.backends.cuda.timers import (
    ColdTimer,
    Harness,
    HotTimer,
    StreamNotHeld,
    adopted_arrays,
    captured,
    held_array,
    library_module,
    nodes_of_calls,
    refuse_idle_calls,
    work_items,
)
from prism_bench.errors import BackendUnavailable, MeasurementInvalid
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.peer import ArrayPackage, Form, PeerFacts, PeerKind
from prism_bench.units import count_text

EAGER = ("torch", "cupy")  # array packages, whose peers may be chains of calls; the other libraries offer kernels
XLA: ArrayPackage = "jax"  # compiled, on streams of XLA which wait for the timed one
_NO_GRAPH = "a CUDA graph of the timed stream does not capture the streams of XLA"
_CUPY_KERNEL = 2  # work items that one operator of CuPy may have: it may clear its result first, or reduce in two steps


class CallableTimers:
    """The cold and hot timers of any callable that works on the harness's stream."""

    def __init__(
        self,
        harness: Harness,
        call: Callable[[], object],
        library: ArrayPackage,
        least: Callable[[], object] | None = None,
        restore: Callable[[], object] | None = None,
    ) -> None:
        self._harness, self._call, self._library, self._least = harness, call, library, least
        self._restore = restore
        self._refusal = _NO_GRAPH if library == "jax" else ""
        self._nodes: list[int | None] = []  # of the graph captured last
        self._held: Callable[[], object] | None = None

    def launches(self) -> int | None:
        """Return how many work items one call enqueues on the device, found by capturing one in a CUDA graph.

        None where that is not possible, or the driver does not count.
        """
        try:
            self.capture(1)
        except MeasurementInvalid:
            return None
        return work_items(self._nodes)

    def timers(self) -> TimerFactories:
        """Factories by metric, as a runnable offers them."""
        return {
            "cold_time": lambda: ColdTimer(self._harness, self._holdable(), self._restore, least=self._least),
            "hot_time": lambda: HotTimer(self._harness, self._holdable(), self.capture),
        }

    @property
    def replays(self) -> bool:
        """Whether the call is timed as a CUDA graph, since a stream does not hold all that it enqueues."""
        return self._held not in (None, self._call)

    def _holdable(self) -> Callable[[], object]:
        """Return the call, or a graph of it where a held stream does not take all of its launches."""
        if self._held is None:
            try:
                self._harness.timed(self._call, cold=False)
                self._held = self._call
            except StreamNotHeld as error:
                try:
                    self._held = self.capture(1)
                except MeasurementInvalid:  # a call that waits for the device cannot be captured either
                    raise error from None
        return self._held

    def capture(self, launches: int) -> Callable[[], object]:
        """Return a replay of that many calls; MeasurementInvalid, later ones at once, if it cannot be captured."""
        if self._refusal:
            raise MeasurementInvalid(self._refusal)
        try:
            return self._torch_graph(launches) if self._library == "torch" else self._cupy_graph(launches)
        except MeasurementInvalid as error:
            self._refusal = str(error)
            raise
        except Exception as error:  # each library has its own way to say that a call cannot be captured
            self._refusal = f"the call cannot be captured in a CUDA graph ({str(error)[:120]})"
            raise MeasurementInvalid(self._refusal) from error

    def _torch_graph(self, launches: int) -> Callable[[], object]:
        import torch

        graph = torch.cuda.CUDAGraph()
        stream = torch_stream(self._harness.stream)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # an idle call is refused below
            try:
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
                    self._nodes = nodes_of_calls(self._harness.stream.ptr, self._call, launches)
            except Exception:
                end_failed_capture(torch)
                raise
        refuse_idle_calls(self._nodes)
        return graph.replay

    def _cupy_graph(self, launches: int) -> Callable[[], object]:
        self._nodes = []
        return captured(self._harness.stream, self._call, launches, self._nodes)


def least_xla_call(jax: Any, cupy: ModuleType) -> Callable[[], object]:
    """Return a call that adds two numbers by XLA, on its own streams as a peer's call is."""
    array, kept = cupy.ones(1, "float32"), list[Any]()
    add = jax.jit(lambda x: x + x).lower(jax.dlpack.from_dlpack(array)).compile()

    def call() -> object:
        kept[:] = [add(jax.dlpack.from_dlpack(array))]
        return cupy.from_dlpack(kept[0])

    call()
    return call


def torch_stream(stream: Any) -> Any:
    """CuPy's stream as PyTorch sees it."""
    import torch

    return torch.cuda.ExternalStream(stream.ptr)


class CudaPeer(Runnable):
    """A peer of a case on the arrays of the case's own runnable."""

    def __init__(self, cupy: ModuleType, harness: Harness, case: Case, name: str, runnable: Runnable) -> None:
        self._cupy, self._harness, self.case, self.inputs = cupy, harness, case, runnable.inputs
        self._peer, form = named_peer(case, name)
        self._library = self._peer.library
        if not self._library.is_installed():
            raise BackendUnavailable(self._library.why_absent)
        runnable.restore()  # what the kernel changes in place, it has changed by now
        arrays = runnable.arrays(array.name for array in case.spec.inputs)
        module = library_module(self._library, harness)
        offered = {**case.axes, **adopted_arrays(self._library, arrays, case.spec), self._library.name: module}
        self._eager = prepared_call(self._peer, offered, f"{case.spec.name}: peer {self._library.name}")
        self._compiled = CompiledCall(import_module("torch"), self._eager, form).__enter__() if form else None
        self._call: Callable[[], object] = self._compiled or self._eager
        is_xla = self._library.name == XLA
        least = least_xla_call(import_module(XLA), cupy) if is_xla else None
        self._clocks = CallableTimers(harness, self._call, XLA if is_xla else self._library.arrays, least)
        self._facts = self._known(form)
        self._result = None

    def __call__(self) -> None:
        self._result = self._call()

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        """Do nothing: a peer allocates its own results, so there is nothing to poison."""

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        self._cupy.cuda.runtime.deviceSynchronize()
        results = self._result if isinstance(self._result, tuple) else (self._result,)
        pairs = zip(self.case.spec.outputs, results, strict=False)
        return {output.name: _as_held(held_array(self._cupy, result, output), output.dtype) for output, result in pairs}

    def timers(self) -> TimerFactories:
        """Count what one call enqueues, then offer the clocks."""
        self._facts |= self._counts()
        return self._clocks.timers()

    def confirm(self) -> None:
        """Raise MeasurementInvalid where a call after the timing is not what it was before: its form has no time."""
        if self._compiled:
            self._compiled.require_same()
        before, after = self._facts.get("launches"), self._clocks.launches() if "launches" in self._facts else None
        if before != after:
            earlier = "an unknown number of kernels" if before is None else count_text(before, "kernel")
            raise MeasurementInvalid(f"a call launched {earlier} before it was timed, and {after} afterwards")

    def evidence(self) -> dict[str, Any]:
        """Return the peer's facts, as `PeerFacts`."""
        return {**self._facts, **({"enqueued": "CUDA graph"} if self._clocks.replays else {})}

    def __exit__(self, *exception: object) -> None:
        if self._compiled:
            self._compiled.__exit__(*exception)
        self._result, self._eager, self._call, self._compiled = None, _closed, _closed, None
        self._clocks = CallableTimers(self._harness, _closed, self._library.arrays)
        if self._library.arrays == "torch":
            import_module("torch").cuda.empty_cache()
        self._cupy.get_default_memory_pool().free_all_blocks()

    def _known(self, form: Form | None) -> PeerFacts:
        """Return the facts that are known before the first call."""
        facts = PeerFacts(library=self._library.name, version=self._library.installed_version(), form=self._form(form))
        if self._compiled and self._compiled.breaks:
            facts["breaks"] = self._compiled.breaks
        if self._peer.poor:
            facts["poor"] = self._peer.poor
        if self._peer.work:
            facts["work"] = self._peer.work
        return facts

    def _form(self, form: Form | None) -> Form:
        if form:
            return form
        return "eager" if self._library.name in EAGER else "library"

    def _counts(self) -> PeerFacts:
        """Return how many operators and work items one call has, and which kind of peer this makes it."""
        facts = PeerFacts()
        if self._library.name == "torch" and not self._compiled:
            facts["calls"] = operators_of(import_module("torch"), self._eager).calls
        self._call()  # a first call may load what a capture could not
        launches = self._clocks.launches()
        if launches is not None:
            facts["launches"] = launches
        facts["kind"] = self._kind(facts.get("calls"), launches)
        return facts

    def _kind(self, calls: int | None, launches: int | None) -> PeerKind:
        """Return the kind; CuPy does not report its operators, so that of its calls the work items decide."""
        if self._compiled or self._library.name == XLA:
            return "compiled"
        if self._library.name == "torch":
            return "library kernel" if calls is not None and calls <= 1 else "eager chain"
        if self._library.name == "cupy":
            return "library kernel" if launches is not None and launches <= _CUPY_KERNEL else "eager chain"
        return "library kernel"


def _as_held(result: Any, dtype: str) -> Any:
    """Return the result as the kernel's output would hold it: float64 of a library is rounded to float32."""
    return result.astype(dtype) if (str(result.dtype), str(dtype)) == ("float64", "float32") else result


def _closed() -> object:
    raise MeasurementInvalid("the peer is closed")
