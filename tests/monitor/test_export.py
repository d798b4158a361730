"""The documented shapes, the CSV file, and what the alert rules are asked."""

import csv
import json

import pytest

from prism_bench.errors import ResultsError
from prism_bench.monitor import station
from prism_bench.monitor.alerts import AlertWatch
from prism_bench.monitor.executions import Execution, Executions
from prism_bench.monitor.probe import QUANTITIES
from prism_bench.monitor.sampler import sampling
from prism_bench.monitor.station import COLUMNS, CsvFile, KernelQuery

MOMENT = {"timestamp": "2026-11-21T12:00:00.000+00:00"}


@pytest.fixture
def sampler(gpu):
    """One that was looked at twice."""
    with sampling(lambda found: found, hertz=1, full=True, threaded=False) as found:
        found.beat()
        yield found


@pytest.fixture
def executions():
    ring = Executions()
    for kernel, seconds in (("relu", 2e-6), ("softmax", 9e-6), ("relu", 4e-6), ("relu", None)):
        ring.record(kernel, seconds, memory=1_000_000)
    return ring


def test_the_snapshot_has_the_documented_parts(sampler, executions):
    shown = json.loads(json.dumps(station.snapshot(sampler, executions, AlertWatch()), allow_nan=False))
    assert ["status", "kernels", "alerts", "report"] == list(shown)
    assert ["timestamp", "uptime_seconds", "gpu_utilization", "memory", "devices"] == list(shown["status"])
    assert {"active_alerts": [], "total_alerts_today": 0} == shown["alerts"]
    assert {"beats": 1} == {key: shown["report"]["sampler"][key] for key in ("beats",)}


def test_the_status_is_the_devices(sampler, executions):
    shown = station.status(sampler, executions)
    assert (35.0, {"used_mb": 30000.0, "total_mb": 150000.0, "percent": 20.0}) == (
        shown["gpu_utilization"],
        shown["memory"],
    )
    (device,) = shown["devices"]
    assert (0, "NVIDIA H200", False, None, []) == tuple(
        device[key] for key in ("index", "name", "slice", "lost", "reasons")
    )
    assert list(QUANTITIES) == list(device["values"])
    nulls = {name for name, value in device["values"].items() if value is None}
    assert {"board_throttled", "sm_active", "sm_occupancy", "tensor_active", "dram_active"} == nulls
    assert nulls <= set(device["missing"])


def test_a_lost_device_shows_nulls_and_since_when(sampler, executions, gpu):
    gpu.set(0, lost=1)
    sampler.beat()
    (device,) = station.status(sampler, executions)["devices"]
    assert device["lost"].endswith("GPU is lost")
    assert {None} == set(device["values"].values())
    assert {device["lost"]} == {device["missing"][name] for name in QUANTITIES}
    assert device["processes"] is None


@pytest.mark.parametrize(
    ("order", "names"),
    [("last", ["relu", "softmax"]), ("avg_time", ["softmax", "relu"]), ("total_time", ["softmax", "relu"]),
     ("calls", ["relu", "softmax"])],
)  # fmt: skip
def test_kernels_are_sorted_as_asked(executions, order, names):
    assert names == [row["name"] for row in station.kernels(executions, KernelQuery(order))]


def test_kernels_are_limited(executions):
    assert 1 == len(station.kernels(executions, KernelQuery(limit=1)))
    (relu,) = station.kernels(executions, KernelQuery("calls", 1))
    assert (3, 0.003, 0.002, 0.004, 0.006, 1.0) == tuple(
        relu[key]
        for key in ("total_calls", "avg_time_ms", "min_time_ms", "max_time_ms", "total_time_ms", "avg_memory_mb")
    )


def test_the_report_adds_up(executions):
    shown = station.report(executions)
    assert (4, 3, 1, 5.0, 1.0) == tuple(
        shown[key]
        for key in ("total_kernel_calls", "successful_calls", "failed_calls", "avg_execution_time_us", "peak_memory_mb")
    )
    assert {"call_count": 3, "total_time_us": 6.0, "avg_time_us": 3.0, "min_time_us": 2.0, "max_time_us": 4.0} == {
        key: value for key, value in shown["per_kernel_stats"]["relu"].items() if key != "success_rate"
    }


def test_executions_before_the_start_are_shown_and_keep_nothing_busy():
    clock = iter([100.0, 110.0])
    ring = Executions(clock=lambda: next(clock))
    ring.add(Execution("relu", 90.0, 50.0))
    ring.add(Execution("relu", 105.0, 2.0))
    shown = station.report(ring)
    assert (2, 20.0) == (shown["total_kernel_calls"], shown["utilization_percentage"])


def test_values_have_no_leftovers_of_scaling(executions, gpu):
    gpu.set(0, power_throttled=3_420_672_480)
    with sampling(lambda found: found, hertz=1, full=True, threaded=False) as sampler:
        sampler.beat()
    (device,) = station.status(sampler, executions)["devices"]
    assert "3.42067248" == str(device["values"]["power_throttled"])


def test_an_empty_report_has_nulls_and_no_zeros():
    shown = station.report(Executions())
    assert (None, None, None) == tuple(
        shown[key] for key in ("avg_execution_time_us", "peak_memory_mb", "current_memory_mb")
    )


def test_rules_are_asked_about_what_changed(sampler, gpu):
    before = {}
    assert {"utilization": 0.35, "memory_share": 0.2, "temperature": 41, "throttled": 0.0, "new_xids": 0.0,
            "new_uncorrected": 0.0, "lost": 0.0} == station.alert_values(sampler, 0, before)  # fmt: skip
    gpu.set(0, reasons=0x20)
    sampler.beat()
    before["ecc_uncorrected"] = -2.0
    values = station.alert_values(sampler, 0, before)
    assert (1.0, 2.0) == (values["throttled"], values["new_uncorrected"])
    gpu.set(0, lost=1)
    sampler.beat()
    values = station.alert_values(sampler, 0, before)
    assert (1.0, None, None) == (values["lost"], values["temperature"], values["throttled"])


def test_a_line_for_a_pipe(sampler, executions, gpu):
    gpu.set(0, reasons=4, power=None)
    with sampling(lambda found: found, hertz=1, full=True, threaded=False) as other:
        other.beat()
        assert "0: 35 %, 30 GB, 1980 MHz, 300 W, 41 C, sw power cap" == station.headline(
            station.status(other, executions)["devices"]
        )


def test_the_csv_has_a_row_per_look_and_empty_cells_for_what_was_not_read(sampler, executions, tmp_path):
    table = CsvFile(tmp_path / "gpu.csv")
    for _ in range(2):
        table.add(station.status(sampler, executions))
    CsvFile(tmp_path / "gpu.csv").add(station.status(sampler, executions))
    rows = list(csv.DictReader((tmp_path / "gpu.csv").read_text().splitlines()))
    assert 3 == len(rows)
    assert list(COLUMNS) == list(rows[0])
    assert ("1980000000", "", "41") == tuple(rows[0][name] for name in ("sm_clock", "sm_active", "temperature"))


def test_the_csv_stays_bounded(sampler, executions, tmp_path):
    table, status = CsvFile(tmp_path / "gpu.csv", largest=3000), station.status(sampler, executions)
    for _ in range(100):
        table.add(status)
    kept = sorted(tmp_path.glob("gpu.csv*"))
    assert ["gpu.csv", "gpu.csv.1"] == [path.name for path in kept]
    assert all(path.stat().st_size < 4000 for path in kept)
    assert all(path.read_text().startswith("timestamp,") for path in kept)


def test_a_csv_that_cannot_be_written_is_one_clear_line(tmp_path):
    with pytest.raises(ResultsError, match="cannot write .*gpu.csv: No such file"):
        CsvFile(tmp_path / "none" / "gpu.csv")
