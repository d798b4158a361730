"""Forms in the CuTe DSL: launches that fit each architecture, and machine code where the compiler is installed."""

from itertools import groupby

import pytest

from prism_bench.compilation.languages import build, build_request, language
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.case import Device
from tests.built_in import CATALOGUE

DEVICES = {
    number: Device(compute_capability=number, sm_count=132, max_shared_bytes=shared)
    for number, shared in ((80, 163 << 10), (90, 227 << 10), (100, 227 << 10), (120, 99 << 10))
}
CASES = [case for case in [*CATALOGUE.cases(), *CATALOGUE.edges()] if case.spec.language == "cute"]
LAUNCHING = sorted((case for case in CASES if case.plan.instances(DEVICES[90])), key=lambda case: case.kernel)
SMALLEST = {
    name: min(cases, key=lambda case: case.sizes.bytes_moved)
    for name, cases in groupby(LAUNCHING, key=lambda case: case.kernel)
}


@pytest.mark.parametrize("architecture", DEVICES)
def test_launches_fit_the_device(architecture):
    device = DEVICES[architecture]
    assert CASES
    for case in (one for one in CASES if not one.plan.refusal(device)):
        constants = [one.constants for one in case.plan.instances(device)]
        assert all(one.get("shared", 0) <= device.max_shared_bytes for one in constants), case.name
        assert all(one["threads"] <= 1024 for one in constants if "threads" in one), case.name


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("name", SMALLEST)
def test_each_compiles(name, architecture, monkeypatch, tmp_path):
    try:
        language("cute").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    for kernel in build(build_request(SMALLEST[name], DEVICES[architecture])).kernels.values():
        assert kernel.card.entry
        assert kernel.resources.registers > 0
