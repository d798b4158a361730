"""The emulator tells the truth: every kernel and variant leaves on the CPU what it leaves on the GPU."""

import pytest

from prism_bench.backends import open_backend
from prism_bench.workbench.truth import differences, kernels
from tests.built_in import CATALOGUE


@pytest.fixture(scope="module")
def backends():
    return open_backend("emulator"), open_backend("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", kernels())
def test_emulator_and_device_agree_on_every_edge_and_golden_case(kernel, backends):
    found = [difference for case in CATALOGUE.edges_of(kernel) for difference in differences(*backends, case)]
    assert found
    assert not [str(difference) for difference in found if not difference.found.passed]
