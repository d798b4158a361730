"""Choices on disk: kept whole, looked up by size class or near it, told stale, refused where damaged."""

import json

import pytest

from prism_bench.errors import ResultsError
from prism_bench.workflows.tuning.choice import KeptChoices, path_for, read_kept, toolchain_of, write_kept
from tests.workflows.tuning.choices import TOOLS, choice


def kept(*choices):
    return KeptChoices("h200", "NVIDIA H200", "cuda", choices)


def test_what_is_written_is_read_again(tmp_path):
    path = write_kept(kept(choice()), path_for("h200", tmp_path))
    assert tmp_path / "h200.json" == path
    assert kept(choice()) == read_kept(path)


def test_no_store_is_no_choice(tmp_path):
    assert None is read_kept(tmp_path / "h200.json")


@pytest.mark.parametrize(
    "damage, complaint",
    [
        (lambda text: text[: len(text) // 2], "not readable as a store of choices"),
        (lambda text: "[]", "schema is None, not 1"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "schema is 2, not 1"),
        (lambda text: text.replace('"tried"', '"tired"'), "damaged as a store of choices"),
        (
            lambda text: text.replace('"device": "NVIDIA H200",', ""),
            "damaged as a store of choices .KeyError: 'device'",
        ),
        (lambda text: json.dumps({**json.loads(text), "choices": [7]}), "damaged as a store of choices"),
        (lambda text: text.replace("2e-06,", ""), "damaged as a store of choices .ValidationError: .*seconds"),
    ],
)
def test_a_damaged_store_is_named(tmp_path, damage, complaint):
    path = write_kept(kept(choice()), tmp_path / "h200.json")
    path.write_text(damage(path.read_text()))
    with pytest.raises(ResultsError, match=f"h200.json.*{complaint}"):
        read_kept(path)


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot write"):
        write_kept(kept(), tmp_path / "file" / "h200.json")


def test_another_device_or_backend_uses_none():
    assert None is kept().misfit("NVIDIA H200", "cuda")
    assert "are of device NVIDIA H200, not NVIDIA A100: none is used" in kept().misfit("NVIDIA A100", "cuda")
    assert "are of backend cuda, not emulator" in kept().misfit("NVIDIA H200", "emulator")


def test_the_size_class_comes_before_what_is_near():
    own, near = choice(workload={"n": 2000}), choice(workload={"n": 3100})
    assert (own, "size class") == kept(own, near).nearest("tripled", {"n": 2999}, TOOLS)
    assert (near, "nearest size class") == kept(own, near).nearest("tripled", {"n": 4000}, TOOLS)


def test_too_far_away_there_is_none():
    assert (None, "nothing near was tuned") == kept(choice()).nearest("tripled", {"n": 20_000}, TOOLS)
    assert (None, "nothing near was tuned") == kept(choice()).nearest("doubled", {"n": 2500}, TOOLS)
    assert (None, "nothing near was tuned") == kept(choice()).nearest("tripled", {"n": 2500, "m": 1}, TOOLS)


def test_among_equals_this_toolchain_comes_first_then_the_newest():
    old = choice(created="2025-01-01T00:00:00")
    other = choice(toolchain={"driver": "590.0", "nvrtc": "13.0"}, created="2026-06-01T00:00:00")
    assert (old, "size class") == kept(old, other).nearest("tripled", {"n": 2500}, TOOLS)
    newer = choice(created="2025-02-01T00:00:00", workload={"n": 2400})
    assert newer == kept(old, newer).nearest("tripled", {"n": 2500}, TOOLS)[0]


def test_a_newer_choice_replaces_the_one_of_its_class_and_toolchain():
    new = choice(workload={"n": 2600}, tried=9)
    other = choice(toolchain={"driver": "590.0"})
    assert (new, other) == tuple(sorted(kept(choice(), other).with_choices([new]).choices, key=lambda one: -one.tried))


@pytest.mark.parametrize(
    "source, toolchain, why",
    [
        ("abc", TOOLS, None),
        ("def", TOOLS, "the source changed"),
        ("abc", {**TOOLS, "driver": "590.0"}, "driver 580.1 became 590.0"),
        ("def", {"nvrtc": "13.1"}, "nvrtc 13.0 became 13.1, the source changed"),
    ],
)
def test_a_changed_source_or_driver_makes_a_choice_stale(source, toolchain, why):
    assert why == choice().stale(source, toolchain)


def test_a_kept_default_is_no_adoption():
    assert choice().adopted
    assert not choice(configuration={"block": 128, "items": 1}).adopted


def test_the_toolchain_is_what_turns_sources_into_code():
    facts = {"device": "x", "compute_capability": 90, "software": {"driver": "580.1", "numpy": "2", "nvrtc": "13.0"}}
    assert {**TOOLS, "compute_capability": "90"} == toolchain_of(facts)
    assert {} == toolchain_of({})
