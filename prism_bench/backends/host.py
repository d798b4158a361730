"""Common base of what runs on the CPU: buffers of the host, compiled host code, and languages' interpreters."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from prism_bench.backends.base import HostGuard, Runnable, TimerFactories
from prism_bench.compilation.cubin import function_of
from prism_bench.compilation.languages import language
from prism_bench.compilation.languages.building import EmulateQuestion, ask_interpreter
from prism_bench.compilation.program import cut_source, toolchain_of
from prism_bench.emulator import LaunchReport, compile_source
from prism_bench.emulator.library import LaunchRequest
from prism_bench.emulator.module import Module
from prism_bench.io.files import shared_with
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Case, Device
from prism_bench.spec.dtypes import precision_of
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import Array, Constant, InOut, Launch, Zero
from prism_bench.units import count_text

# Common base of what runs on the CPU: buffers of the host, timed by the wall clock.


class WallTimedRunnable(Runnable):
    """A case that is timed by the wall clock."""

    def timers(self) -> TimerFactories:
        """How long the CPU takes: nothing that a device knows, but two builds can be compared."""
        return {"wall_time": lambda: self._once}

    def _once(self) -> Sample:
        before = perf_counter()
        self()
        return Sample(perf_counter() - before)


class HostRunnable(WallTimedRunnable):
    """A case whose launches work on buffers of the host."""

    @abstractmethod
    def buffer(self, name: str) -> np.ndarray:
        """Return the memory of a buffer, in the case's shape."""

    def launched_steps(self, device: Device) -> Iterator[Launch | Zero]:
        """Yield the steps of the host plan that do anything."""
        steps = self.case.plan.steps(device)
        return (step for step in steps if isinstance(step, Zero) or not step.is_empty)

    def names_of(self, step: Launch) -> tuple[str, ...]:
        """Return the names of the arguments of a launch, in order."""
        return self.case.spec.passed(step)

    def laid_out(self, array: Array, inputs: Mapping[str, InputArray]) -> np.ndarray:
        """Return the first content of a buffer: its input, or the poison of an output."""
        shape = self.case.sizes.shape(array.name)
        if array.reads:
            return np.asarray(inputs[array.name].on(np)).reshape(shape)
        content = np.empty(shape, array.storage)
        content.reshape(-1).view(np.uint8)[:] = array.first_byte
        return content

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self.buffer(name).reshape(self.case.sizes.shape(name)) for name in names}

    def put(self, name: str, values: np.ndarray) -> None:
        buffer = self.buffer(name)
        buffer[...] = np.reshape(values, buffer.shape)

    def restore(self) -> None:
        for array in self.case.spec.inputs:
            if isinstance(array, InOut):
                self.put(array.name, self.laid_out(array, self.inputs))

    def guard(self, key: int) -> HostGuard:
        spec = self.case.spec
        in_place = [array.name for array in spec.inputs if isinstance(array, InOut)]
        return HostGuard(
            {output.name: self.buffer(output.name) for output in spec.outputs},
            in_place=in_place,
            key=key,
            scratch=[self.buffer(array.name) for array in spec.arrays if array.scratch],
            inputs=[self.buffer(a.name) for a in spec.inputs if a.name not in in_place and not isinstance(a, Constant)],
        )


# Code of a source for the CPU: what is compiled of it, and whatever runs it.

_STANDARD = "c++17"  # which the emulator's own headers need


class HostModule(Protocol):
    """Code of a source for the CPU, wherever it runs."""

    def run(self, request: LaunchRequest, arguments: Sequence[object], *, isolate: bool = False) -> LaunchReport:
        """Run a kernel; arrays that it takes by non-const pointer hold its results afterwards."""
        ...

    def set_symbol(self, name: str, value: np.ndarray) -> None:
        """Set a `__constant__` or `__device__` variable for all launches from now on."""
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
    defines, standard = defines_of(options), standard_of(options)
    return compile_source(code, folders, functions, mode, defines, standard=standard, only_kernels=only_kernels)


def code_of(source: Path, entries: tuple[str, ...], options: tuple[str, ...]) -> tuple[Path | str, tuple[Path, ...]]:
    """Return what is compiled of a source, and the folders of its headers: the device side of host code."""
    chosen = toolchain_of(options)
    cut = cut_source(source, entries, chosen.options)
    return cut.text if cut else source, (*shared_with(source), *chosen.folders)


def defines_of(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the definitions among a spec's compiler options: `-DNAME`, `-D NAME`, `--define-macro=NAME`."""
    return tuple(_values(options, ("-D", "--define-macro")))


def standard_of(options: tuple[str, ...]) -> str:
    """Return the version of C++ that a spec's compiler options name, `c++20`; empty for C++17 and older ones."""
    named = [*_values(options, ("-std", "--std"))]
    return named[-1] if named and named[-1] > _STANDARD and named[-1] != "c++98" else ""


def _values(options: tuple[str, ...], names: tuple[str, ...]) -> Iterator[str]:
    """Yield the values of options written `-DNAME`, `-D NAME` or `--define-macro=NAME`."""
    for option, following in zip(options, (*options[1:], ""), strict=False):
        for name in names:
            if option == name:
                yield following
            elif option.startswith(name) and (len(name) == 2 or option[len(name)] == "="):
                yield option[len(name) :].removeprefix("=")


# Kernels of other languages on the CPU, in their languages' interpreters, which run in child processes.


def not_interpreted(case: Case) -> str | None:
    """Return why the case's language cannot run it on the CPU, or None where it can."""
    spoken = language(case.spec.language)
    lacked = next((array for array in case.spec.arrays if array.holds_bits and precision_of(array.dtype)), None)
    if lacked and not spoken.interprets_narrow:
        return f"'{lacked.name}' has elements of {lacked.dtype}, which the arrays of {spoken.title}'s interpreter lack"
    reason = spoken.not_emulated()
    if reason or spoken.most_threads is None:
        return reason
    launches = [step for step in case.plan.steps(Device()) if isinstance(step, Launch)]
    threads = max((prod(map(prod, step.extents)) for step in launches), default=0)
    if threads <= spoken.most_threads:
        return None
    return (
        f"a launch has {count_text(threads, 'thread')}; {spoken.title} interprets "
        f"at most {spoken.most_threads}, one after another"
    )


class InterpretedRunnable(HostRunnable):
    """A case of another language on NumPy arrays; each launch is one question to the interpreter's process."""

    def __init__(self, case: Case, inputs: Mapping[str, InputArray], device: Device) -> None:
        self.case = case
        self._steps = tuple(self.launched_steps(device))
        self.reset(inputs)

    def __call__(self) -> None:
        for step in self._steps:
            if isinstance(step, Zero):
                self._buffers[step.name][...] = 0
            else:
                self._launch(step)

    def _launch(self, step: Launch) -> None:
        spec = self.case.spec
        names = self.names_of(step)
        values = [np.asarray(self._value(name)) for name in names]
        scalars = tuple(index for index, name in enumerate(names) if name not in self._buffers)
        question = EmulateQuestion(str(spec.source_file), self.case.plan.instance(step), *step.extents, scalars)
        for name, array in zip(names, ask_interpreter(spec.language, question, values), strict=True):
            if name in self._buffers:
                self._buffers[name][...] = array.reshape(self._buffers[name].shape)

    def _value(self, name: str) -> Any:
        argument = self.case.spec.argument(name)
        return self._buffers[name] if isinstance(argument, Array) else argument.value(self.case.axes)

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        self._buffers = {array.name: np.array(self.laid_out(array, inputs)) for array in self.case.spec.arrays}

    def buffer(self, name: str) -> np.ndarray:
        return self._buffers[name]

    def evidence(self) -> dict[str, Any]:
        spoken = language(self.case.spec.language)
        version = spoken.library.installed_version() or "unknown"
        launches = sum(isinstance(step, Launch) for step in self._steps)
        return {
            "mode": "interpreter",
            "language": self.case.spec.language,
            "compiler": f"{spoken.title} {version}",
            "launches": launches,
        }
