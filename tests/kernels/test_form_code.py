"""Machine code of forms in other languages: the instructions that make them fast, and none that spill registers."""

import re

import pytest

from prism_bench.compilation.languages import build, build_request, language
from prism_bench.compilation.listing import listing_of, missing, tool
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.case import Device
from tests.built_in import CATALOGUE

H200 = Device(compute_capability=90, sm_count=132)


def instructions(name: str) -> list[str]:
    """Return the instructions of the largest case on a device of compute capability 9.0."""
    (case,) = CATALOGUE.cases([name], ("S1",))
    try:
        language(case.spec.language).require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    if tool("nvdisasm") is None:
        pytest.skip(missing())
    request = build_request(case, H200)
    assert request is not None
    built = build(request)
    listings = {path: listing_of(path) for path in {kernel.path for kernel in built.kernels.values()}}
    return [one for functions in listings.values() for function in functions.values() for one in function.instructions]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("tensor_core_matmul:cute", (r"\bHGMMA\.64x256x16", r"\bLDGSTS\.E\.BYPASS\.128\b", r"\bSTG\.E\.64\b")),
        ("matmul:numba", (r"\bLDS\.128\b",)),
        ("matmul:tile", (r"\bLDG\.E\.128\b", r"\bLDS\.128\b")),
    ],
)
def test_a_form_has_the_instructions_of_its_fast_path(name, needed):
    found = instructions(name)
    assert not [pattern for pattern in needed if not any(re.search(pattern, one) for one in found)]


def test_numbas_products_outnumber_their_loads_of_shared_memory():
    """Sixteen products for each load: a thread multiplies eight by eight from four loads of four numbers."""
    found = instructions("matmul:numba")
    products, loads = (sum(one.split()[0].startswith(kind) for one in found) for kind in ("FFMA", "LDS"))
    assert products >= 16 * loads > 0
