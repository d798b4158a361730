"""Stored choices brought up to date: kept with the new hash where the launch is the same at their commit."""

from prism_bench.workflows.tuning_session import judged
from tests.workflows.tuning.choices import choice


def test_choices_are_kept_changed_or_dropped_with_the_reason():
    choices = [
        choice(kernel="same", source="new"),
        choice(kernel="restamped", source="old", commit="c1"),
        choice(kernel="changed", source="old", commit="c1"),
        choice(kernel="unknown", source="old", commit=None),
        choice(kernel="gone", source="old", commit="c1"),
    ]
    then = {"restamped": "new", "changed": "other"}
    found = judged(choices, lambda name: None if name == "gone" else "new", lambda name, commit: then.get(name))
    assert [("same", "new"), ("restamped", "new")] == [(one.kernel, one.source) for one in found.kept]
    assert 1 == found.changed
    assert {
        "changed": "what is launched changed since c1",
        "unknown": "its commit is unknown",
        "gone": "the catalogue has no such kernel",
    } == {one.kernel: why for one, why in found.dropped}
