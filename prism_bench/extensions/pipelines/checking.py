"""Verification of pipelines: every stage against its reference on its actual inputs, then the planted results."""

import numpy as np

from prism_bench.backends import Runnable
from prism_bench.extensions.pipelines.forms import form, results_of
from prism_bench.extensions.pipelines.prepared import Prepared
from prism_bench.run.verification import Entry, compare_outputs
from prism_bench.spec.arguments import FilledArray
from prism_bench.spec.inputs import InputArray, given


def check_stages(prepared: Prepared) -> list[Entry]:
    """Evaluate once, stage by stage; return an entry per output, named `stage.output`, as records keep them."""
    prepared.begin()
    prepared.upload()
    entries = []
    for one in prepared.stages:
        runnable = prepared.runnables[one.stage.name]
        inputs = {array.name: _kept(runnable, array) for array in one.case.spec.inputs}
        runnable()
        outputs = runnable.arrays([output.name for output in one.case.spec.outputs])
        found = compare_outputs(prepared.backend, one.case, inputs, outputs, 0)
        entries += [entry | {"output": f"{one.stage.name}.{entry['output']}"} for entry in found]
    return entries


def _kept(runnable: Runnable, array: FilledArray) -> InputArray:
    """Return what the input holds now, as an input array."""
    held = runnable.arrays([array.name])[array.name]
    return given(held.get() if hasattr(held, "get") else held.copy(), array.dtype)


def check_results(prepared: Prepared, name: str) -> list[Entry]:
    """Evaluate in the form `name`; its results must equal those of one stream, and hold what was planted."""
    expected = _evaluated(prepared, "one_stream")
    found = _evaluated(prepared, name)
    different = [word for word in expected if not np.array_equal(expected[word], found[word], equal_nan=True)]
    complaint = f"{different[0]} is not what one stream makes of the same frame" if different else None
    if not complaint and prepared.pipeline.check:
        complaint = prepared.pipeline.check(found, prepared.axes)
    return [{"seed": 0, "output": f"results, {name}", "passed": complaint is None, "error": complaint}]


def _evaluated(prepared: Prepared, name: str) -> dict[str, np.ndarray]:
    """Return the results of an evaluation from the state that the pipeline was prepared with."""
    evaluate = form(name, prepared)
    prepared.begin()
    prepared.upload()
    evaluate()
    prepared.download()
    prepared.flow.synchronize()
    return {word: array.copy() for word, array in results_of(prepared).items()}
