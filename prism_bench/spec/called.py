"""KernelCall: a kernel that Python code launches, whatever language it is written in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.spec import byname
from prism_bench.spec.libraries import LIBRARIES, Library


@dataclass(frozen=True)
class KernelCall:
    """Callable that does the work of a kernel on device arrays: a launcher, a custom operator, an exported module.

    Parameters
    ----------
    function : callable
        Asks by parameter name for arguments of the spec and axes, for `stream` (the address of the CUDA stream that is
        timed, which is also the current stream of CuPy and PyTorch), and for at most one library of
        `libraries.LIBRARIES`, whose arrays it then takes; without one they are CuPy's, which offer DLPack and the CUDA
        array interface. It writes the outputs that it asks for, and returns those that it does not, in their order.
    prepares : bool
        Whether `function` is the set-up: it returns a function without arguments, and only that one is timed.
    artifacts : callable, optional
        Asks by name for the same, and returns the cubins that a call launches, as bytes: with them a record knows the
        machine code.
    """

    function: Callable[..., Any]
    prepares: bool = False
    artifacts: Callable[..., Iterable[bytes]] | None = None

    @property
    def library(self) -> Library:
        """The library that the function asks for, CuPy without one; a SpecError where it asks for several."""
        asked = [name for name in byname.wanted(self.function) if name in LIBRARIES]
        if len(asked) > 1:
            raise SpecError(f"a callable asks for one library, not for {' and '.join(asked)}")
        return LIBRARIES[asked[0] if asked else "cupy"]

    def returned(self, outputs: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the outputs that the function does not ask for."""
        asked = byname.wanted(self.function)
        return tuple(name for name in outputs if name not in asked)


def as_call(given: KernelCall | Callable[..., Any]) -> KernelCall:
    """Return what a spec has as its callable: itself, or the plain function."""
    return given if isinstance(given, KernelCall) else KernelCall(given)
