"""Names whose meaning is remembered, and what is said when one changes."""

from types import SimpleNamespace

import pytest

from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import clock_guard


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """Nothing is kept but what the test keeps."""
    monkeypatch.setattr(clock_guard, "_KEPT", {})
    monkeypatch.setattr(clock_guard, "_STRANGE", [])


def test_what_means_the_same_is_not_told():
    clock_guard.keep("module", SimpleNamespace(read=min), ("read", "absent"))
    assert [] == clock_guard.replaced()
    clock_guard.refuse_replaced()


@pytest.mark.parametrize("change", [lambda owner: setattr(owner, "read", max), lambda owner: delattr(owner, "read")])
def test_a_name_that_means_something_else_is_refused(change):
    owner = SimpleNamespace(read=min)
    clock_guard.keep("module", owner, ("read",))
    change(owner)
    with pytest.raises(MeasurementInvalid, match=r"module\.read was replaced: no time can be trusted"):
        clock_guard.refuse_replaced()


def test_methods_and_properties_of_a_class_are_kept_and_the_first_meaning_counts():
    class Timer:
        step = 3

        def once(self):
            return 1.0

        @property
        def mean(self):
            return 1.0

    clock_guard.keep("Timer", Timer)
    Timer.once = Timer.mean = lambda self: 0.0
    Timer.step = 4
    clock_guard.keep("Timer", Timer)
    assert ["Timer.mean", "Timer.once"] == clock_guard.replaced()


def test_what_was_strange_from_the_start_is_told():
    clock_guard.distrust("cupy.cuda.Event")
    assert ["cupy.cuda.Event"] == clock_guard.replaced()
