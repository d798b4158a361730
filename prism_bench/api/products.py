"""A product of matrices by whichever form was measured to be quickest for its shape within a tolerance."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prism_bench.backends import Backend, Runnable, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import UsageError
from prism_bench.identity import machine
from prism_bench.tuning.crossover import FORMS, HALVES, Picked, pick
from prism_bench.tuning.kept import DEFAULT_FOLDER
from prism_bench.tuning.measured import path_for, read_measured


@dataclass(frozen=True)
class _Whole:
    """An operand as an input of a case."""

    values: object
    dtype: str

    def on(self, xp):
        return xp.array(self.values, self.dtype)


class Matmul:
    """`Matmul()(a, b)` is a b in float32, [m, n], for operands [m, k] and [k, n] of the backend's arrays.

    The table is that of `folder` for this machine; without one, or far from every measured shape, the form is fp32.
    Forms are kept prepared by shape; leave the `with` block, or let it go, to free them. UsageError for shapes that do
    not fit, dtypes other than float32 and float16, and a tolerance that no form keeps.
    """

    def __init__(self, backend: str | Backend = "cuda", *, tolerance: float = 1e-3, folder: Path = DEFAULT_FOLDER):
        self._backend = open_backend(backend) if isinstance(backend, str) else backend
        facts = self._backend.facts()
        found = read_measured(path_for(machine(facts)["id"], Path(folder)))
        fits = found and (found.device, found.backend) == (facts["device"], self._backend.name)
        self._rows, self._tolerance = found.matmul if fits else (), tolerance
        self._prepared: dict[tuple, Runnable] = {}

    @cached_property
    def _catalogue(self) -> Catalogue:
        return discover()

    def picked(self, a, b) -> Picked:
        """The form that these operands get, and why."""
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise UsageError(f"a product of [m, k] and [k, n], not of {list(a.shape)} and {list(b.shape)}")
        if a.dtype != b.dtype:
            raise UsageError(f"operands of one dtype, not {a.dtype} and {b.dtype}")
        shape = {"m": a.shape[0], "k": a.shape[1], "n": b.shape[1]}
        return pick(self._rows, shape, operands=str(a.dtype), tolerance=self._tolerance)

    def __call__(self, a, b):
        form = self.picked(a, b).form
        dtype = "float16" if form in HALVES else "float32"
        operands = {"a": _Whole(a, dtype), "b": _Whole(b, dtype)}
        runnable = self._runnable(form, (*a.shape, b.shape[1]), operands)
        runnable()
        return runnable.arrays(["c"])["c"].astype("float32")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for runnable in self._prepared.values():
            runnable.__exit__(*exception)
        self._prepared = {}

    def _runnable(self, form, sizes, operands):
        """The form prepared for these sizes, holding these operands."""
        if (form, sizes) not in self._prepared:
            m, k, n = sizes
            case = self._catalogue.anywhere(f"{FORMS[form]}[m={m},n={n},k={k}]")
            self._prepared[form, sizes] = self._backend.prepare(case, operands)
        else:
            self._prepared[form, sizes].reset(operands)
        return self._prepared[form, sizes]
