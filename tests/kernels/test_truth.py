"""The emulator tells the truth: every kernel and variant leaves on the CPU what it leaves on the GPU."""

import pytest
from lab.emulator_truth import differences, kernels, split

from prism_bench.backends import open_backend
from tests.built_in import CATALOGUE


@pytest.fixture(scope="module")
def backends():
    return open_backend("emulator"), open_backend("cuda")


def _chosen(kernel: str) -> object:
    """Mark what runs in a simulator as thorough: it has a Python thread for each thread of a block, and is slow."""
    simulated = {case.spec.language for case in CATALOGUE.edges_of(kernel)} == {"numba"}
    return pytest.param(kernel, marks=pytest.mark.thorough) if simulated else kernel


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", [_chosen(kernel) for kernel in kernels()])
def test_emulator_and_device_agree_on_every_edge_and_golden_case(kernel, backends):
    """What the emulator does not run of a kernel is in the reason of a skip, after what it runs was compared."""
    emulated, lacking = split(CATALOGUE.edges_of(kernel))
    by_case = {case.name: differences(*backends, case) for case in emulated}
    assert all(by_case.values()), "a case without a compared output"
    found = [difference for each in by_case.values() for difference in each]
    assert not [str(difference) for difference in found if not difference.found.passed]
    if lacking:
        pytest.skip(f"{len(emulated)} edges agree, {len(lacking)} are not emulated: {', '.join({*lacking.values()})}")
