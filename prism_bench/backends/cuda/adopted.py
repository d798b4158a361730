"""Device arrays as arrays of other libraries, and the libraries set up for the timed stream; no copies are made."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from prism_bench.backends.cuda.harness import Harness
from prism_bench.backends.cuda.peers.library_state import set_up_torch
from prism_bench.spec.peer import Library


def adopted_arrays(library: Library, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return CuPy's arrays as arrays of the package whose arrays the library's calls take."""
    if library.arrays == "cupy":
        return arrays
    if library.arrays == "jax":
        jax = import_module("jax")
        return {name: jax.dlpack.from_dlpack(array) for name, array in arrays.items()}
    torch = import_module("torch")
    return {name: torch.as_tensor(array, device="cuda") for name, array in arrays.items()}


def library_module(library: Library, harness: Harness) -> ModuleType:
    """Return the library's module; PyTorch works on the timed stream from here on."""
    if library.arrays == "torch":
        set_up_torch(import_module("torch"), harness.stream.ptr)
    return import_module(library.module)
