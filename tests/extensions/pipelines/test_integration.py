"""The integration tests: kernels of several families in one pipeline, every stage against its reference.

Small on the emulator, and at the documents' size on a device.
"""

import pytest

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.pipelines.definitions import INTEGRATION, KNOWN, PHASES
from prism_bench.extensions.pipelines.pipeline import Prepared
from prism_bench.extensions.pipelines.session import check_results, check_stages
from tests.built_in import CATALOGUE


def complaints(pipeline, label, backend, forms):
    with Prepared(pipeline, label, CATALOGUE, backend) as prepared:
        entries = check_stages(prepared)
        for name in forms:
            entries += check_results(prepared, name)
    assert len(entries) > len(forms)
    return [entry for entry in entries if not entry["passed"]]


def test_thirteen_integration_pipelines():
    assert 13 == len(INTEGRATION) == len({pipeline.name for pipeline in INTEGRATION})
    assert {pipeline.name for pipeline in (*INTEGRATION, *PHASES)} == set(KNOWN)


@pytest.mark.parametrize("pipeline", [*INTEGRATION, *PHASES], ids=lambda pipeline: pipeline.name)
def test_small_on_the_emulator(pipeline):
    try:
        backend = open_backend("emulator")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert [] == complaints(pipeline, "small", backend, ("streams", "per_call", "allocating"))


@pytest.mark.gpu
@pytest.mark.parametrize("pipeline", [*INTEGRATION, *PHASES], ids=lambda pipeline: pipeline.name)
def test_at_size_on_the_device(pipeline):
    backend = open_backend("cuda")
    assert [] == complaints(pipeline, "S0", backend, ("streams", "graph", "per_call", "allocating"))
