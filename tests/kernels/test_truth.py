"""The emulator tells the truth: every kernel and variant leaves on the CPU what it leaves on the GPU."""

import pytest

from prism_bench.backends import open_backend
from prism_bench.studies.emulator_truth import differences, kernels, split
from tests.built_in import CATALOGUE


@pytest.fixture(scope="module")
def backends():
    return open_backend("emulator"), open_backend("cuda")


def compared():
    """A parameter for what the emulator runs of each kernel, and a skipped one for what it does not run, with why."""
    for kernel in kernels():
        cases = CATALOGUE.edges_of(kernel)
        emulated, lacking = split(cases)
        if emulated:
            yield pytest.param(emulated, id=kernel)
        if lacking:
            reason = f"{len(lacking)} of {len(cases)} edges of {kernel}: not emulated: {', '.join({*lacking.values()})}"
            yield pytest.param(list(lacking), id=f"{kernel}-not-emulated", marks=pytest.mark.skip(reason=reason))


@pytest.mark.gpu
@pytest.mark.parametrize("cases", [*compared()])
def test_emulator_and_device_agree_on_every_edge_and_golden_case(cases, backends):
    by_case = {case.name: differences(*backends, case) for case in cases}
    assert all(by_case.values()), "a case without a compared output"
    found = [difference for each in by_case.values() for difference in each]
    assert not [str(difference) for difference in found if not difference.found.passed]
