"""Inductor's and Triton's caches below ours, and their benchmarks one at a time, for all processes of one GPU."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from prism_bench.io.files import lock, writable_cache
from prism_bench.monitor.visible_gpu import cache_of_gpu
from prism_bench.spec.peer import Form

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
    return {
        _FORMS: str(_folder(torch) / form),
        _TRITON: str(writable_cache(_CACHE) / version / "triton"),
    }


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
