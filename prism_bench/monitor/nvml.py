"""NVML opened and closed, and its errors in words: what a device does not offer, and when it is gone."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from prism_bench.errors import BackendUnavailable

WITHOUT = "runs go on without it, their measurements then carry no evidence"


class DeviceLost(Exception):
    """The device, its driver or the library stopped answering; the words say why."""


def library() -> ModuleType:
    """Return pynvml with NVML opened; close it with `close`. BackendUnavailable names what is missing."""
    try:
        import pynvml
    except ImportError as error:
        raise BackendUnavailable(f"nvidia-ml-py is not installed ({error}); {WITHOUT}") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise BackendUnavailable(f"NVML does not answer: {_said(error)}; {WITHOUT}") from None
    return pynvml


def close(pynvml: ModuleType) -> None:
    """Shut NVML down; a library that is gone already needs no farewell."""
    try:
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return


@contextmanager
def opened() -> Iterator:
    """Yield pynvml in a `with` block."""
    pynvml = library()
    try:
        yield pynvml
    finally:
        close(pynvml)


def why_missing(pynvml: ModuleType, error: Any) -> str:
    """Return why a quantity is null; raise DeviceLost for an error after which nothing can be read."""
    if error.value in _gone(pynvml):
        raise DeviceLost(_said(error)) from None
    return {
        pynvml.NVML_ERROR_NOT_SUPPORTED: "this device does not offer it",
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "this driver's NVML is too old to offer it",
        pynvml.NVML_ERROR_NO_PERMISSION: "no permission to read it",
    }.get(error.value, _said(error))


def is_permanent(pynvml: ModuleType, error: Any) -> bool:
    """Whether asking again will give the same answer."""
    return error.value in (
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    )


def _gone(pynvml: ModuleType) -> tuple[int, ...]:
    return (
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    )


def _said(error: Any) -> str:
    """NVML's own words, which carry a full stop in places."""
    return str(error).rstrip(".")
