"""Library calls on the kernel's own device arrays, timed by the same clock."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from prism_bench import byname
from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.backends.cuda.graph import captured, nodes_of_calls, refuse_idle_calls
from prism_bench.backends.cuda.harness import Harness
from prism_bench.backends.cuda.timers import ColdTimer, HotTimer
from prism_bench.case import Case
from prism_bench.errors import BackendUnavailable, MeasurementInvalid
from prism_bench.inputs import InputArray
from prism_bench.libraries import ArrayPackage
from prism_bench.peer import Form, PeerFacts


class CallableTimers:
    """The cold and hot timers of any callable that works on the harness's stream."""

    def __init__(self, harness: Harness, call: Callable[[], object], library: ArrayPackage) -> None:
        self._harness, self._call, self._library = harness, call, library

    def timers(self) -> TimerFactories:
        """Factories by metric, as a runnable offers them."""
        return {
            "cold_time": lambda: ColdTimer(self._harness, self._call),
            "hot_time": lambda: HotTimer(self._harness, self._call, self._capture),
        }

    def _capture(self, launches: int) -> Callable[[], object]:
        try:
            return self._torch_graph(launches) if self._library == "torch" else self._cupy_graph(launches)
        except MeasurementInvalid:
            raise
        except Exception as error:  # each library has its own way to say that a call cannot be captured
            raise MeasurementInvalid(f"the call cannot be captured in a CUDA graph ({str(error)[:120]})") from error

    def _torch_graph(self, launches: int) -> Callable[[], object]:
        import torch

        graph = torch.cuda.CUDAGraph()
        stream = torch_stream(self._harness.stream)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # an idle call is refused below
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
                nodes = nodes_of_calls(self._harness.stream.ptr, self._call, launches)
        refuse_idle_calls(nodes)
        return graph.replay

    def _cupy_graph(self, launches: int) -> Callable[[], object]:
        return captured(self._harness.stream, self._call, launches)


def torch_stream(stream: Any) -> Any:
    """CuPy's stream as PyTorch sees it."""
    import torch

    return torch.cuda.ExternalStream(stream.ptr)


class CudaPeer(Runnable):
    """A peer of a case on the arrays of the case's own runnable."""

    def __init__(self, cupy: ModuleType, harness: Harness, case: Case, name: str, runnable: Runnable) -> None:
        self._cupy, self._harness, self.case, self.inputs = cupy, harness, case, runnable.inputs
        self._peer = case.spec.peer(name)
        self._library = self._peer.library
        if not self._library.is_installed():
            raise BackendUnavailable(self._library.why_absent)
        runnable.restore()  # what the kernel changes in place, it has changed by now
        arrays = runnable.arrays(array.name for array in case.spec.inputs)
        self._offered = {**case.axes, **self._adopt(arrays), self._library.name: self._module()}
        self._call = self._prepared()
        self._result = None

    def __call__(self) -> None:
        self._result = self._call()

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        """Do nothing: a peer allocates its own results, so there is nothing to poison."""

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        self._cupy.cuda.runtime.deviceSynchronize()
        results = self._result if isinstance(self._result, tuple) else (self._result,)
        outputs = [output.name for output in self.case.spec.outputs]
        return {name: self._cupy.asarray(result) for name, result in zip(outputs, results, strict=False)}

    def timers(self) -> TimerFactories:
        return CallableTimers(self._harness, self._call, self._library.arrays).timers()

    def evidence(self) -> dict[str, Any]:
        """Return the peer's facts, as `PeerFacts`."""
        found = PeerFacts(library=self._library.name, version=self._library.installed_version(), form=self._form())
        if self._peer.poor:
            found["poor"] = self._peer.poor
        if self._peer.work:
            found["work"] = self._peer.work
        return dict(found)

    def __exit__(self, *exception: object) -> None:
        self._result, self._offered, self._call = None, {}, _closed
        if self._library.arrays == "torch":
            import_module("torch").cuda.empty_cache()
        self._cupy.get_default_memory_pool().free_all_blocks()

    def _form(self) -> Form:
        return "eager" if self._library.name in ("torch", "cupy") else "library"

    def _prepared(self) -> Callable[[], object]:
        """Return the call to time, with the names that it asks for bound; set up if the peer prepares itself."""
        where = f"{self.case.spec.name}: peer {self._library.name}"
        make = byname.call if self._peer.prepares else byname.bind
        return make(self._peer.call, self._offered, where)

    def _adopt(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the device arrays as arrays of the library's array package; no copies are made."""
        if self._library.arrays == "cupy":
            return arrays
        if self._library.arrays == "jax":
            jax = import_module("jax")
            return {name: jax.dlpack.from_dlpack(array) for name, array in arrays.items()}
        torch = import_module("torch")
        return {name: torch.as_tensor(array, device="cuda") for name, array in arrays.items()}

    def _module(self) -> ModuleType:
        if self._library.arrays == "torch":
            torch = import_module("torch")
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
            torch.cuda.set_stream(torch_stream(self._harness.stream))
            torch.set_grad_enabled(False)
        return import_module(self._library.module)


def _closed() -> object:
    raise MeasurementInvalid("the peer is closed")
