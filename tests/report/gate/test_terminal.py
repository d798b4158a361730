"""The gate in a terminal, and for programs."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from prism_bench.analysis.gate.checks import GateCheck, GatePart
from prism_bench.report import gate as json_view
from prism_bench.report.gate import headline, is_undecided
from prism_bench.report.terminal.gate import view
from tests.report.gate.planted import BAD, DOUBT, MET, NOTE, OK, gate_of, many


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


def against(name, **answers):
    """A part that compares, with so many cases of each answer."""
    words = [word for word, count in answers.items() for _ in range(count)]
    checks = [
        GateCheck(f"k{number}[n=1]", "cold_time", word, "note" if word == "inconclusive" else "well")
        for number, word in enumerate(words)
    ]
    return GatePart(name, tuple(checks))


def test_missed_budgets_hide_nothing_that_became_faster():
    """A first sentence of missed budgets alone said nothing of what `compare` shows."""
    text = shown(gate_of(BAD, more=[against("last", faster=2, same=3)]))
    assert text.startswith("Below budget: 1 budget missed, 2 cases faster than when last measured, none slower.")


def test_the_same_cases_of_two_comparisons_are_named_once():
    text = shown(gate_of(OK, more=[against("last", faster=2), against("baseline", faster=2)]))
    assert text.startswith("Better: 2 cases faster than when last measured and in the baseline, none slower.")
    text = shown(gate_of(OK, more=[against("last", faster=2), against("baseline", faster=1)]))
    assert text.startswith(
        "Better: 2 cases faster than when last measured, 1 case faster than in the baseline, none slower."
    )


def test_what_statistics_leave_open_is_never_as_fast():
    """Nothing that is undecided is counted as the same, and what is mostly undecided is no green sentence."""
    sentences = {
        "Undecided: 3 cases compared with the last measurement.": [against("last", inconclusive=3)],
        "Undecided: 2 cases compared with the baseline, 1 as fast.": [against("baseline", same=1, inconclusive=2)],
        "No change: 3 cases as fast as when last measured, 1 undecided.": [against("last", same=3, inconclusive=1)],
        "Better: 1 case faster than when last measured, none slower, 3 undecided.": [
            against("last", faster=1, inconclusive=3)
        ],
        "Undecided: 2 cases compared with the baseline, 5 cases as fast as when last measured.": [
            against("baseline", inconclusive=2), against("last", same=5),
        ],
    }  # fmt: skip
    assert list(sentences) == [headline(gate_of(OK, more=parts)) for parts in sentences.values()]
    assert [True, True, False, False, True] == [is_undecided(gate_of(OK, more=parts)) for parts in sentences.values()]


def test_a_case_that_keeps_the_factor_is_not_decided_by_it():
    part = against("baseline", inconclusive=3)
    steady = tuple(replace(check, answer="steady", gravity="well", metric="hot_time") for check in part.checks)
    both = gate_of(OK, more=[replace(part, checks=(*part.checks, *steady))])
    assert "Undecided: 3 cases compared with the baseline." == headline(both)


def test_a_case_of_several_metrics_is_one_case():
    part = against("last", same=1)
    twice = replace(part, checks=(*part.checks, replace(part.checks[0], metric="hot_time")))
    assert "No change: 1 case as fast as when last measured." == headline(gate_of(OK, more=[twice]))


def test_an_earlier_run_that_cannot_be_trusted_is_not_called_the_last_one():
    newest = replace(against("last", same=1).checks[0], against="b")
    doubt = GateCheck(None, None, "control", "untrusted", "9 of 300 cases differ", against="a")
    parts = [GatePart("last", (newest, doubt))]
    assert "Untrusted: the comparison with an earlier run cannot be trusted." == headline(gate_of(OK, more=parts))
    parts = [GatePart("last", (newest, replace(doubt, against="b")))]
    assert "Untrusted: the comparison with the last run cannot be trusted." == headline(gate_of(OK, more=parts))


def test_programs_get_every_check_and_the_commands():
    plain = json.loads(json.dumps(json_view.view(gate_of(BAD, MET)), allow_nan=False))
    assert (1, "nvidia-h200", False) == (plain["exit_code"], plain["machine"], plain["dirty"])
    bad, met = plain["parts"][0]["checks"]
    assert bad["reproduce"].endswith("--filter 'softmax[n=100]'") and met["reproduce"] is None
    assert ("missed", "bad", 1.5) == (bad["answer"], bad["gravity"], bad["ratio"])
