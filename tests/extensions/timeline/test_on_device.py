"""Regions on a GPU: complete, on one clock, and cheap."""

import numpy as np
import pytest
from lab.timelines import PLACES, copy

from prism_bench.extensions.timeline.recording import record
from prism_bench.extensions.timeline.regions import overlaps, rows
from tests.extensions.timeline.placed import case_of, write

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device():
    from prism_bench.backends.cuda.backend import open_backend

    return open_backend()


def test_every_region_is_recorded(device, tmp_path):
    write(tmp_path, "roles")
    recording = record(device, case_of(tmp_path, "roles", "S1"), 5)
    timeline = recording.timeline
    counts = {row.name: row.count for row in rows(timeline)}
    assert {"half": 1000 * 2 * 4, "load": 1000 * 2 * 2, "store": 1000 * 2 * 2} == counts
    assert {*range(1000)} == {*timeline.block}
    assert len(np.unique(timeline.multiprocessor)) > device.device.sm_count // 2
    nested = timeline.parent >= 0
    assert (timeline.begin[nested] >= timeline.begin[timeline.parent[nested]]).all()


def test_clocks_of_multiprocessors_agree(device, tmp_path):
    write(tmp_path, "roles")
    timeline = record(device, case_of(tmp_path, "roles", "S1"), 5).timeline
    assert timeline.mismatch < 2e3, "nanoseconds"
    launch = float(timeline.end.max())
    assert 0 < launch < 1e6, "a launch of microseconds"


@pytest.mark.parametrize("kernel", [*PLACES])
def test_copies_of_our_kernels_are_recorded(device, tmp_path, kernel):
    """Persistent kernels in clusters with TMA and wgmma, and a chain in one launch."""
    copy(tmp_path, kernel)
    recording = record(device, case_of(tmp_path, kernel, "S1"), 21)
    assert len(rows(recording.timeline)) >= 2
    if kernel == "tensor_core_matmul":
        shares = overlaps(recording.timeline)
        assert 0.2 < shares["copy", "multiply"], "the copying thread works while warpgroups multiply"


def test_an_event_of_long_regions_takes_at_most_50_ns(device, tmp_path):
    copy(tmp_path, "fused_attention_softmax")
    cost = record(device, case_of(tmp_path, "fused_attention_softmax", "S1"), 41).cost
    assert cost.per_event <= 50e-9
