"""Overlap on planted timelines."""

import numpy as np
import pytest

from prism_bench.errors import MeasurementInvalid
from prism_bench.extensions.pipelines.session import depths, overlap
from prism_bench.profilers.timeline import COPY, KERNEL, timeline_of

NAMES = {"inside": 0, "k": 1}


def timeline(*work):
    rows = [(start, end, 0, kind, 1, 0, number, 0) for number, (start, end, kind) in enumerate(work)]
    return timeline_of(rows, [], [(100, 1000, 0, 0, 1)], NAMES, source="planted", tool="planted")


def test_two_kernels_half_side_by_side():
    found = overlap(timeline((100, 300, KERNEL), (200, 400, KERNEL), (600, 700, COPY)), "inside")
    assert (2, 1) == (found.kernels, found.copies)
    assert (400, 100, 600) == tuple(round(s * 1e9) for s in (found.busy, found.shared, found.span))
    assert 0.25 == pytest.approx(found.share)


def test_what_follows_at_once_does_not_overlap():
    assert (200.0, 0.0) == depths(np.array([0, 100]), np.array([100, 200]))


def test_three_at_once_count_once():
    assert (100.0, 100.0) == depths(np.array([0, 0, 0]), np.array([100, 100, 100]))


def test_work_outside_the_range_does_not_count():
    found = overlap(timeline((0, 50, KERNEL), (100, 200, KERNEL), (1000, 1100, KERNEL)), "inside")
    assert (1, 0.0) == (found.kernels, found.share)


@pytest.mark.parametrize("name", ["inside", "elsewhere"])
def test_no_work_in_the_range_is_no_overlap_of_zero(name):
    with pytest.raises(MeasurementInvalid, match=f"no work in a range '{name}'"):
        overlap(timeline((0, 50, KERNEL)), name)
