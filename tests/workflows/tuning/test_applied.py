"""Cases launched by choices: configured, stale, of another device, impossible here, untuned."""

from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.spec.case import Device
from prism_bench.workflows.tuning.choice import (
    KeptChoices,
    TuningMachine,
    applied,
    launched,
    path_for,
    untuned,
    write_kept,
)
from tests.workflows.tuning.choices import TOOLS, choice

CATALOGUE = discover(Path(__file__).parents[2] / "tunable")
FACTS = {"device": "NVIDIA H200", "software": TOOLS}
HERE = TuningMachine("h200", FACTS, "cuda", Device())
SOURCE = launched(CATALOGUE.kernel("tripled"))


@pytest.fixture
def launch(tmp_path):
    """A function that keeps choices and applies them to S0, which has 1000 elements."""

    def run(*choices, machine=HERE, device="NVIDIA H200"):
        write_kept(KeptChoices("h200", device, "cuda", choices), path_for("h200", tmp_path))
        return applied(CATALOGUE.cases(["tripled"], ["S0"]), machine, tmp_path)

    return run


def chosen(**changes):
    return choice(**{"workload": {"n": 1000}, "source": SOURCE, **changes})


def test_a_choice_configures_its_case_and_is_told(launch, tmp_path):
    found = launch(chosen())
    assert [{"block": 64}, {}] == [case.choice for case in found.cases]
    told = {"configuration": {"block": 64, "items": 1}, "by": "size class", "tuned_at": {"n": 1000}}
    assert {"tripled[n=1000]": {**told, "created": "2026-01-02T03:04:05"}} == found.facts["choices"]
    assert [f"tuned: 1 of 2 cases by {tmp_path / 'h200.json'}"] == found.notes


def test_a_stale_choice_leaves_the_default_and_says_so(launch):
    found = launch(chosen(source="another"))
    assert [{}, {}] == [case.choice for case in found.cases]
    assert {"tripled[n=1000]": "the source changed"} == found.facts["stale"]
    assert ["stale choices, the default is launched: tripled[n=1000]: the source changed; prism-bench tune"] == (
        found.notes
    )


def test_a_changed_driver_makes_every_choice_stale(launch):
    newer = TuningMachine("h200", {**FACTS, "software": {**TOOLS, "driver": "590.0"}}, "cuda", Device())
    assert {"tripled[n=1000]": "driver 580.1 became 590.0"} == launch(chosen(), machine=newer).facts["stale"]


def test_a_value_that_the_spec_has_no_longer_is_stale(launch):
    found = launch(chosen(configuration={"block": 96, "items": 1}))
    assert "block is one of 128, 64, 256" in found.facts["stale"]["tripled[n=1000]"]


def test_a_choice_that_breaks_a_rule_here_is_not_used(launch):
    found = launch(chosen(configuration={"block": 256, "items": 2}))
    assert ([{}, {}], {}) == ([case.choice for case in found.cases], found.facts["choices"])


def test_another_device_s_store_is_not_used(launch):
    found = launch(chosen(), device="NVIDIA A100")
    assert [{}, {}] == [case.choice for case in found.cases]
    assert ["untuned: the stored choices are of device NVIDIA A100, not NVIDIA H200: none is used"] == found.notes


def test_without_a_store_or_without_a_wish_everything_is_as_the_specs_say(tmp_path):
    cases = CATALOGUE.cases(["tripled"], ["S0"])
    assert (tuple(cases), {"asked": "tuned"}, []) == _parts(applied(cases, HERE, tmp_path))
    assert (tuple(cases), {"asked": "untuned"}, []) == _parts(untuned(cases))


def _parts(found):
    return found.cases, found.facts, found.notes


def test_what_is_launched_is_code_and_not_words(tmp_path):
    family = tmp_path / "arith"
    family.mkdir()
    for name in ("tripled.cu", "tripled.py"):
        (family / name).write_text((CATALOGUE.folder / "arith" / name).read_text())

    def changed(name, old, new):
        text = (family / name).read_text()
        (family / name).write_text(text.replace(old, new))
        return launched(discover(tmp_path).kernel("tripled"))

    assert SOURCE == changed("tripled.py", '"""y = 3 x', '# a comment\n"""Three times x')
    assert SOURCE != changed("tripled.py", "block=block)", "block=block, shared=0)")
    before = changed("tripled.py", "shared=0", "shared=0")
    assert before == changed("tripled.cu", "3.0f * x[i];", "3.0f * x[i];  // three\n\n")
    assert before != changed("tripled.cu", "3.0f *", "3.0f*")
