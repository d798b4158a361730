"""The queue kernel of every chain as machine code: it compiles, without spills and constant loads."""

import pytest

from prism_bench.compilation import compile_source, compile_to_ptx, nvrtc_version
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.persistent.queue import program_of, served
from tests.extensions.persistent.chains import CHAINS, LARGE

STATIC_SHARED = 48 << 10


def installed():
    try:
        return bool(nvrtc_version())
    except BackendUnavailable:
        return False


pytestmark = pytest.mark.skipif(not installed(), reason="NVRTC is not installed")


@pytest.mark.parametrize("name", CHAINS)
def test_it_fits_one_block_a_multiprocessor_and_spills_nothing(name):
    order = served([program_of(name, CHAINS[name], LARGE)])
    (used,) = compile_source(order.source, (order.entry,), "90").resources.values()
    assert 0 == used.spill_stores + used.spill_loads
    assert used.shared_bytes <= STATIC_SHARED
    assert used.shared_bytes + order.shared <= LARGE.max_shared_bytes


def test_changing_arrays_are_not_read_as_constant():
    """The product's bias is read by __ldg, which on a device may come from a stale cache."""
    order = served([program_of("linear_algebra", CHAINS["linear_algebra"], LARGE)])
    ptx = compile_to_ptx(order.source, (order.entry,), "90")
    kernel = ptx[ptx.index(".entry") :]
    assert "ld.global" in kernel
    assert "ld.global.nc" not in kernel
