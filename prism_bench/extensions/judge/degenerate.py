"""Kernels that do no work: a case that one passes counts for nothing, a task with such a timed case is refused."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from prism_bench.backends import Backend
from prism_bench.io.installation import host_special
from prism_bench.run.verification import KnownReference, compare_outputs, passed
from prism_bench.spec.case import Case

_CONSTANTS = (0, 1)


def passing_idlers(backend: Backend, case: Case, seed: int = 0) -> tuple[str, ...]:
    """Return the kernels without work that the case would let pass, by what they leave in every output.

    They write nothing, a constant, a copy of an input of the same size, or at S0 what is right for other inputs: edges
    often have the same ones for each seed.
    """
    inputs, known = case.inputs(seed), KnownReference()
    arrays = {name: np.asarray(array.on(np)) for name, array in inputs.items()}

    def passes(outputs: Mapping[str, Any]) -> bool:
        return passed(compare_outputs(backend, case, inputs, outputs, seed, known=known))

    found = [words for words, outputs in _idlers(case, arrays) if passes(outputs)]
    if case.label == "S0" and all(passes(_right_for(case, seed + number)) for number in (1, 2)):  # one may be by chance
        found.append("what other inputs give")
    return tuple(found)


def _idlers(case: Case, arrays: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    shapes = {output.name: (case.sizes.shape(output.name), np.dtype(output.dtype)) for output in case.spec.outputs}
    yield "nothing", {output.name: _untouched(case, output.name, arrays) for output in case.spec.outputs}
    for constant in _CONSTANTS:
        yield (
            f"{constant} everywhere",
            {name: np.full(shape, constant, dtype) for name, (shape, dtype) in shapes.items()},
        )
    for given, values in arrays.items():
        if all(values.size == np.prod(shape, dtype=np.int64) for shape, _ in shapes.values()):
            with np.errstate(invalid="ignore"):  # NaN and infinity are no whole numbers
                copies = {name: values.reshape(shape).astype(dtype) for name, (shape, dtype) in shapes.items()}
            yield f"a copy of {given}", copies


def _right_for(case: Case, seed: int) -> dict[str, Any]:
    """Return the outputs that are right on the inputs of a seed."""
    arrays = {name: np.asarray(array.on(np)) for name, array in case.inputs(seed).items()}
    dtypes = {output.name: output.dtype for output in case.spec.outputs}
    with np.errstate(over="ignore", invalid="ignore"):
        expected = case.correctness.expected(arrays, np, host_special)
        return {name: np.asarray(one).astype(dtypes[name]) for name, one in expected.items()}


def _untouched(case: Case, name: str, arrays: Mapping[str, Any]) -> Any:
    """Return what an output holds before a launch: the input of an argument in place, else poison."""
    array, shape = case.spec.array(name), case.sizes.shape(name)
    if array.reads:
        return np.array(arrays[name]).reshape(shape)
    content = np.empty(shape, array.dtype)
    content.reshape(-1).view(np.uint8)[:] = array.first_byte
    return content
