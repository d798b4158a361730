"""Peers by XLA: a function of jax.numpy, compiled ahead by jax.jit for the case's arrays.

XLA works on other streams than ours. Through DLPack its stream first waits for the timed one, and the timed one then
for its results, so that events on the timed stream are around all of its work. The set-up refuses an XLA that runs
ahead.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from inspect import signature
from time import perf_counter, sleep
from types import ModuleType
from typing import Any

SPIN = r"""
extern "C" __global__ void spin(long long nanoseconds) {
    long long begun, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begun < nanoseconds);
}
"""
LEAST_WAIT = 2e-3  # seconds
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


def by_xla(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the set-up of a peer from a function that asks for `jax` first, then for arrays and numbers."""

    def prepare(jax: ModuleType, **given: Any) -> Callable[[], Any]:
        open_backend(jax)
        arrays = {name: value for name, value in given.items() if hasattr(value, "__dlpack__")}
        numbers = {name: value for name, value in given.items() if name not in arrays}
        executable = jax.jit(partial(function, jax, **numbers)).lower(**adopted(jax, arrays)).compile()
        kept: list[Any] = []  # until the next call: XLA would give memory back while the call is timed

        def enqueue() -> Any:
            inputs = adopted(jax, arrays)
            kept[:] = [inputs, executable(**inputs)]
            return kept[1]

        refuse_running_ahead(jax, enqueue)
        return lambda: joined(enqueue())

    prepare.__signature__ = signature(function)  # pyright: ignore[reportFunctionMemberAccess] - read by inspect
    return prepare


def open_backend(jax: ModuleType) -> None:
    """Open XLA's backend without the three quarters of the device's memory that it would take at once."""
    before = os.environ.get(PREALLOCATE)
    os.environ[PREALLOCATE] = "false"
    try:
        jax.devices()
    finally:
        del os.environ[PREALLOCATE]
        if before is not None:
            os.environ[PREALLOCATE] = before


def adopted(jax: ModuleType, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays as JAX's, without copies; its stream waits for what is enqueued on the current one."""
    return {name: jax.dlpack.from_dlpack(array) for name, array in arrays.items()}


def joined(results: Any) -> Any:
    """Return the results as CuPy's; the current stream waits for them."""
    cupy = import_module("cupy")
    several = isinstance(results, (tuple, list))
    return tuple(map(cupy.from_dlpack, results)) if several else cupy.from_dlpack(results)


def refuse_running_ahead(jax: ModuleType, enqueue: Callable[[], Any]) -> None:
    """Raise a RuntimeError unless XLA leaves its results open as long as the current stream is busy."""
    jax.block_until_ready(enqueue())
    begun = perf_counter()
    jax.block_until_ready(enqueue())
    seconds = LEAST_WAIT + 3 * (perf_counter() - begun)
    cupy = import_module("cupy")
    spin = cupy.RawKernel(SPIN, "spin")
    spin((1,), (1,), (0,))
    cupy.cuda.get_current_stream().synchronize()
    spin((1,), (1,), (int(8e9 * seconds),))
    results = enqueue()
    sleep(seconds)
    ready = all(result.is_ready() for result in jax.tree_util.tree_leaves(results))
    cupy.cuda.get_current_stream().synchronize()
    if ready:
        raise RuntimeError("XLA does not wait for the timed stream, or its call waits: no event times it")
