"""The published demonstration of the tracker, which no command shows."""

from prism_bench.extensions.memory import Tracker


def published_demo():
    """The pattern behind the published 67.92 % of reuse: made up for a demonstration, measured on no program."""
    tracker, kibi, mebi = Tracker(), 1 << 10, 1 << 20
    for size, times in ((4 * mebi, 20), (128 * kibi, 10), (256 * kibi, 8)):
        for _ in range(times):
            tracker.allocated(size)
            tracker.freed(size)
    for step in range(1, 16):
        tracker.allocated(step * 512 * kibi)
        if step % 3 == 0:
            tracker.freed(step * 512 * kibi)
    for _ in range(50):
        tracker.allocated(kibi)
    return tracker.tracked(synthetic=True)
