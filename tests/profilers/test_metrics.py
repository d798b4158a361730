"""The metric set by chip: names, sums over launches, reasons where there is no value, advice for names of the past."""

import csv
import re

import pytest

from prism_bench.errors import UsageError
from prism_bench.profilers.metrics import (
    LOGICAL,
    REPLACED,
    SETS,
    ProfiledLaunch,
    ProfiledValue,
    advice,
    base,
    chip_of,
    chips,
    combined,
    computed_by_tool,
    counters_of_chip,
    source_on,
    why_missing,
)
from prism_bench.profilers.metrics import counters as asked

HOPPER = chip_of("9.0")
READ, WRITE, TIME = "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"
SHARE = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
UNITS = {READ: "B", WRITE: "B", TIME: "s", SHARE: "1"}


def launched(**metrics):
    return ProfiledLaunch(0, "kernel", {name: ProfiledValue(value, UNITS[name]) for name, value in metrics.items()})


def test_names_follow_the_chip():
    assert READ in asked(HOPPER)
    assert "dram__bytes_op_read.sum" in asked(chip_of("12.0"))
    assert "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed" in asked(chip_of(100))
    assert "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_elapsed" in asked(chip_of("8.9"))


@pytest.mark.parametrize("chip", chips().values(), ids=str)
@pytest.mark.parametrize("chosen", SETS)
def test_every_chip_is_asked_only_for_what_it_has(chip, chosen):
    assert asked(chip, chosen)
    assert all(chip.has(base(name)) for name in asked(chip, chosen))


def test_chips_without_memory_of_their_own_say_so():
    values = combined([launched(**{TIME: 1e-6})], chip_of("12.1"))
    assert values["dram_read_bytes"]["value"] is None
    assert "GB20B (compute capability 12.1) has none of dram__bytes_read.sum" in values["dram_read_bytes"]["reason"]


def test_an_unknown_chip_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="compute capability '9.1'"):
        chip_of(91)


def test_names_of_the_past_exist_on_no_chip_and_have_a_successor():
    assert not [name for name in REPLACED if name in counters_of_chip()]
    assert all(base(name) in counters_of_chip() for name in REPLACED.values())
    assert "sm__warps_active" in advice("sm__occupancy.avg.pct", counters_of_chip())
    assert "sm__pipe_tensor_cycles_active" in advice("tensor_precision_fu_utilization", counters_of_chip())
    assert "near it are dram__throughput" in advice("dram__troughput", counters_of_chip())


def test_launches_of_a_case_add_up():
    two = [launched(**{TIME: 1.0, READ: 30.0, SHARE: 0.9}), launched(**{TIME: 3.0, READ: 10.0, SHARE: 0.1})]
    values = combined(two, HOPPER)
    assert (40.0, READ) == (values["dram_read_bytes"]["value"], values["dram_read_bytes"]["source"])
    assert 0.3 == pytest.approx(values["dram_share"]["value"])
    assert 4.0 == values["profiler_duration"]["value"]


def test_every_value_has_a_source_or_a_reason():
    values = combined([launched(**{TIME: 1.0})], HOPPER)
    assert set(LOGICAL) == set(values)
    assert all(("source" in one) != ("reason" in one) for one in values.values())
    assert "dram__bytes_read.sum was not collected" == values["dram_read_bytes"]["reason"]
    assert "--counters all counts it" in values["compute_share"]["reason"]


def test_what_the_tool_does_not_know_is_never_zero():
    values = combined([ProfiledLaunch(0, "kernel", {READ: ProfiledValue(None, "", "n/a")})], HOPPER)
    assert (None, "dram__bytes_read.sum: the profiler answers 'n/a'") == (
        values["dram_read_bytes"]["value"],
        values["dram_read_bytes"]["reason"],
    )


@pytest.mark.parametrize(
    ("name", "quantity", "reason"),
    [
        (READ, ProfiledValue(None, "", "n/a"), "the profiler answers 'n/a'"),
        ("smem__y.sum", ProfiledValue(None, "", "n/a"), r"GH100 \(compute capability 9.0\) has no such counter"),
        (READ, ProfiledValue(None, "Mbyte", "-nan(ind)"), r"'-nan\(ind\)', not collected or divided by zero"),
        (TIME, ProfiledValue(3.0, "hour", "3"), "3 is in 'hour', which is no unit of it"),
        (SHARE, ProfiledValue(71.25, "", "71.25"), "71.25 is in '', which is no unit of it"),
    ],
)
def test_a_metric_without_a_value_in_its_unit_has_the_reason(name, quantity, reason):
    assert re.search(reason, why_missing(name, quantity, HOPPER) or "none")
    value = combined([ProfiledLaunch(0, "kernel", {name: quantity})], HOPPER, "all")
    assert all(entry["value"] is None for entry in value.values())


def test_a_metric_that_one_launch_lacks_has_no_sum():
    values = combined([launched(**{READ: 30.0}), launched(**{TIME: 1.0})], HOPPER)
    assert "dram__bytes_read.sum: not of every launch" == values["dram_read_bytes"]["reason"]


def test_metrics_of_a_launch_need_no_counter():
    assert computed_by_tool("launch__registers_per_thread")
    assert not any(computed_by_tool(name) for name in asked(HOPPER, "all"))
    assert "launch__registers_per_thread" == source_on(LOGICAL["profiled_registers"], HOPPER)


def test_the_table_agrees_with_a_list_made_elsewhere(samples):
    with (samples / "ncu_metric_support_by_chip.csv").open() as file:
        listed = {row.pop("metric"): row for row in csv.DictReader(file)}
    known = {name: {chip.name for chip in having} for name, having in counters_of_chip().items()}
    for name, row in listed.items():
        theirs = {title.split("_")[0] for title, kind in row.items() if kind}
        assert theirs == known.get(name, set()), name
