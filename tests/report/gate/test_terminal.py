"""The gate in a terminal, and for programs."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from prism_bench.analysis.gate.checks import GatePart
from prism_bench.report.gate import json_view
from prism_bench.report.terminal.gate import view
from tests.report.gate.planted import BAD, DOUBT, MET, NOTE, gate_of, many


def shown(gate, width=120):
    console = Console(width=width, record=True, file=open("/dev/null", "w"), color_system=None)  # noqa: SIM115
    with console.file:
        console.print(view(gate), crop=False)
        return console.export_text()


def test_a_concern_is_told_with_its_command_in_one_line():
    text = shown(gate_of(BAD), width=60)
    assert (
        "\n    git checkout 7471611d0c9b && prism-bench run --backend cuda --label S0 --filter 'softmax[n=100]'\n"
        in text
    )


def test_notes_that_differ_in_numbers_alone_are_one_line():
    text = shown(gate_of(*many(12, NOTE)))
    assert "unmeasured: k0[n=1]: energy was not measured (also k1, k2, k3 and 8 more)" in text
    assert 1 == text.count("energy was not measured")


def test_notes_are_counted_beyond_the_first():
    words = [replace(NOTE, message=f"{quantity} was not measured") for quantity in ("power", "energy", "hot", "cold")]
    text = shown(
        gate_of(*words, *many(3, replace(NOTE, message="no peer")), *many(4, replace(NOTE, message="no clock")))
    )
    assert "(also k1, k2)" in text and "no clock" not in text
    assert "and 4 more unmeasured" in text


def test_silence_has_its_reason():
    assert "no baseline for box" in shown(gate_of(MET, more=[GatePart("baseline", silent="no baseline for box")]))


@pytest.mark.parametrize(
    ("checks", "sentence"),
    [
        ([MET], "No problem: 1 budget met; nothing to compare with yet."),
        ([MET, BAD], "Below budget: 1 budget missed."),
        ([DOUBT, BAD], "Untrusted: 1 case cannot be trusted, 1 budget missed."),
        ([NOTE], "Nothing could be judged."),
        ([], "Nothing could be judged."),
    ],
)
def test_the_sentence(checks, sentence):
    assert shown(gate_of(*checks)).startswith(sentence)


def test_programs_get_every_check_and_the_commands():
    plain = json.loads(json.dumps(json_view.view(gate_of(BAD, MET)), allow_nan=False))
    assert (1, "nvidia-h200", False) == (plain["exit_code"], plain["machine"], plain["dirty"])
    bad, met = plain["parts"][0]["checks"]
    assert bad["reproduce"].endswith("--filter 'softmax[n=100]'") and met["reproduce"] is None
    assert ("missed", "bad", 1.5) == (bad["answer"], bad["gravity"], bad["ratio"])
