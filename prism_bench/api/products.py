"""A product of matrices by whichever form was measured to be quickest for its shape within a tolerance."""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

from prism_bench.backends import Backend, Runnable, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import UsageError
from prism_bench.record.identity import machine
from prism_bench.workflows.tuning.crossover import FORMS, HALVES, Picked, pick
from prism_bench.workflows.tuning.kept import DEFAULT_FOLDER
from prism_bench.workflows.tuning.measured import path_for, read_measured


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

    The table is that of `folder` for this machine; without one, or far from every measured shape, the form is fp32.
    Forms are kept prepared by shape; leave the `with` block, or let it go, to free them. UsageError for shapes that do
    not fit, dtypes other than float32 and float16, and a tolerance that no form keeps.
    """

    def __init__(
        self, backend: str | Backend = "cuda", *, tolerance: float = 1e-3, folder: Path = DEFAULT_FOLDER
    ) -> None:
        self._backend = open_backend(backend) if isinstance(backend, str) else backend
        facts = self._backend.facts()
        found = read_measured(path_for(machine(facts)["id"], Path(folder)))
        own = facts["device"], self._backend.name
        self._rows = found.matmul if found and (found.device, found.backend) == own else ()
        self._tolerance = tolerance
        self._prepared: dict[tuple[str, tuple[int, ...]], Runnable] = {}

    @cached_property
    def _catalogue(self) -> Catalogue:
        return discover()

    def picked(self, a: Any, b: Any) -> Picked:
        """Return the form that these operands get, and why."""
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
        """Return the form prepared for these sizes, holding these operands."""
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

    Forms stay prepared, with their buffers, until the process ends; `Matmul` frees them earlier. UsageError for shapes
    that do not fit, dtypes other than float32 and float16, and a tolerance that no form keeps.
    """
    return _shared(backend, tolerance)(a, b)
