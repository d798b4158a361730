"""The entropy map of the profiling guide's image has known aggregates; the golden cases compare whole maps with it."""

import numpy as np
import pytest

from prism_bench.spec.case import Case
from tests.built_in import CATALOGUE

SPEC = CATALOGUE.kernel("pixel_entropy")
GUIDE = {golden.workload["window"]: golden for golden in SPEC.golden if golden.workload.get("hi") == 5000}


@pytest.mark.parametrize(
    ("window", "pixels", "mean"), [(16, 6000, 0.017078), (8, 2800, 0.008478), (32, 12_400, 0.033524)]
)
def test_reference_on_the_guides_image(window, pixels, mean):
    golden = GUIDE[window]
    case = Case(SPEC, golden.workload, "golden", golden=golden)
    image = case.inputs()["x"].on(np)
    entropy = case.correctness.expected({"x": image}, np, None)["entropy"]
    assert np.count_nonzero(entropy > 1e-9) == pixels
    assert entropy.mean() == pytest.approx(mean, abs=5e-7)
    assert entropy.max() <= 1 + 1e-12
    assert entropy.min() > -1e-12
