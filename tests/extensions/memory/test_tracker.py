"""The published tracker's numbers, and the real fragmentation next to them."""

import pytest

from prism_bench.extensions.memory import Tracker
from prism_bench.extensions.memory.pool import Extents
from tests.extensions.memory.published import published_demo

MEBI = 1 << 20


def tracked(*sizes):
    tracker = Tracker()
    for size in sizes:
        tracker.allocated(size)
    return tracker.tracked()


def test_the_published_demo_is_reproduced_and_labelled_synthetic():
    demo = published_demo()
    assert (53, 17, 36) == (demo.allocations, demo.unique, demo.repeated)
    assert ("67.92", "32.08") == (f"{demo.reuse_potential:.2f}", f"{demo.unique_percent:.2f}")
    assert (143.25, 37.5, 45.0) == tuple(n / MEBI for n in (demo.allocated_bytes, demo.current, demo.peak))
    assert (True, 50, "high") == (demo.synthetic, demo.ignored, demo.advice)
    assert demo.plain()["synthetic"]


def test_the_published_unit_facts():
    assert (1, 2) == (tracked(MEBI, MEBI, 2 * MEBI).repeated, tracked(MEBI, MEBI, 2 * MEBI).unique)
    assert tracked(*[MEBI] * 10).reuse_potential > 80
    assert tracked(*((number + 1) * 1024 for number in range(100))).warns


@pytest.mark.parametrize(("sizes", "advice"), [((8, 8, 8), "high"), ((8, 8, 16), "medium"), ((8, 16, 32), "low")])
def test_advice_by_the_published_thresholds(sizes, advice):
    assert advice == tracked(*(size * 1024 for size in sizes)).advice


def test_sizes_that_never_come_again_may_share_a_class():
    counts = tracked(5000, 6000, 7000, 9000)
    assert (0.0, 50.0) == (counts.reuse_potential, counts.class_reuse)


def test_empty_tracker_has_no_percentages():
    assert (0.0, 0.0, 0.0) == (tracked().reuse_potential, tracked().unique_percent, tracked().class_reuse)
    assert (0, None) == (tracked().peak, tracked().internal)


def test_releases_of_ignored_sizes_are_ignored():
    tracker = Tracker()
    tracker.allocated(8192)
    tracker.freed(100)
    assert 8192 == tracker.tracked().current


def test_rounding_needs_the_allocators_report():
    tracker = Tracker()
    tracker.allocated(6000, 8192)
    tracker.allocated(8192, 8192)
    tracker.freed(6000, 8192)
    assert 1 - (6000 + 8192) / 16_384 == tracker.tracked().internal
    tracker.allocated(5000)
    assert tracker.tracked().internal is None


def test_top_sizes_are_sorted_by_count():
    assert ((4096, 3), (8192, 1)) == tracked(4096, 8192, 4096, 4096).top


def test_json_has_the_published_keys_in_their_order():
    published = """total_allocations repeated_allocations reuse_potential_percent unique_sizes fragmentation_percent
    total_bytes_allocated current_memory_bytes peak_memory_bytes top_allocation_sizes""".split()
    assert published == list(published_demo().plain())[:9]


def test_free_pieces_are_the_gaps_between_pieces_in_use():
    extents = Extents()
    extents.add_chunk(1000, 100)
    extents.add_chunk(2000, 50)
    for address, size in ((1000, 30), (1050, 10), (2000, 50)):
        extents.use(address, size)
    assert [20, 40] == extents.gaps()
    assert 1 - 40 / 60 == extents.fragmentation()
    extents.release(1050)
    extents.release(2000)
    assert [50, 70] == sorted(extents.gaps())


def test_overlapping_chunk_replaces_the_older_chunk():
    extents = Extents()
    extents.add_chunk(1000, 100)
    extents.add_chunk(1050, 20)
    assert [20] == extents.gaps()


def test_the_worst_external_fragmentation_is_kept():
    tracker = Tracker()
    for share in (0.5, 0.0):
        tracker.saw_fragmentation(share)
    assert 0.5 == tracker.tracked().external
