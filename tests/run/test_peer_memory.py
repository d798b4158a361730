"""Device memory that a peer leaves: a leak ends the process, a workspace or another process's memory does not."""

from itertools import chain, repeat

import pytest

from prism_bench.backends.base import HeldBytes
from prism_bench.backends.null import NullBackend
from prism_bench.run.peers import HeldMemory, PeerSpoiled
from tests.run.test_peers import GOOD, taken


def test_a_leak_ends_the_process_with_the_bytes():
    with pytest.raises(PeerSpoiled, match=r"it leaks: 6.00 MB of device memory are still held"):
        taken({"bad": {"leaks": 2_000_000}})


def test_a_workspace_that_is_kept_once_is_no_leak(monkeypatch):
    held = iter([0, 64, 64, 64, 64, 64, 64, 64])
    monkeypatch.setattr(NullBackend, "held_bytes", lambda self, alone: HeldBytes(next(held) << 20))
    assert all(one.valid for one in taken({"good": GOOD}).measurements)


def test_memory_outside_of_arrays_counts_from_what_the_driver_loads(monkeypatch):
    monkeypatch.setattr(NullBackend, "held_bytes", lambda self, alone: HeldBytes(0, next(held) << 20))
    held = iter([0, 30])
    assert all(one.valid for one in taken({"good": GOOD}).measurements)
    held = steady(40, 80, 80, 80, 120, 120, 160, 160, 160, 160)
    with pytest.raises(PeerSpoiled, match="it leaks"):
        taken({"good": GOOD})


def steady(*megabytes):
    """Readings of the device's memory; the last one stays."""
    return chain(megabytes, repeat(megabytes[-1]))


@pytest.mark.parametrize(
    "readings",
    [(0, 40, 40, 40, 80, 80, 800), (0, 40, 40, 40, 80, 80, 120, 120, 160)],
    ids=["unevenly", "without a use"],
)
def test_memory_that_others_take_on_the_device_is_no_leak(monkeypatch, readings):
    held = steady(*readings)
    monkeypatch.setattr(NullBackend, "held_bytes", lambda self, alone: HeldBytes(0, next(held) << 20))
    assert all(one.valid for one in taken({"good": GOOD}).measurements)


@pytest.mark.parametrize(("held", "leaks"), [(200, False), (300, True)])
def test_a_peer_that_lacked_memory_leaks_where_it_keeps_more_than_a_workspace(monkeypatch, held, leaks):
    kept = HeldMemory(NullBackend(), alone=True)
    monkeypatch.setattr(NullBackend, "held_bytes", lambda self, alone: HeldBytes(held << 20))
    assert leaks is (kept.leak(lambda: pytest.fail("it is not used again"), lacked_memory=True) is not None)
