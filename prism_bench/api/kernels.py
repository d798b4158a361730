"""Catalogue kernels as Python callables, tuned while they run, and a matrix product by its fastest form."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from prism_bench.backends import Backend, Runnable, open_backend
from prism_bench.catalogue import Catalogue, discover, of_project
from prism_bench.errors import UsageError, unknown
from prism_bench.io import project
from prism_bench.record.identity import machine
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.workflows.tuning.choice import DEFAULT_FOLDER, TuningMachine, applied
from prism_bench.workflows.tuning.crossover import FORMS, HALVES, Picked, path_for, pick, read_measured
from prism_bench.workflows.tuning.search import OnlineTuner

# Kernel that is tuned while it is used: each call launches the tuner's choice, times it and records the time.

Stopwatch = Callable[[Callable[[], None]], float]  # calls the function and returns its seconds


class OnlineRunnable(Runnable):
    """A case in all of its configurations, each prepared with separate buffers when it is chosen.

    `arrays` are those of the last launched configuration.
    """

    def __init__(self, backend: Backend, case: Case, tuner: OnlineTuner, stopwatch: Stopwatch | None = None) -> None:
        self.case, self._backend, self._tuner = case, backend, tuner
        configured = case.configurations(backend.device)
        self._cases = {tuple(variant.configuration.items()): variant for variant in configured}
        self._prepared: dict[tuple[Any, ...], Runnable] = {}
        self._watch = stopwatch or stopwatch_of(backend)
        self.reset(case.inputs())

    def __call__(self) -> None:
        space = [dict(key) for key in self._cases]
        chosen = self._tuner.next(self.case.kernel, self.case.workload, space)
        self._last = self._runnable(tuple(chosen.items()))
        seconds = self._watch(self._last)
        self._tuner.record(self.case.kernel, self.case.workload, chosen, seconds)

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        for runnable in self._prepared.values():
            runnable.reset(inputs)
        self._last = self._runnable(next(iter(self._cases)))

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        return self._last.arrays(names)

    def __exit__(self, *exception: object) -> None:
        for runnable in self._prepared.values():
            runnable.__exit__(*exception)
        self._prepared = {}

    def _runnable(self, key: tuple[Any, ...]) -> Runnable:
        """Return the configuration, prepared. Its first call is not timed: it compiles and loads."""
        if key not in self._prepared:
            self._prepared[key] = self._backend.prepare(self._cases[key], self.inputs)
            self._prepared[key]()
            self._prepared[key].reset(self.inputs)
        return self._prepared[key]


def stopwatch_of(backend: Backend) -> Stopwatch:
    """Return a stopwatch: by events on a device, with caches as they are; elsewhere by the wall clock."""
    if backend.name == "cuda":
        harness: Any = vars(backend)["harness"]  # no other backend has it
        return lambda call: harness.timed(call, cold=False).seconds

    def watched(call: Callable[[], None]) -> float:
        before = perf_counter()
        call()
        return perf_counter() - before

    return watched


# A catalogue kernel as a Python callable.


def prepare(
    kernel: str,
    label: str = "S0",
    *,
    backend: str = "cuda",
    variant: str | None = None,
    catalogue: Path | None = None,
    seed: int = 0,
    tuned: Path | str | bool = True,
    online: OnlineTuner | None = None,
) -> Runnable:
    """Return the kernel at its workload `label`, prepared: call it to launch it, `.arrays(names)` gives its buffers.

    `tuned` launches it by the choices kept for this machine in `reports/tuning` or in that folder; False by its spec.
    The kernel is one of `catalogue`, by default of the project that the current folder configures, else of the built-in
    catalogue. With `online` it is tuned meanwhile: each call is timed, and the tuner chooses the next launch.

    Raises UsageError for an unknown kernel, variant or label, BackendUnavailable if the backend cannot be opened.
    """
    kernels = of_project(catalogue)
    spec = kernels.kernel(kernel)
    if variant:
        spec.with_variant(variant)
    name = f"{spec.name}:{variant}" if variant else spec.name
    cases = [case for case in kernels.cases([name], [label]) if case.variant == variant]
    if not cases:
        raise unknown(f"label of {name}", label, spec.workloads)
    case, opened = cases[0], open_backend(backend)
    if online is not None:
        return OnlineRunnable(opened, case, online)
    if tuned is not False:
        facts = opened.facts()
        folder = project.stored(DEFAULT_FOLDER, project.current()) if tuned is True else Path(tuned)
        tuning = TuningMachine(machine(facts)["id"], facts, opened.name, opened.device)
        case = applied([case], tuning, folder).cases[0]
    return opened.prepare(case, case.inputs(seed))


# Matrix product by the form that was measured to be quickest for its shape within a tolerance.


@dataclass(frozen=True)
class _Whole:
    """An operand as an input of a case."""

    values: Any
    dtype: str

    def on(self, xp: Any) -> Any:
        """Return the values as an array of the module `xp`."""
        return xp.array(self.values, self.dtype)


class Matmul:
    """`Matmul()(a, b)` is a b in float32, [m, n], for operands [m, k] and [k, n] of the backend's arrays.

    The table is that of `folder` for this machine; without a table, or far from every measured shape, the form is fp32.
    Forms stay prepared by shape; leave the `with` block, or delete the object, to free them. Raise a UsageError for
    shapes that do not fit, dtypes other than float32 and float16, and a tolerance that no form keeps.
    """

    def __init__(
        self, backend: str | Backend = "cuda", *, tolerance: float = 1e-3, folder: Path = DEFAULT_FOLDER
    ) -> None:
        self._backend = open_backend(backend) if isinstance(backend, str) else backend
        facts = self._backend.facts()
        table = read_measured(path_for(machine(facts)["id"], Path(folder)))
        fits = table is not None and (table.device, table.backend) == (facts["device"], self._backend.name)
        self._rows = table.matmul if table and fits else ()
        self._tolerance = tolerance
        self._prepared: dict[tuple[str, tuple[int, ...]], Runnable] = {}

    @cached_property
    def _catalogue(self) -> Catalogue:
        return discover()

    def picked(self, a: Any, b: Any) -> Picked:
        """Return the form for these operands, with the reason."""
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise UsageError(f"a product of [m, k] and [k, n], not of {list(a.shape)} and {list(b.shape)}")
        if a.dtype != b.dtype:
            raise UsageError(f"operands of one dtype, not {a.dtype} and {b.dtype}")
        shape = {"m": a.shape[0], "k": a.shape[1], "n": b.shape[1]}
        return pick(self._rows, shape, operands=str(a.dtype), tolerance=self._tolerance)

    def __call__(self, a: Any, b: Any) -> Any:
        form = self.picked(a, b).form
        dtype = "float16" if form in HALVES else "float32"
        operands: dict[str, Any] = {"a": _Whole(a, dtype), "b": _Whole(b, dtype)}
        runnable = self._runnable(form, (*a.shape, b.shape[1]), operands)
        runnable()
        product: Any = runnable.arrays(["c"])["c"]
        return product.astype("float32")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for runnable in self._prepared.values():
            runnable.__exit__(*exception)
        self._prepared = {}

    def _runnable(self, form: str, sizes: tuple[int, int, int], operands: dict[str, Any]) -> Runnable:
        """Return the form prepared for these sizes, with these operands."""
        if (form, sizes) not in self._prepared:
            m, k, n = sizes
            case = self._catalogue.anywhere(f"{FORMS[form]}[m={m},n={n},k={k}]")
            self._prepared[form, sizes] = self._backend.prepare(case, operands)
        else:
            self._prepared[form, sizes].reset(operands)
        return self._prepared[form, sizes]


@cache
def _shared(backend: str, tolerance: float) -> Matmul:
    return Matmul(backend, tolerance=tolerance)


def matmul(a: Any, b: Any, *, backend: str = "cuda", tolerance: float = 1e-3) -> Any:
    """Return the product of two matrices in float32, by the form that was measured to be quickest for their shape.

    Forms stay prepared, with their buffers, until the process ends; `Matmul` frees them earlier. Raise a UsageError for
    shapes that do not fit, dtypes other than float32 and float16, and a tolerance that no form keeps.
    """
    return _shared(backend, tolerance)(a, b)
