"""Reports of ncu: read through NVIDIA's reader where it is installed, and through one that is played."""

import sys
from types import SimpleNamespace

import pytest

from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.profilers import ncu


def metric(value, unit="", kind=2):
    return SimpleNamespace(
        ValueKind_STRING=1, kind=lambda: kind, has_value=lambda: value is not None, unit=lambda: unit,
        as_double=lambda: value, as_string=lambda: str(value),
    )  # fmt: skip


class Action:
    """One launch, as the reader offers it."""

    METRICS = {
        "dram__bytes_read.sum": metric(4096.0, "byte"), "gpu__time_duration.sum": metric(1500.0, "ns"),
        "launch__grid_dim_x": metric(9.0), "launch__grid_dim_y": metric(2.0), "launch__block_dim_x": metric(64.0),
        "device__attribute_compute_capability_major": metric(9.0),
        "device__attribute_compute_capability_minor": metric(0.0), "policy": metric("Spread", kind=1),
    }  # fmt: skip

    def name(self):
        return "softmax"

    def metric_names(self):
        return tuple(self.METRICS)

    def metric_by_name(self, name):
        return self.METRICS[name]

    def rule_results_as_dicts(self):
        message = {"title": "t", "message": "use fewer bytes", "type": 2}
        return [{"rule_identifier": "Bottleneck", "rule_message": message}]

    def nvtx_state(self):
        domain = SimpleNamespace(name=lambda: "<default domain>", push_pop_ranges=lambda: ("softmax[rows=1]",))
        return SimpleNamespace(domains=lambda: (0,), domain_by_id=lambda _: domain)


def reader(*actions):
    """A reader whose reports hold those launches."""
    one = SimpleNamespace(num_actions=lambda: len(actions), action_by_idx=lambda i: actions[i])
    context = SimpleNamespace(num_ranges=lambda: int(bool(actions)), range_by_idx=lambda _: one)
    return SimpleNamespace(load_report=lambda path: context)


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "one.ncu-rep"
    path.write_bytes(b"NVR\0")
    return path


def test_a_counter_that_is_no_number_has_no_value(monkeypatch, report):
    action = Action()
    monkeypatch.setattr(
        action, "METRICS", {**Action.METRICS, "dram__bytes_read.sum": metric(float("nan"), "Mbyte")}, False
    )
    monkeypatch.setitem(sys.modules, "ncu_report", reader(action))
    quantity = ncu.read_report(report)[0].metrics["dram__bytes_read.sum"]
    assert (None, True) == (quantity.value, quantity.is_missing)


def test_a_launch_with_its_metrics_in_si(monkeypatch, report):
    monkeypatch.setitem(sys.modules, "ncu_report", reader(Action()))
    (launch,) = ncu.read_report(report)
    assert ("softmax", "9.0", (9, 2, 1), (64, 1, 1)) == (launch.kernel, launch.capability, launch.grid, launch.block)
    assert (4096.0, pytest.approx(1.5e-6)) == (
        launch.value("dram__bytes_read.sum"),
        launch.value("gpu__time_duration.sum"),
    )
    assert (None, "Spread") == (launch.value("policy"), launch.metrics["policy"].text)
    assert ("<default domain>:softmax[rows=1]:",) == launch.ranges
    assert "use fewer bytes" == launch.rules[0].text


def test_an_empty_report_is_an_error(monkeypatch, report):
    monkeypatch.setitem(sys.modules, "ncu_report", reader())
    with pytest.raises(ResultsError, match="empty or corrupt"):
        ncu.read_report(report)


def test_a_corrupt_report_is_an_error_with_nvidias_reader(report):
    pytest.importorskip("ncu_report")
    with pytest.raises(ResultsError, match="one.ncu-rep"):
        ncu.read_report(report)


def test_without_the_reader_it_says_what_to_do(monkeypatch, report):
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(BackendUnavailable, match=r"pip install .*\[ncu\]"):
        ncu.read_report(report)


def test_a_missing_report_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ncu_report", reader())
    with pytest.raises(ResultsError, match="none.ncu-rep: no such report"):
        ncu.read_report(tmp_path / "none.ncu-rep")
