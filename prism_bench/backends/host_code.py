"""Code of a source for the CPU: what is compiled of it, and whatever runs it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from prism_bench.compilation.device_code import cut_source
from prism_bench.compilation.mangling import function_of
from prism_bench.compilation.toolchain import toolchain_of
from prism_bench.emulator import LaunchReport, compile_source
from prism_bench.emulator.module import Module
from prism_bench.emulator.request import LaunchRequest
from prism_bench.io.files import shared_with


class HostModule(Protocol):
    """Code of a source for the CPU, wherever it runs."""

    def run(self, request: LaunchRequest, arguments: Sequence[object], *, isolate: bool = False) -> LaunchReport:
        """Run a kernel; arrays that it takes by non-const pointer hold its results afterwards."""
        ...

    def close(self) -> None:
        """Give it up."""
        ...


def host_module(
    source: Path, entries: tuple[str, ...], mode: str, options: tuple[str, ...], *, only_kernels: bool = False
) -> Module:
    """Return a source's code for the CPU: its device side where it holds host code, too.

    `entries` are those that may be launched, `options` the spec's, of which definitions and folders matter here.
    With `only_kernels` a SpecError refuses code that runs when it is loaded.
    """
    code, folders = code_of(source, entries, options)
    functions = tuple(dict.fromkeys(map(function_of, entries)))
    return compile_source(code, folders, functions, mode, defines_of(options), only_kernels=only_kernels)


def code_of(source: Path, entries: tuple[str, ...], options: tuple[str, ...]) -> tuple[Path | str, tuple[Path, ...]]:
    """Return what is compiled of a source, and the folders of its headers: the device side of host code."""
    chosen = toolchain_of(options)
    cut = cut_source(source, entries, chosen.options)
    return cut.text if cut else source, (*shared_with(source), *chosen.folders)


def defines_of(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the definitions among a spec's compiler options; the others are for NVRTC only."""
    return tuple(option[2:] for option in options if option.startswith("-D"))
