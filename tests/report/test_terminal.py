"""What the terminal shows, at the width it has."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.gate.checks import GateCheck, GatePart, gate
from prism_bench.analysis.run_analysis import read
from prism_bench.analysis.summary import implementation
from prism_bench.report.terminal.profile import profile_view
from prism_bench.report.terminal.record import summary_view, verdict_text
from prism_bench.report.terminal.verification import reasons_of, verification_view
from prism_bench.report.view import case_views
from prism_bench.spec.metric import Budget
from tests.report.peered import peered_record
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of


def shown(record, width=220, *, everything=True, **options):
    options["everything"] = everything
    console = Console(width=width, record=True, file=open("/dev/null", "w"), color_system=None)  # noqa: SIM115
    with console.file:
        console.print(summary_view(read(record), **options))
        return console.export_text()


def flat(text):
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def test_every_case_has_a_line_and_every_mishap_its_reason():
    text = shown(gpu_record())
    for case in read(gpu_record()).cases:
        assert f"{implementation(case)} " in text
    for words in ("38 of 42 cases", "above the read ceiling", "it wanted 4.29 GB", "[2] graph capture refused"):
        assert words in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_terminal_drops_columns_and_never_cuts_a_number(width):
    text = shown(gpu_record(), width)
    header = next(line for line in text.splitlines() if line.startswith("kernel  "))
    assert {"label", "cold", "peer", "verdict"} <= set(header.split())
    assert all("…" not in line[header.index("label") :] for line in text.splitlines())
    assert "no room for" in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_label_ratio_and_verdict_stay_and_long_names_lose_their_middle(width):
    name = "a_kernel_of_a_very_long_name_that_no_narrow_terminal_has_room_for_at_all_and_its_end"
    times = {"cold_time": 1e-5, "cold_time@peer:lib": 2e-5}
    text = shown(record_of(case_result(name, "S1", times=times)), width)
    (row,) = [line for line in text.splitlines() if line.startswith("a_kernel") and " S1 " in line]
    assert row.split()[0].endswith("its_end")
    assert "2.00x" in row
    assert row.rstrip().endswith("ok")
    assert max(map(len, text.splitlines())) <= width


def missed(count):
    """A record with so many cases, and checks of budgets that they miss by more and more."""
    cases = [case_result(f"k{n}", "S1", times={"cold_time": 1e-5}) for n in range(count)]
    checks = [
        GateCheck(case.name, "cold_time", "missed", "bad", f"the budget is at most {n} us", 1.1 + n / 10)
        for n, case in enumerate(cases)
    ]
    return record_of(*cases, case_result("z", "S1", status="wrong", reason="y[0] is 1, reference 2")), checks


def test_what_needs_attention_is_listed_the_gravest_and_largest_first():
    record, checks = missed(12)
    reading = read(record)
    verdict = gate(reading, Path("r.json.gz"), [GatePart("baseline", tuple(checks))])
    text = shown(record, 100, judged=verdict, everything=False)
    rows = text[text.index("Needs attention, the largest first: 13 of 13 cases") :].splitlines()[2:12]
    assert ["z", *(f"k{n}" for n in range(11, 2, -1))] == [row.split()[1] for row in rows]
    assert "and 3 more cases: prism-bench check" in text
    assert "show --all: all 13 cases" in flat(text)


def test_without_a_concern_one_line_says_what_to_look_at_next():
    text = flat(shown(record_of(case_result("k", times={"cold_time": 1e-5})), everything=False))
    assert "Nothing needs attention." in text and "Needs attention" not in text
    good = record_of(
        *(
            case
            for case in gpu_record().cases
            if case.status == "ok" and not any(one.distrusted for one in case.measurements)
        )
    )
    text = flat(shown(good, everything=False))
    assert "Nothing needs attention. Farthest from its limit: " in text
    assert "prism-bench show --why " in text


def test_a_missed_budget_is_never_beside_ok():
    case = case_result("k", "S1", times={"cold_time": 1e-5})
    (view,) = case_views(read(record_of(case)))
    budget = BudgetVerdict(case.name, Budget("cold_time", at_most=1e-6), 1e-5, "missed")
    assert "missed" == verdict_text(replace(view, budgets=(budget,))).plain
    assert "ok" == verdict_text(view).plain


def test_findings_that_differ_in_numbers_alone_are_one_line():
    wrong = [case_result(f"k{n}", "S1", status="wrong", reason=f"y[{n}] is {n}, reference 7") for n in range(12)]
    text = flat(shown(record_of(*wrong), 100, everything=False))
    assert "wrong k0 S1 - y[0] is 0, reference 7 (also k1, k2, k3 and 8 more)" in text
    assert 1 == text.count("reference 7 ")


def test_markup_in_names_is_only_text():
    assert "[red]k" in shown(record_of(case_result("[red]k", times={"cold_time": 1e-5})))


def test_cpu_and_empty_records_are_told_plainly():
    assert "no launch overhead and no ceiling" in shown(record_of(case_result("k")))
    assert "Nothing was measured." in shown(record_of())


def test_the_headline_is_by_class_of_peer_and_never_one_mean():
    text = shown(peered_record())
    assert "S1 and S2 library kernel 8 2.38x 4 0.40x matmul S1, torch_tf32" in flat(text)
    assert "best of all 12 - 6 0.40x" in flat(text)
    assert "0.93x softmax S1, torch_compiled~" in flat(text)
    assert "te_compute_distances" not in text[text.index("Above 20x") : text.index("kernel ", text.index("Above 20x"))]
    assert "knn_distances_chebyshev, cdist (poor way): S1 80.0x, S2 80.0x, S0 80.0x" in flat(text)
    assert "~ marks an unstable peer" in text and "At S0 launch overhead is compared." in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_headline_and_the_peers_fit_a_narrow_terminal(width):
    text = shown(peered_record(), width, every_peer=True)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "; unstable: 930 us to 4.60 ms" in flat(text)


def test_every_peer_is_listed_where_that_is_asked_for():
    text = flat(shown(peered_record(), every_peer=True))
    for words in (
        "cdist library kernel 1.17 s 1,170x torch 2.11.0, library",
        "poor way: cdist(p=inf) has no fast kernel (not counted)",
        "quack library kernel 970 us 0.97x quack 0.6.5, library, 1 call, 1 launch; work: writes the sum as well",
        "precision: products in TF32", "flash not recorded - - not timed: flash-attn-4 is not installed",
    ):  # fmt: skip
        assert words in text
    assert "poor way: cdist(p=inf) has no fast kernel (not counted)" not in flat(shown(peered_record()))


def test_a_record_without_peers_has_no_headline_of_them():
    for record in (record_of(), cpu_record(), record_of(case_result("k", "S1", times={"cold_time": 1e-5}))):
        assert "against peers" not in shown(record)


def test_peers_of_an_old_record_have_no_class_and_no_mean():
    text = flat(shown(gpu_record()))
    assert "Class not recorded: the record does not name the class" in text
    assert "not recorded 16 - 6 0.90x matmul S1, torch" in text


def test_cases_that_were_skipped_for_one_reason_are_one_line():
    why = "not emulated: Triton is not installed (pip install 'prism-gpu-bench[triton]==0.2.0')"
    names = [f"{kernel}:triton[n={n}]" for kernel in ("add", "scale") for n in (1, 2)]
    cases = [replace(case_result("add"), name=name, status="skipped", reason=f"{name}: {why}") for name in names]
    other = replace(case_result("add"), name="add[n=3]", status="skipped", reason="out of memory")
    assert [f"4 cases of add:triton, scale:triton: {why}", "add[n=3]: out of memory"] == list(
        reasons_of([*cases, other], "skipped")
    )


def test_a_case_that_was_watched_in_part_has_a_note():
    part = replace(case_result("add"), reason="accesses were watched in part only")
    console = Console(width=120, no_color=True)
    with console.capture() as captured:
        console.print(verification_view({"emulator": record_of(part, case_result("scale"))}))
    text = flat(captured.get())
    assert "emulator: 2 ok" in text and 1 == text.count("note "), text
    assert f"note {part.name}: accesses were watched in part only" in text


def test_a_profile_lists_what_failed_first_and_what_was_skipped_last():
    def line(case, status="ok", bound="dram", share=0.5):
        known = {"case": case, "label": "S1", "status": status, "bound": bound, "evidence": "none", "bytes_verdict": ""}
        return {**known, "dram_share": share}

    lines = [line("skip[n=1]", "skipped"), line("busy[n=1]", share=0.9), line("null[n=1]", bound="launch"),
             line("idle[n=1]", share=0.1), line("broken[n=1]", "failed")]  # fmt: skip
    console = Console(width=80, no_color=True)
    with console.capture() as captured:
        console.print(profile_view(lines, []))
    names = [row.split()[0] for row in captured.get().splitlines() if " S1 " in row]
    assert ["broken", "idle", "busy", "null", "skip"] == names


def test_a_verification_that_stopped_at_once_has_no_table():
    console = Console(width=80, record=True, file=open("/dev/null", "w"), color_system=None)  # noqa: SIM115
    with console.file:
        console.print(verification_view({"emulator": record_of()}))
        assert "emulator: stopped before the first case ended\n" == console.export_text()


def test_controls_and_carried_verification_name_their_records():
    verified = ({"passed": True, "carried": "2026-11-27T01:00:00", "carried_from": "20261127T000000Z-ab"},)
    cases = [
        case_result("gelu", times={"cold_time": 1e-5}, control="20261127T000000Z-ab"),
        replace(case_result("gelu"), name="gelu[n=0]", label="edge", measurements=(), verification=verified),
    ]
    text = flat(shown(record_of(*cases)))
    assert "1 control: unchanged, measured in fewer processes; full times in 20261127T000000Z-ab" in text
    assert "1 carried over since 2026-11-27 (20261127T000000Z-ab)" in text
