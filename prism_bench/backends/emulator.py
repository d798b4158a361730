"""The emulator as a backend: a kernel's real source on the CPU, under a sanitizer or with race detection."""

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from prism_bench.backends.base import Backend, Runnable
from prism_bench.backends.host import (
    HostModule,
    HostRunnable,
    InterpretedRunnable,
    code_of,
    defines_of,
    host_module,
    not_interpreted,
    standard_of,
)
from prism_bench.compilation.cubin import function_of
from prism_bench.compilation.program import is_prebuilt
from prism_bench.emulator import ORDERS, DeviceBuffer, LaunchReport, MappedBuffer, Module, not_emulated
from prism_bench.emulator.build import find_compiler, is_suspect
from prism_bench.emulator.library import LaunchRequest, report_crashes, three
from prism_bench.emulator.report import LaunchFinding
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError, VerificationFailed
from prism_bench.io.files import writable_cache
from prism_bench.io.installation import host_special
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import CUDA, Array, Edge, KernelSpec, Launch, Zero
from prism_bench.units import count_text

# Messages about single elements of a case's arrays: accesses that the emulator reports, and elements not written.


def _finding_text(finding: LaunchFinding, case: Case, names: Sequence[str]) -> str:
    """Return a finding with the names of the spec: of `names`, the launch's arguments, and of the element."""
    if finding.argument is None:
        return str(finding)
    name = names[finding.argument]
    if finding.offset is None or not isinstance(case.spec.argument(name), Array):
        return f"{finding} (argument {finding.argument} is '{name}')"
    element = _element(case, name, finding.offset)
    message = finding.message.replace(f"byte {finding.offset} of argument {finding.argument}", element)
    if finding.kind == "out of bounds" and finding.accesses:
        verb = "write" if finding.accesses[0].is_write else "read"
        message = f"{verb} of {element}; {_end(case, name, finding.offset)}"
    return str(replace(finding, message=message))


def _end(case: Case, name: str, offset: int) -> str:
    """Return where the array begins or ends, whichever the access at that byte is beyond."""
    _, count = case.sizes.elements(name)
    if not count:
        return f"{name} has no element"
    return f"{name} begins at {name}[0]" if offset < 0 else f"{name} ends at {name}[{count - 1}]"


def _element(case: Case, name: str, offset: int) -> str:
    """Return the element at a byte of an array: `y[0, 5]`; outside of it `y[260]`, counted in its memory."""
    _, count = case.sizes.elements(name)
    flat = offset // case.spec.array(name).storage.itemsize
    inside = 0 <= flat < count
    return f"{name}[{_place(flat, case.sizes.shape(name)) if inside else flat}]"


def _place(flat: int, shape: tuple[int, ...]) -> str:
    return ", ".join(str(int(index)) for index in np.unravel_index(flat, shape or (1,)))


def unwritten_text(case: Case, name: str, first: int, count: int, device: Device) -> str:
    """Return that `count` elements of an output were never written, of which the `first` in memory is named."""
    (_, size), shape = case.sizes.elements(name), case.sizes.shape(name)
    of_size = f" ({count} of {count_text(size, 'element')})" if size > 1 else ""
    return f"{name}[{_place(first, shape)}] was never written{of_size}{_no_block(case, device)}"


def _no_block(case: Case, device: Device) -> str:
    """Return that a launch has no block, the usual cause; nothing where every launch has some."""
    launches = [step for step in case.plan.steps(device) if isinstance(step, Launch)]
    empty = next((step for step in launches if step.is_empty), None)
    return "" if empty is None else f"; the grid is {empty.grid}: no block ran"


# The emulator as a backend: a kernel's real source on the CPU, under a chosen thread order, watched if asked.

_MOST_FINDINGS = 4  # of one case, one a line
_SHUFFLES = range(1, 9)  # seeds of random orders; a sum of few numbers is often the same in two orders
_BRIEF_PATIENCE = 1.0  # seconds of CPU time without progress; in all a launch may take twelve times as long


def open_backend() -> "EmulatorBackend":
    """Open the emulator in fast mode; BackendUnavailable without a C++ compiler, CacheUnavailable without a cache."""
    backend = EmulatorBackend()
    writable_cache("emulator")
    return backend


def refusal(case: Case) -> str | None:
    """Return what the emulator lacks to run the case, `wgmma` for example, or None where it can run it."""
    if case.spec.callable is not None:
        return "a callable launches its work on a device itself"
    if case.spec.language != CUDA:
        return not_interpreted(case)
    needed = case.plan.requirement
    if needed:
        return needed.what
    if is_prebuilt(case.spec.source_file):
        return "it is machine code"
    code, folders = code_of(case.spec.source_file, (case.spec.entry,), case.spec.options)
    return not_emulated(code, folders)


def known_refusals(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Return the kernels in CUDA C++ that the emulator does not run by what it lacks, as their own files show it.

    Nothing is compiled, and only a source that has such a word is read with what it includes.
    """
    first: dict[str, Case] = {}
    for case in cases:
        if case.spec.language == CUDA and case.spec.callable is None:
            first.setdefault(case.kernel, case)
    suspects: dict[Path, bool] = {}
    kernels: dict[str, list[str]] = {}
    for kernel, case in first.items():
        with suppress(Exception):  # a spec may raise anything; its source may be no text, or missing
            source = case.spec.source_file
            if source not in suspects:
                suspects[source] = not is_prebuilt(source) and is_suspect(source.read_text())
            needed = case.plan.requirement
            reason = needed.what if needed else refusal(case) if suspects[source] else None
            if reason:
                kernels.setdefault(reason, []).append(kernel)
    return kernels


class EmulatorRunnable(HostRunnable):
    """A case compiled for the CPU. `reports` holds one LaunchReport per launch of the latest call."""

    def __init__(self, backend: "EmulatorBackend", case: Case, inputs: Mapping[str, InputArray]) -> None:
        self.case, self._backend = case, backend
        self.steps = tuple(self.launched_steps(backend.device))
        self._module = self._compiled()
        self.reports = ()
        self.reset(inputs)

    def __call__(self) -> None:
        for constant in self.case.spec.constants:  # anew each time: cases of one source share its variables
            try:
                self._module.set_symbol(constant.variable, self.buffer(constant.name))
            except SpecError as error:
                raise SpecError(f"{self.case.name}: Constant '{constant.name}': {error}") from None
        self.reports = tuple(self._launched())
        complaints = self._complaints()
        if complaints:
            where = f"{self.case.name} on emulator ({self._backend.mode})"
            raise VerificationFailed(f"{where}: " + "\n".join((self._with_lines() or complaints)[:_MOST_FINDINGS]))

    def _launched(self) -> Iterator[LaunchReport]:
        """Carry the steps out and yield the launches' reports; none after a launch that had too little time."""
        for step in self.steps:
            report = self._take(step)
            is_ended = report and any(map(self._backend.is_out_of_time, report.findings))
            if report:
                yield report
            if is_ended:
                return

    def unseen(self) -> str | None:
        ended = (f for report in self.reports for f in report.findings if self._backend.is_out_of_time(f))
        finding = next(ended, None)
        if finding is None:
            return None
        return f"accesses were watched in part only ({finding.message}); those of edges are watched to their end"

    def _complaints(self, *, placed: bool = False) -> list[str]:
        """Return the latest call's findings as text, one for each place; only those with a line if `placed`."""
        launches = [step for step in self.steps if isinstance(step, Launch)]
        by_place: dict[object, str] = {}
        for step, report in zip(launches, self.reports, strict=False):
            for finding in report.findings:
                if (finding.accesses or not placed) and not self._backend.is_out_of_time(finding):
                    at = (
                        finding.kind,
                        finding.argument,
                        tuple(access.place for access in finding.accesses) or finding.message,
                    )
                    by_place.setdefault(at, _finding_text(finding, self.case, self.names_of(step)))
        return list(by_place.values())

    def _with_lines(self) -> list[str]:
        """Return findings with their lines: repeat a fast call that damaged a buffer with every access watched."""
        if self._backend.mode != "fast" or self._complaints(placed=True):
            return []
        with self._backend.watching().prepare(self.case, self.inputs) as again, suppress(VerificationFailed):
            again()
        return again._complaints(placed=True)

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        self._buffers = {array.name: DeviceBuffer(self.laid_out(array, inputs)) for array in self.case.spec.arrays}

    def buffer(self, name: str) -> np.ndarray:
        return self._buffers[name].array

    def _share(self, name: str, other: Runnable, theirs: str) -> None:
        assert isinstance(other, EmulatorRunnable), "cases share buffers on one backend"
        self._buffers[name] = other._buffers[theirs]

    def clear_variable(self, name: str) -> None:
        (content,) = self.variables(name, np.uint8)
        self._module.set_symbol(name, np.zeros_like(content))

    def variables(self, name: str, dtype: DTypeLike) -> list[np.ndarray]:
        assert isinstance(self._module, Module), "code in a jail keeps its variables"
        return [self._module.get_symbol(name, dtype)]

    def evidence(self) -> dict[str, Any]:
        launches = sum(isinstance(step, Launch) for step in self.steps)
        return {"mode": self._backend.mode, "order": self._backend.order, "launches": launches}

    def __exit__(self, *exception: object) -> None:
        self._module.close()

    def _compiled(self) -> HostModule:
        """Compile the library that edges and S0 of the kernel and its variants share, or the case's own."""
        spec = self.case.spec
        own, shared = self._own_entries(), _shared_entries(spec, self._backend.device)
        chosen = shared if set(own) <= set(shared) else own
        try:
            return self._compiled_with(chosen)
        except (BackendUnavailable, CompilationFailed):
            if chosen == own:
                raise
            return self._compiled_with(own)  # what another variant gets wrong is no fault of this one

    def _compiled_with(self, entries: tuple[str, ...]) -> HostModule:
        spec = self.case.spec
        return self._backend.build(spec.source_file, entries, spec.options)

    def _own_entries(self) -> tuple[str, ...]:
        """Those that the case launches; for a configuration that is not the default those of all others, too."""
        device, cases = self._backend.device, [self.case]
        if self.case.choice:
            cases = [
                configured for case in [*cases, *_usual(self.case.spec)] for configured in case.configurations(device)
            ]
        return tuple(sorted({entry for case in cases for entry in case.plan.entries(device)}))

    def _take(self, step: Launch | Zero) -> LaunchReport | None:
        if isinstance(step, Zero):
            self._buffers[step.name].array[...] = 0
            return None
        maps = {wanted.name: MappedBuffer(self._buffers[wanted.name], wanted) for wanted in step.maps}
        values = [maps.get(name) or self._value(name) for name in self.names_of(step)]
        request = LaunchRequest(
            function_of(step.entry or self.case.spec.entry),
            three(step.grid),
            three(step.block),
            step.shared,
            step.cooperative,
            self._backend.order,
            self._backend.seed,
            traffic=self._backend.traffic,
            **({"patience": _BRIEF_PATIENCE} if self._backend.brief else {}),
        )
        return self._module.run(request, values, isolate=self._backend.isolate)

    def _value(self, name: str) -> Any:
        argument = self.case.spec.argument(name)
        return self._buffers[name] if isinstance(argument, Array) else argument.value(self.case.axes)


class EmulatorBackend(Backend):
    """Kernels on the CPU in one mode (`fast`, `race`, `address`) and one thread order.

    `isolate` runs them in a child process, which a crash ends instead of this one; `traffic` counts it in race mode. A
    `brief` backend ends launches that take long, which is no complaint.
    """

    name = "emulator"
    xp = np

    def __init__(
        self,
        mode: str = "fast",
        order: str = "forward",
        seed: int = 0,
        isolate: bool = False,
        *,
        traffic: bool = False,
        brief: bool = False,
    ) -> None:
        self.mode, self.order, self.seed, self.isolate = mode, order, seed, isolate
        self.traffic, self.brief = traffic, brief
        self._compiler = find_compiler()

    @property
    def special(self) -> ModuleType:
        return host_special

    def facts(self) -> dict[str, Any]:
        software = {"numpy": np.__version__, "compiler": self._compiler.version}
        return {"device": f"emulated on {platform.machine()}", "software": software}

    def report_crashes(self) -> None:
        report_crashes()

    def passes(self, case: Case) -> dict[str, Backend]:
        """Every thread order, then every access watched; an interpreter of another language has one way."""
        if case.spec.language != CUDA:
            return {"interpreter": self}
        fast = {f"fast, {order}": EmulatorBackend("fast", order, isolate=self.isolate) for order in ORDERS}
        return {**fast, "race": EmulatorBackend("race", isolate=self.isolate)}

    def orders(self, case: Case) -> dict[str, Backend]:
        """Return the reverse order and random ones; an interpreter of another language has one order."""
        if case.spec.language != CUDA or (self.mode, self.order) != ("fast", ORDERS[0]):
            return {}
        shuffled = {f"a random order, seed {seed}": self.ordered("shuffled", seed) for seed in _SHUFFLES}
        return {"the reverse order": self.ordered("reverse", 0), **shuffled}

    def ordered(self, order: str, seed: int) -> "EmulatorBackend":
        """Return this backend with another order of blocks and threads."""
        return EmulatorBackend(self.mode, order, seed, self.isolate)

    def is_out_of_time(self, finding: LaunchFinding) -> bool:
        """Return whether a finding is only that a brief launch was ended."""
        return self.brief and finding.kind == "no progress"

    def strict(self, case: Case) -> Backend | None:
        """Every access and the order of threads watched; an interpreter of another language has checked all it can."""
        return EmulatorBackend("race", isolate=self.isolate, brief=True) if case.spec.language == CUDA else None

    def watching(self) -> "EmulatorBackend":
        """Return the backend that repeats a launch with every access watched, apart from this process."""
        return EmulatorBackend("race", self.order, self.seed, isolate=True)

    def build(self, source: Path, entries: tuple[str, ...], options: tuple[str, ...]) -> HostModule:
        """Return the code of a source for the CPU in this mode, with the entries that may be launched."""
        return host_module(source, entries, self.mode, options)

    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> Runnable:
        reason = refusal(case)
        if reason:
            raise BackendUnavailable(f"{case.name}: not emulated: {reason}; the compile check and the GPU take it")
        if case.spec.language != CUDA:
            return InterpretedRunnable(case, inputs, self.device)
        return EmulatorRunnable(self, case, inputs)


_SHARED: dict[tuple, tuple] = {}  # by source and definitions: whose entries they are, and the entries


def _shared_entries(spec: KernelSpec, device: Device) -> tuple[str, ...]:
    """Return the entries that edges, golden data and S0 launch, for the kernel and its variants in one source."""
    whole, key = spec.variant_of or spec, _build_of(spec)
    if key not in _SHARED or _SHARED[key][0] is not whole:
        forms = [whole, *map(whole.with_variant, whole.variants)]
        alike = [form for form in forms if _build_of(form) == key]
        _SHARED[key] = whole, tuple(sorted({entry for form in alike for entry in _launched(form, device)}))
    return _SHARED[key][1]


def _build_of(spec: KernelSpec) -> tuple[object, ...]:
    """Return what decides the code of a spec's source."""
    return spec.source, defines_of(spec.options), standard_of(spec.options)


def _launched(spec: KernelSpec, device: Device) -> Iterator[str]:
    for case in _usual(spec):
        try:
            yield from case.plan.entries(device)
        except Exception:  # whatever a variant's launch raises, it raises again where its own result can say so
            continue


def _usual(spec: KernelSpec) -> list[Case]:
    """Return what is verified of a spec on the emulator: edges, golden data, and S0 if it has one."""
    edges = (edge.workload if isinstance(edge, Edge) else edge for edge in spec.edges)
    workloads = [*edges, *(golden.workload for golden in spec.golden), spec.workloads.get("S0")]
    cases = [Case(spec, workload, "edge") for workload in workloads if workload is not None]
    return [case for case in cases if not case.plan.requirement]
