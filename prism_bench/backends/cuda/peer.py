"""Library calls on the kernel's own device arrays, timed by the same clock."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from prism_bench import byname
from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.backends.cuda.graph import captured, nodes_of_calls, refuse_idle_calls
from prism_bench.backends.cuda.harness import Harness
from prism_bench.backends.cuda.timers import ColdTimer, HotTimer
from prism_bench.case import Case
from prism_bench.errors import MeasurementInvalid, SpecError
from prism_bench.inputs import InputArray

LIBRARIES = ("torch", "cupy")


def library_of(function: Callable[..., Any]) -> str:
    """Return the library that a peer takes as a parameter."""
    asked = [name for name in byname.wanted(function) if name in LIBRARIES]
    if len(asked) != 1:
        raise SpecError(f"a peer asks for one of {', '.join(LIBRARIES)}, not for {asked or 'none'}")
    return asked[0]


def available(case: Case) -> tuple[str, ...]:
    """Return the peers of the case whose library is installed."""
    return tuple(name for name, function in case.spec.peers.items() if find_spec(library_of(function)))


class CallableTimers:
    """The cold and hot timers of any callable that works on the harness's stream."""

    def __init__(self, harness: Harness, call: Callable[[], object], library: str) -> None:
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
        self._function = case.spec.peers[name]
        self._library = library_of(self._function)
        runnable.restore()  # what the kernel changes in place, it has changed by now
        arrays = runnable.arrays(array.name for array in case.spec.inputs)
        self._offered = {**case.axes, **self._adopt(arrays), self._library: self._module()}
        self._result = None

    def __call__(self) -> None:
        self._result = byname.call(self._function, self._offered, f"{self.case.spec.name}: peer {self._library}")

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        """Do nothing: a peer allocates its own results, so there is nothing to poison."""

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        self._cupy.cuda.runtime.deviceSynchronize()
        results = self._result if isinstance(self._result, tuple) else (self._result,)
        outputs = [output.name for output in self.case.spec.outputs]
        return {name: self._cupy.asarray(result) for name, result in zip(outputs, results, strict=False)}

    def timers(self) -> TimerFactories:
        names = byname.wanted(self._function)
        bound = {name: self._offered[name] for name in names}
        return CallableTimers(self._harness, lambda: self._function(**bound), self._library).timers()

    def __exit__(self, *exception: object) -> None:
        self._result, self._offered = None, {}
        if self._library == "torch":
            self._module().cuda.empty_cache()
        self._cupy.get_default_memory_pool().free_all_blocks()

    def _adopt(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._library == "cupy":
            return arrays
        return {name: self._module().as_tensor(array, device="cuda") for name, array in arrays.items()}

    def _module(self) -> ModuleType:
        module = import_module(self._library)
        if self._library == "torch":
            module.backends.cuda.matmul.allow_tf32 = False
            module.backends.cudnn.allow_tf32 = False
            module.cuda.set_stream(torch_stream(self._harness.stream))
            module.set_grad_enabled(False)
        return module
