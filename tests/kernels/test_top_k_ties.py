"""Top-k among equal logits: what libraries give in another order passes, and the kernel's own order stays exact."""

from dataclasses import replace

import numpy as np
import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.run.verification import compare_outputs
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import Fill
from prism_bench.spec.workload import Workload
from tests.built_in import CATALOGUE

SPEC = CATALOGUE.kernel("top_k_sampling")
TIES = Fill(lambda rng, count, axes: rng.choice([-1.0, 0.0, 2.0], count), "ties")
LOGITS = replace(SPEC.array("logits"), fill=TIES)
CASE = Case(replace(SPEC, arguments=(LOGITS, *SPEC.arguments[1:])), Workload(rows=4, vocabulary=300, k=120), "S0")


class Elsewhere(NumpyBackend):
    """A backend under another name, whose outputs are compared."""

    name = "elsewhere"


def compared(change):
    """Return by output whether it passes after the change to the reference's outputs."""
    inputs = CASE.inputs(0)
    logits = inputs["logits"].on(np)
    outputs = CASE.correctness.expected({"logits": logits}, np, None)
    outputs = {name: one.astype("float32" if name == "p" else "int32") for name, one in outputs.items()}
    change(outputs, logits)
    return {one["output"]: one["passed"] for one in compare_outputs(Elsewhere(), CASE, inputs, outputs, 0)}


def other_ties(outputs, logits):
    """The last of equal logits instead of the first, and another token of the same logit."""
    for row, z in enumerate(logits):
        outputs["index"][row] = np.lexsort((-np.arange(z.size), -z))[: outputs["index"].shape[1]]
        outputs["token"][row] = np.flatnonzero(z == z[outputs["token"][row]])[-1]


def smaller(outputs, logits):
    outputs["index"][1, -1] = logits[1].argmin()
    outputs["token"][2] = logits[2].argmin()


def twice(outputs, logits):
    outputs["index"][3, 1] = outputs["index"][3, 0]


@pytest.mark.parametrize(
    ("change", "index", "token"), [(other_ties, True, True), (smaller, False, False), (twice, False, True)]
)
def test_equal_logits_may_change_places_and_nothing_else(change, index, token):
    assert {"index": index, "p": True, "token": token} == compared(change)


def test_the_kernel_s_golden_data_keep_the_order_of_indices():
    for golden in SPEC.golden:
        assert not isinstance(golden.tolerance, type(None)), golden.source
        assert (None, None) == (golden.tolerance["index"].among, golden.tolerance["token"].among)
