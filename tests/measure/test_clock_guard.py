"""Names whose meaning is remembered, and what is said when one changes."""

from types import SimpleNamespace

import pytest

from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import call_checks


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """Nothing is kept but what the test keeps."""
    monkeypatch.setattr(call_checks, "_KEPT", {})
    monkeypatch.setattr(call_checks, "_STRANGE", [])


def test_what_means_the_same_is_not_told():
    call_checks.keep("module", SimpleNamespace(read=min), ("read", "absent"))
    assert [] == call_checks.replaced()
    call_checks.refuse_replaced()


@pytest.mark.parametrize("change", [lambda owner: setattr(owner, "read", max), lambda owner: delattr(owner, "read")])
def test_a_name_that_means_something_else_is_refused(change):
    owner = SimpleNamespace(read=min)
    call_checks.keep("module", owner, ("read",))
    change(owner)
    with pytest.raises(MeasurementInvalid, match=r"module\.read was replaced: no time can be trusted"):
        call_checks.refuse_replaced()


def test_methods_and_properties_of_a_class_are_kept_and_the_first_meaning_counts():
    class Timer:
        step = 3

        def once(self):
            return 1.0

        @property
        def mean(self):
            return 1.0

    call_checks.keep("Timer", Timer)
    Timer.once = Timer.mean = lambda self: 0.0
    Timer.step = 4
    call_checks.keep("Timer", Timer)
    assert ["Timer.mean", "Timer.once"] == call_checks.replaced()


def test_what_was_strange_from_the_start_is_told():
    call_checks.distrust("cupy.cuda.Event")
    assert ["cupy.cuda.Event"] == call_checks.replaced()
