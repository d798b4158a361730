"""Names whose meaning is remembered, and what is said when one changes."""

from types import SimpleNamespace

import pytest

from prism_bench import originals
from prism_bench.errors import MeasurementInvalid


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """Nothing is kept but what the test keeps."""
    monkeypatch.setattr(originals, "_KEPT", {})
    monkeypatch.setattr(originals, "_STRANGE", [])


def test_what_means_the_same_is_not_told():
    originals.keep("module", SimpleNamespace(read=min), ("read", "absent"))
    assert [] == originals.replaced()
    originals.refuse_replaced()


@pytest.mark.parametrize("change", [lambda owner: setattr(owner, "read", max), lambda owner: delattr(owner, "read")])
def test_a_name_that_means_something_else_is_refused(change):
    owner = SimpleNamespace(read=min)
    originals.keep("module", owner, ("read",))
    change(owner)
    with pytest.raises(MeasurementInvalid, match=r"module\.read was replaced: no time can be trusted"):
        originals.refuse_replaced()


def test_methods_and_properties_of_a_class_are_kept_and_the_first_meaning_counts():
    class Timer:
        step = 3

        def once(self):
            return 1.0

        @property
        def mean(self):
            return 1.0

    originals.keep("Timer", Timer)
    Timer.once = Timer.mean = lambda self: 0.0
    Timer.step = 4
    originals.keep("Timer", Timer)
    assert ["Timer.mean", "Timer.once"] == originals.replaced()


def test_what_was_strange_from_the_start_is_told():
    originals.distrust("cupy.cuda.Event")
    assert ["cupy.cuda.Event"] == originals.replaced()
