"""The Python API: `benchmark`, `prepare`, `load`, `matmul` and online tuning, each loaded on first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism_bench.api.callables import Benchmark, CallableComparison, benchmark, compare
    from prism_bench.api.kernels import Matmul, OnlineRunnable, matmul, prepare
    from prism_bench.record.store import load
    from prism_bench.workflows.tuning.search import OnlineTuner

_HOMES = {
    "Benchmark": "api.callables",
    "CallableComparison": "api.callables",
    "Matmul": "api.kernels",
    "OnlineRunnable": "api.kernels",
    "OnlineTuner": "workflows.tuning.search",
    "benchmark": "api.callables",
    "compare": "api.callables",
    "load": "record.store",
    "matmul": "api.kernels",
    "prepare": "api.kernels",
}

__all__ = [
    "Benchmark", "CallableComparison", "Matmul", "OnlineRunnable", "OnlineTuner", "benchmark", "compare", "load",
    "matmul", "prepare",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"prism_bench.{_HOMES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
