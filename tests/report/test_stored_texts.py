"""What `show`, `compare`, `check` and `verify` print at 80 columns, as stored texts of small made-up records.

After a deliberate change of the output, run this file as a program (`python -m tests.report.test_stored_texts`), and
look at the difference.
"""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from prism_bench.analysis.bounds.bottleneck import SourceLine
from prism_bench.analysis.bounds.why import CodeAgainst, CountedNear, Fix, why
from prism_bench.analysis.compare.comparison import compare
from prism_bench.analysis.run_analysis import read
from prism_bench.measure.plausibility import Limits
from prism_bench.report.terminal.comparison import comparison_view
from prism_bench.report.terminal.gate import view as gate_view
from prism_bench.report.terminal.profile import MOST, why_view
from prism_bench.report.terminal.record import summary_view
from prism_bench.report.terminal.verification import verification_view
from tests.analysis.bounds.test_why import counted, timed
from tests.analysis.measured_pairs import records
from tests.report.gate.planted import BAD, DOUBT, MET, NOTE, gate_of, many
from tests.report.synthetic import case_result, record_of

STORED = Path(__file__).with_name("texts")
WIDTH = 80
OUTSIDE = (
    "scale[n={n}] on emulator (fast): out of bounds: write of y[{n}]; y ends at y[{last}] "
    "[scale.cu:4 by block (0, 0, 0) thread ({n}, 0, 0)]"
)
COMPILER = "g++ refused the source (emulator, fast mode):\n" + "\n".join(
    f"/kernels/basic/sum.cu:{line}:9: error: 'a{line}' was not declared in this scope\n    {line} |    b = a{line};"
    for line in range(1, 12)
)


def _show():
    """Fourteen cases: one wrong at an edge, the others slower and faster than a peer, of long names."""
    name = "fused_matmul_bias_activation_of_a_long_name"
    times = [{"cold_time": 2e-5, "cold_time@peer:torch": (14 + n) * 1e-6} for n in range(13)]
    cases = [case_result(f"{name}_{n}", "S1", times=one) for n, one in enumerate(times)]
    wrong = case_result("scale", "S1", status="wrong", reason="not timed, because " + OUTSIDE.format(n=33, last=32))
    return summary_view(read(record_of(*cases, wrong)))


def _run():
    """Two kernels, whose complaints about every edge are alike: `run` ends with this."""
    failed = _failed()
    named = (replace(one, reason=f"{one.name}: {one.reason}") if one.kernel == "sum" else one for one in failed)
    return summary_view(read(record_of(case_result("copy", "S0", times={"cold_time": 1e-5}), *named)))


def _failed():
    """A timed case and three edges of a kernel that writes too far, and two edges of one that is not compiled."""
    edges = [
        case_result("scale", "edge", workload={"n": n}, status="failed", reason=OUTSIDE.format(n=n, last=n - 1))
        for n in (33, 255, 257)
    ]
    timed_one = case_result("scale", "S0", status="wrong", reason="not timed, because " + edges[0].reason)
    refused = [case_result("sum", "edge", workload={"n": n}, status="failed", reason=COMPILER) for n in (1, 2)]
    return [timed_one, *edges, *refused]


def _compare():
    """Two records of long names with a control that differs: nothing of it can be trusted."""
    sides = records([*[1.05] * 9, *[1.0] * 291], sass=("aa", "aa"))
    a, b = (replace(side, cases=(*side.cases, *extra.cases)) for side, extra in zip(sides, _changed(), strict=True))
    return comparison_view(compare(a, b, names=("20261122T230546Z-2034ef74", "20261123T070904Z-f63d9242")))


def _changed():
    name = "fused_matmul_bias_activation:bfloat16"
    return (
        replace(
            side, cases=tuple(replace(one, name=f"{name}[batch=8192,inputs={n}]") for n, one in enumerate(side.cases))
        )
        for side in records([1.5, 0.7, 1.0])
    )


def _verify(*, verbose=False):
    """Alike complaints of many workloads, and a compiler's words for two cases."""
    right = case_result("copy", "S0", verification=({"passed": True, "compared": 9, "max_relative": 0.0},))
    return verification_view({"emulator": record_of(right, *_failed())}, verbose=verbose)


LIMITS = Limits(floors={"cold_time": 4e-6, "hot_time": 1e-6}, ceilings={"bandwidth": 4e12, "fp32": 60e12})
SEEN = {"profiler_duration": 1e-3, "dram_share": 0.9, "l2_hit_rate": 0.02, "occupancy": 0.5}


def _why():
    case = timed(peer=6e-4)
    return why_view(why(case, LIMITS, counted(case, **SEEN)))


def _why_long():
    """Everything that an account can hold, with two notes that are folded."""
    case = "active_inference_chain:partial[length=1024,m=8192,n=16384]"
    found = why(timed(), LIMITS, counted(timed(), **SEEN))
    lines = tuple(SourceLine("chain.cu", n, 0.3, "y[i] = tanh(x[i] * scale + shift);", "barrier") for n in range(3))
    notes = (
        "the profile of aad8442a does not name its machine code: this run's may differ",
        f"no profiler has counted it: prism-bench profile '{case}'",
    )
    code = CodeAgainst("20261122T095434Z-aad8442a", "changed", {"registers": (32, 40)}, True, (), "not listed")
    fixes = tuple(Fix(f"fix {n}", 1e-4) for n in range(3))
    return replace(found, case=case, fixes=fixes, lines=lines, code=code, notes=notes)


def _why_untimed():
    """A case without a time: its reason names the element and the line of the source, at the end."""
    reason = (
        "wrong: y[1048576] written out of bounds, y ends at y[1048575] [kernels/basic/scale.cu:14 by thread (255, 0)]"
    )
    return why_view(why(case_result("scale", status="failed", reason=reason), Limits()))


VIEWS = {
    "show": _show,
    "compare": _compare,
    "check": lambda: gate_view(gate_of(BAD, DOUBT, MET, *many(7, NOTE))),
    "verify": _verify,
    "verify-verbose": lambda: _verify(verbose=True),
    "run": _run,
    "why": _why,
    "why_long": lambda: why_view(_why_long()),
    "why_untimed": _why_untimed,
}


def printed(name, **options):
    """What the command prints, without colour unless it is asked for."""
    console = Console(width=WIDTH, file=StringIO(), markup=False, emoji=False, **options)
    console.print(VIEWS[name](), crop=False)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("name", VIEWS)
def test_the_text_is_the_stored_one(name):
    assert (STORED / f"{name}.txt").read_text() == printed(name)


@pytest.mark.parametrize("name", VIEWS)
def test_colour_survives_a_pipe_where_it_is_asked_for(name, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in printed(name)


@pytest.mark.parametrize("name", VIEWS)
def test_only_commands_to_be_copied_are_wider_than_the_terminal(name):
    wide = [line for line in printed(name).splitlines() if len(line) > WIDTH]
    assert all("prism-bench run" in line for line in wide)


def test_what_cannot_be_trusted_comes_first():
    assert printed("compare").startswith("untrusted: ")


def test_a_complaint_is_printed_once_and_whole_for_each_case_where_it_is_sought():
    brief, whole = printed("verify"), printed("verify-verbose")
    assert (1, 2) == (brief.count("refused the source"), whole.count("refused the source"))
    assert (0, 2) == (brief.count("'a11' was not declared"), whole.count("'a11' was not declared"))
    assert 1 == printed("run").count("refused the source")


def test_why_takes_fifteen_lines_at_most():
    assert len(printed("why").splitlines()) <= MOST


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("near", [False, True], ids=["counted", "near"])
def test_a_long_account_takes_fifteen_lines_at_any_width(width, near):
    found = _why_long()
    if near:
        shown = CountedNear("k[n=1]", "S1", found.verdict, found.counters, found.lines)
        found = replace(found, counters=(), lines=(), counted_in=None, near=shown)
    console = Console(width=width, file=StringIO(), markup=False, emoji=False)
    console.print(why_view(found), crop=False)
    text = console.file.getvalue()
    assert len(text.splitlines()) <= MOST
    assert all(word in text for word in ("DRAM through", "90 %", "code  ", "fix  ", "source  ", "roof  ", "note  "))
    assert ("at S1" in text) == near


def test_the_reason_of_a_case_without_a_time_is_whole():
    text = printed("why_untimed")
    assert "…" not in text and "by thread (255, 0)]" in " ".join(text.split())


if __name__ == "__main__":
    for stored in VIEWS:
        (STORED / f"{stored}.txt").write_text(printed(stored))
