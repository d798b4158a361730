"""The ledger from planted records: figures with sources, gaps with reasons, the published rule."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.analysis.bounds.profiles import newest_counted
from prism_bench.errors import UsageError
from prism_bench.extensions.fusion.benefit import Sources, chains_of, ledgers
from prism_bench.extensions.fusion.benefit.saving import CLOCKS
from prism_bench.record.measurement import Energy
from prism_bench.workflows.traffic import CaseTraffic
from tests.extensions.fusion.benefit.toy_chain import (
    AFTER,
    AFTER_TIMES,
    APART,
    BANDWIDTH,
    BEFORE,
    BEFORE_TIMES,
    CATALOGUE,
    LAUNCH,
    MEASURED,
    SERVED,
    SPEC,
    TOY,
    N,
    record,
    result,
    toy_ledger,
)
from tests.report.synthetic import measurement


def profiled(**values):
    return {"tool": "cupti", "values": {name: {"value": value, "unit": "1"} for name, value in values.items()}}


def test_every_stage_has_its_figures():
    found = toy_ledger()
    assert ("transfer_entropy", "S0", f"n={N}") == (found.chain, found.label, found.workload)
    assert ["baseline", "full"] == [row.stage for row in found.rows]
    before, after = found.rows
    for name in ("cold_time", "hot_time", "launch_time"):
        assert BEFORE_TIMES[name] == pytest.approx(before.value(name))
        assert AFTER_TIMES[name] == pytest.approx(after.value(name))
    assert (2, 1) == (before.plan.launches, after.plan.launches)
    assert 8 * N / BANDWIDTH == pytest.approx(after.value("floor"))
    assert 2e-6 == after.value("error")


def test_gaps_are_the_hosts_time_beyond_the_devices():
    before, after = toy_ledger().rows
    assert 12e-6 == pytest.approx(before.value("gaps"))
    assert 0 == after.value("gaps")


def test_gaps_that_a_tracer_saw_go_before():
    read = record(result(times=BEFORE_TIMES, profile=profiled(gap_seconds=7e-6)))
    gaps = toy_ledger(read).rows[0].figures["gaps"]
    assert (7e-6, "traced by cupti") == (gaps.value, gaps.source)


def test_fused_stages_are_held_against_separate_launches():
    row = toy_ledger().row("full")
    ratios = {clock: round(row.speedups[clock].ratio, 3) for clock in CLOCKS}
    assert {"cold_time": 3, "hot_time": round(8 / 3, 3), "issued": round(20 / 3, 3)} == ratios
    saved = row.savings["cold_time"]
    assert (8e-6, LAUNCH, 8 * N / BANDWIDTH) == pytest.approx((saved.seconds, saved.launches, saved.traffic))
    assert {} == toy_ledger().row("baseline").speedups


@pytest.mark.parametrize(
    ("cold", "error", "passed"),
    [(4e-6, 2e-6, True), (7e-6, 2e-6, False), (4e-6, 2e-4, False), (None, 2e-4, False), (None, 2e-6, None)],
)
def test_the_published_rule_wants_small_errors_and_twice_the_speed(cold, error, passed):
    times = {"cold_time": cold} if cold else {}
    read = record(result(times=BEFORE_TIMES), result("full", times=times, error=error))
    assert passed is toy_ledger(read).row("full").passed


def test_fused_and_unfused_may_differ_by_both_their_errors():
    read = record(result(times=BEFORE_TIMES, error=6e-5), result("full", times=AFTER_TIMES, error=6e-5))
    assert toy_ledger(read).row("full").passed is False


def test_the_fastest_library_call_stands_beside_them():
    peers = {"cold_time@peer:slow": 30e-6, "cold_time@peer:torch": 10e-6}
    found = toy_ledger(record(result(times=BEFORE_TIMES | peers), result("full", times=AFTER_TIMES)))
    assert ("peer:torch cold_time", pytest.approx(10e-6)) == (found.library.source, found.library.value)
    assert 2.5 == pytest.approx(found.row("full").speedups["library"].ratio)


def test_why_there_is_no_library_call_is_told():
    silent = measurement("cold_time", 1e-6, "peer:torch", valid=False, reason="the call waits for the device")
    assert "the call waits for the device" == toy_ledger(record(result(measurements=(silent,)))).library.reason
    assert "no library call was timed with it" == toy_ledger().library.reason
    assert "no GPU" == toy_ledger(None, missing="no GPU").library.reason


def test_the_baseline_is_not_judged():
    assert toy_ledger().row("baseline").passed is None


def test_a_stage_that_is_not_in_the_record_keeps_its_plan_and_says_so():
    row = toy_ledger(record(result(times=BEFORE_TIMES))).row("full")
    assert (1, None) == (row.plan.launches, row.value("cold_time"))
    assert "the record does not hold this case" == row.figures["cold_time"].reason == row.speedups["hot_time"].reason
    assert ({}, None) == (row.savings, row.passed)


def test_without_a_record_all_times_are_missing_with_the_reason():
    found = toy_ledger(None, missing="no GPU here")
    missing = {name: figure.reason for row in found.rows for name, figure in row.figures.items()}
    assert {"no GPU here"} == set(missing.values()) - {Sources.uncounted}
    assert [16 * N, 8 * N] == [row.plan.bytes for row in found.rows]


def test_the_emulators_bytes_stand_beside_the_models_and_divide_the_saving():
    traffic = {
        BEFORE: CaseTraffic(BEFORE, 8 * N, requested=17 * N, touched=12 * N, scratch=8 * N, launches=2),
        AFTER: CaseTraffic(AFTER, 8 * N, requested=8 * N, touched=8 * N, scratch=0, launches=1),
    }
    before, after = toy_ledger(traffic=traffic).rows
    assert (20 * N, 17 * N) == (before.value("emulated"), before.value("requested"))
    assert ("emulator", 12 * N) == (after.savings["hot_time"].basis, after.savings["hot_time"].removed_bytes)


def test_what_the_emulator_could_not_run_has_its_complaint():
    traffic = {BEFORE: CaseTraffic(BEFORE, 8 * N, complaint="cooperative launches are not emulated")}
    figure = toy_ledger(traffic=traffic).rows[0].figures["emulated"]
    assert (None, "cooperative launches are not emulated") == (figure.value, figure.reason)


def test_counters_and_energy_are_read_from_the_record():
    hot = measurement("hot_time", 8e-6, energy=Energy(0.25, 0.01, 0.2, 100))
    read = record(result(measurements=(hot,), profile=profiled(dram_read_bytes=300, dram_write_bytes=20)))
    row = toy_ledger(read).rows[0]
    assert (320, 0.25) == (row.value("dram_bytes"), row.value("energy"))


def test_why_there_is_no_energy_is_told():
    told = measurement("hot_time", 8e-6, energy=Energy(reason="the counter did not move"))
    rows = toy_ledger(record(result(measurements=(told,)), result("full", times=AFTER_TIMES))).rows
    assert "the counter did not move" == rows[0].figures["energy"].reason
    assert "long enough" in rows[1].figures["energy"].reason


def test_a_record_of_another_plan_is_noted():
    read = record(result(times=BEFORE_TIMES, code={"launches": 3}))
    assert (f"{BEFORE}: the record made 3 launches, today's plan makes 2",) == toy_ledger(read).rows[0].notes


def test_stages_of_other_sizes_are_not_compared():
    read = record(result(times=BEFORE_TIMES), result("large", times=AFTER_TIMES, n=7))
    row = toy_ledger(read, APART).row("full")
    assert ({}, None) == (row.speedups, row.passed)
    assert ("toy_chain:large[n=7]: separate launches are not timed at this workload",) == row.notes


def test_counters_of_another_record_are_those_of_the_newest_that_has_them():
    late = record(result(times={}))
    older, oldest = (record(result(times={}, profile=profiled(launches=2, dram_read_bytes=byte, dram_write_bytes=0)))
                     for byte in (5.0, 7.0))  # fmt: skip
    told = newest_counted((Path(name), one) for name, one in (("a", late), ("b", older), ("c", oldest)))
    row = toy_ledger(counters=told).rows[0]
    assert (5.0, "counters of cupti") == (row.figures["dram_bytes"].value, row.figures["dram_bytes"].source)


def test_a_label_without_stages_has_no_ledger():
    assert ["S0", "S1"] == [one.label for one in ledgers([(SPEC, TOY)], ("S0", "S1", "S2"), Sources(MEASURED))]


def test_plans_are_those_of_the_records_device():
    assert 132 == Sources(MEASURED).device.sm_count
    assert Sources().device.sm_count != 132


def test_chains_are_found_by_their_name_or_their_kernels():
    assert [TOY, SERVED, APART] == [chain for _, chain in chains_of(CATALOGUE)]
    assert [APART] == [chain for _, chain in chains_of(CATALOGUE, ["apart"])]
    assert [TOY, SERVED, APART] == [chain for _, chain in chains_of(CATALOGUE, ["toy_chain"])]
    aliased = replace(CATALOGUE, aliases={"toy": "toy_chain"})
    assert [TOY, SERVED, APART] == [chain for _, chain in chains_of(aliased, ["toy"])]


def test_an_unknown_chain_or_label_is_refused_with_what_is_near():
    with pytest.raises(UsageError, match="unknown chain 'transfer_entrpy'; did you mean transfer_entropy"):
        chains_of(CATALOGUE, ["transfer_entrpy"])
    with pytest.raises(UsageError, match="unknown label 'S7'"):
        ledgers([(SPEC, TOY)], ["S7"], Sources())
