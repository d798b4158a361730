"""Every configuration that a spec's tune= allows is right on the emulator at the edges, unnamed."""

import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.errors import BackendUnavailable
from prism_bench.run.verification import complaint, passed, verify
from tests.built_in import CATALOGUE

LARGE = 1 << 20  # bytes above which one configuration beside the default is enough
TUNABLE = [spec.name for spec in CATALOGUE.kernels.values() if spec.tune]


@pytest.fixture(scope="module")
def emulator():
    """The emulator; without a C++ compiler nothing here can run."""
    try:
        return EmulatorBackend()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("kernel", TUNABLE)
def test_every_configuration_is_right_at_the_edges(emulator, kernel):
    launched, wrong = 0, []
    for edge in CATALOGUE.edges_of(kernel):
        if edge.is_regime:
            continue
        others = edge.configurations(emulator.device)[1:]  # the default is verified with all the rest
        for case in others if edge.sizes.bytes_moved <= LARGE else others[-1:]:
            entries = verify(emulator, case, seeds=(0,))
            launched += 1
            wrong += [] if passed(entries) else [f"{case.task}: {complaint(case, 'emulator', entries)}"]
    assert [] == wrong
    assert launched


def test_many_kernels_can_be_tuned():
    assert len(TUNABLE) >= 20
