"""The Python API: `benchmark`, `prepare`, `load`, `matmul` and online tuning, each loaded on first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism_bench.api.callable import Benchmark, benchmark
    from prism_bench.api.catalogue_kernel import prepare
    from prism_bench.api.online import OnlineRunnable
    from prism_bench.api.products import Matmul, matmul
    from prism_bench.api.versus import CallableComparison, compare
    from prism_bench.record.store import load
    from prism_bench.workflows.tuning.online import OnlineTuner

_HOMES = {
    "Benchmark": "api.callable",
    "CallableComparison": "api.versus",
    "Matmul": "api.products",
    "OnlineRunnable": "api.online",
    "OnlineTuner": "workflows.tuning.online",
    "benchmark": "api.callable",
    "compare": "api.versus",
    "load": "record.store",
    "matmul": "api.products",
    "prepare": "api.catalogue_kernel",
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
