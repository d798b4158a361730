"""Data of the live view: devices, executions and alerts, as JSON and CSV, and the delivery of alerts."""

import csv
import io
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from prism_bench.errors import ResultsError, UsageError, unknown
from prism_bench.extension import offered
from prism_bench.io.files import cache_folder
from prism_bench.monitor import nvml, probe
from prism_bench.monitor.alerts import ActiveAlert, AlertRule, AlertWatch
from prism_bench.monitor.executions import ExecutionJournal, Executions, KernelStatistics
from prism_bench.monitor.nvml import NvmlDevice
from prism_bench.monitor.probe import HARMFUL, QUANTITIES, reasons_in
from prism_bench.monitor.sampler import Sampler, sampling
from prism_bench.record.alert import Alert, Occasion

# The shapes that `--json` prints, one object per moment.
#
#     status    timestamp, uptime_seconds, gpu_utilization (percent), memory {used_mb, total_mb, percent} of the first
#               device, devices: list of {index, uuid, name, slice, lost, values, missing, reasons, processes}:
#               `values` by quantity in SI units (monitor/probe.py), null with a reason in `missing`
#     kernels   list of {name, total_calls, avg_time_ms, min_time_ms, max_time_ms, total_time_ms, success_rate,
#               avg_memory_mb, last_execution}
#     alerts    active_alerts: list of {severity, message, metric, value, rule, device, since}, total_alerts_today
#     report    total_kernel_calls, successful_calls, failed_calls, utilization_percentage (device time of the
#               executions since the start over the time since then), avg_execution_time_us, peak_memory_mb,
#               current_memory_mb, per_kernel_stats {name: {call_count, total_time_us, avg_time_us, min_time_us,
#               max_time_us, success_rate}}, sampler {hertz (null for a single look), beats, cpu_share, longest_beat_ms}
#
# Megabytes are 10^6 bytes; rates are shares from 0 to 1 unless the name has percent.

_ORDERS = {
    "last": lambda kernel: kernel.last,
    "avg_time": lambda kernel: kernel.mean or 0.0,
    "total_time": lambda kernel: kernel.total,
    "calls": lambda kernel: kernel.calls,
}


@dataclass(frozen=True)
class KernelQuery:
    """Selection of kernels: the first `limit` in the order `sort_by` (descending)."""

    sort_by: str = "last"
    limit: int = 20

    def __post_init__(self) -> None:
        if self.sort_by not in _ORDERS:
            raise unknown("order of kernels", self.sort_by, _ORDERS)


def snapshot(sampler: Sampler, executions: Executions, alerts: AlertWatch, query: KernelQuery | None = None) -> dict:
    """Return all four parts of this moment."""
    cost = sampler.cost()
    return {
        "status": status(sampler, executions),
        "kernels": kernels(executions, query),
        "alerts": {
            "active_alerts": [alert.plain() for alert in alerts.active],
            "total_alerts_today": alerts.raised_today(),
        },
        "report": report(executions)
        | {
            "sampler": {
                "hertz": round(cost.beats / cost.seconds, 3) if cost.seconds and sampler.beats_by_itself else None,
                "beats": cost.beats,
                "cpu_share": float(f"{cost.share:.3g}"),
                "longest_beat_ms": _milli(cost.longest),
            }
        },
    }


def status(sampler: Sampler, executions: Executions) -> dict:
    """Return the devices as they are now; utilisation and memory on the top level are those of the first device."""
    devices = [device(sampler, place) for place in range(len(sampler.probes))]
    first = devices[0]["values"] if devices else {}
    used, total = first.get("memory_used"), first.get("memory_total")
    return {
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "uptime_seconds": round(executions.uptime(), 3),
        "gpu_utilization": _percent(first.get("utilization")),
        "memory": {
            "used_mb": _mega(used),
            "total_mb": _mega(total),
            "percent": _percent(used / total) if used is not None and total else None,
        },
        "devices": devices,
    }


def device(sampler: Sampler, place: int) -> dict:
    """Return one device: every quantity, null where it was not read, and the reason."""
    gpu, reading, lost = sampler.probes[place].device, sampler.latest(place), sampler.lost(place)
    values = reading.values if reading and not lost else {}
    missing = dict(reading.missing) if reading else {}
    if lost:
        missing = dict.fromkeys(QUANTITIES, lost)
    if sampler.xids_missing:
        missing["xids"] = sampler.xids_missing
    reasons = reasons_in(values["clock_reasons"]) if "clock_reasons" in values else None
    processes = None
    if reading is not None and reading.processes is not None and not lost:
        processes = [
            {
                "pid": process.pid,
                "name": process.name,
                "memory": process.memory,
                "ours": process.ours,
                "busy": process.busy,
            }
            for process in reading.processes
        ]
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "slice": gpu.is_slice,
        "lost": lost,
        "values": {name: _exact(values.get(name)) for name in QUANTITIES},
        "missing": {name: reason for name, reason in missing.items() if name not in values},
        "reasons": list(reasons) if reasons is not None else None,
        "processes": processes,
    }


def kernels(executions: Executions, query: KernelQuery | None = None) -> list[dict]:
    """Return the kernels in the ring that the query selects."""
    query = query or KernelQuery()
    ordered = sorted(executions.statistics(), key=_ORDERS[query.sort_by], reverse=True)
    return [_row(kernel) for kernel in ordered][: query.limit]


def report(executions: Executions) -> dict:
    """Return totals over all executions in the ring; means and maxima are null without executions."""
    calls = list(executions)
    times = [call.seconds for call in calls if call.seconds is not None]
    recent = sum(call.seconds for call in calls if call.seconds is not None and call.at >= executions.began)
    uptime = executions.uptime()
    return {
        "total_kernel_calls": len(calls),
        "successful_calls": len(times),
        "failed_calls": len(calls) - len(times),
        "utilization_percentage": _percent(recent / uptime) if uptime > 0 else None,
        "avg_execution_time_us": _micro(fmean(times)) if times else None,
        "peak_memory_mb": _mega(max((call.memory for call in calls), default=None)),
        "current_memory_mb": _mega(calls[-1].memory if calls else None),
        "per_kernel_stats": {kernel.kernel: _statistics(kernel) for kernel in executions.statistics()},
    }


def alert_values(sampler: Sampler, place: int, before: dict) -> dict:
    """Return the metrics of the alert rules for a device; `before` keeps its counters from call to call."""
    shown = device(sampler, place)
    values, lost = shown["values"], sampler.lost(place) is not None
    used, total, errors = values["memory_used"], values["memory_total"], values["ecc_uncorrected"]
    if errors is not None:
        before.setdefault("ecc_uncorrected", errors)
    return {
        "utilization": values["utilization"],
        "memory_share": used / total if used is not None and total else None,
        "temperature": values["temperature"],
        "throttled": None if shown["reasons"] is None else float(bool(set(HARMFUL) & set(shown["reasons"]))),
        "new_xids": float(len([1 for uuid, _ in sampler.xids(0.0, float("inf")) if uuid == shown["uuid"]])),
        "new_uncorrected": None if errors is None else errors - before["ecc_uncorrected"],
        "lost": float(lost),
    }


def _row(kernel: KernelStatistics) -> dict[str, Any]:
    return {
        "name": kernel.kernel,
        "total_calls": kernel.calls,
        "avg_time_ms": _milli(kernel.mean),
        "min_time_ms": _milli(kernel.least),
        "max_time_ms": _milli(kernel.most),
        "total_time_ms": _milli(kernel.total),
        "success_rate": kernel.success_rate,
        "avg_memory_mb": _mega(kernel.memory),
        "last_execution": datetime.fromtimestamp(kernel.last, UTC).isoformat(timespec="milliseconds"),
    }


def _statistics(kernel: KernelStatistics) -> dict[str, Any]:
    return {
        "call_count": kernel.calls,
        "total_time_us": _micro(kernel.total),
        "avg_time_us": _micro(kernel.mean),
        "min_time_us": _micro(kernel.least),
        "max_time_us": _micro(kernel.most),
        "success_rate": kernel.success_rate,
    }


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else float(f"{value * factor:.6g}")


def _exact(value: float | None) -> float | None:
    """Round to twelve digits, which removes the errors of scaling."""
    return None if value is None else float(f"{value:.12g}")


_mega, _percent = partial(_scaled, factor=1e-6), partial(_scaled, factor=100)
_milli, _micro = partial(_scaled, factor=1e3), partial(_scaled, factor=1e6)


def headline(shown: Sequence[dict]) -> str:
    """Return one line of text for the devices, for a pipe."""
    return "  ".join(_line(device) for device in shown)


def _line(device: Mapping[str, Any]) -> str:
    if device["lost"]:
        return f"{device['index']}: {device['lost']}"
    values = device["values"]
    parts = [
        _with_unit(values["utilization"], 100, "%"),
        _with_unit(values["memory_used"], 1e-9, "GB"),
        _with_unit(values["sm_clock"], 1e-6, "MHz"),
        _with_unit(values["power"] if values["power"] is not None else values["power_average"], 1, "W"),
        _with_unit(values["temperature"], 1, "C"),
    ]
    return f"{device['index']}: " + ", ".join([*parts, *(device["reasons"] or [])])


def _with_unit(value: float | None, scale: float, unit: str) -> str:
    return "-" if value is None else f"{value * scale:.3g} {unit}" if unit != "MHz" else f"{value * scale:.0f} {unit}"


# The station: devices, executions of runs elsewhere, and alerts.

_EARLIER = 3600.0  # seconds of executions before the start that are shown too


@dataclass(frozen=True)
class Moment:
    """A `snapshot`, with the alerts that it raised and ended."""

    snapshot: dict
    raised: tuple[ActiveAlert, ...] = ()
    over: tuple[ActiveAlert, ...] = ()


class Station:
    """Monitoring station: combines a sampler, the journal of executions and the alert rules on request."""

    def __init__(self, sampler: Sampler, rules: dict[str, AlertRule], query: KernelQuery | None = None) -> None:
        self.sampler, self.executions, self.alerts, self._query = sampler, Executions(), AlertWatch(rules), query
        self._followed = ExecutionJournal().follow(time.time() - _EARLIER)
        self._before: list[dict] = [{} for _ in sampler.probes]

    def look(self) -> Moment:
        """Return this moment."""
        for execution in next(self._followed):
            self.executions.add(execution)
        changes = [self.alerts.update(None, {"failures": float(self.executions.failures_of_last())})]
        for place, before in enumerate(self._before):
            uuid = self.sampler.probes[place].device.uuid
            changes.append(self.alerts.update(uuid, alert_values(self.sampler, place, before)))
        raised = tuple(alert for new, _ in changes for alert in new)
        over = tuple(alert for _, old in changes for alert in old)
        return Moment(snapshot(self.sampler, self.executions, self.alerts, self._query), raised, over)

    def look_once(self) -> Moment:
        """Return a single moment of a sampler without a thread; read twice, since a mean needs two readings."""
        self.sampler.beat()
        time.sleep(probe.PERIOD * 1.1)
        self.sampler.beat()
        return self.look()

    def moments(self, interval: float, duration: float | None = None) -> Iterator[Moment]:
        """Yield a moment every `interval` seconds, the first at once, for `duration` seconds or without end."""
        while not all(self.sampler.latest(place) or self.sampler.lost(place) for place in range(len(self._before))):
            time.sleep(0.005)
        began = due = time.monotonic()
        while duration is None or due - began <= duration:
            time.sleep(max(0.0, due - time.monotonic()))
            yield self.look()
            due = max(due + interval, time.monotonic())


@contextmanager
def station(
    names: Sequence[str] | None,
    rules: dict[str, AlertRule],
    hertz: float,
    *,
    once: bool,
    query: KernelQuery | None = None,
) -> Iterator[Station]:
    """Yield a station for the devices with these `names` (index or UUID), else for the visible devices.

    Raise BackendUnavailable without NVML, UsageError for an unknown device or if no device is visible.
    """

    def choose(devices: list[NvmlDevice]) -> Sequence[NvmlDevice]:
        picked = nvml.chosen(devices, list(names or ()))
        if not picked:
            setting = os.environ.get(nvml.VISIBLE)
            raise UsageError("no GPU here" if setting is None else f"no GPU is visible: {nvml.VISIBLE}={setting}")
        return picked

    with sampling(choose, hertz=hertz, full=True, threaded=not once) as sampler:
        yield Station(sampler, rules, query)


def deliver(raised: Sequence[ActiveAlert], ledger: Path | None = None) -> list[str]:
    """Send raised alerts to the webhooks of the environment, each current alert once; return the failures' texts.

    Network libraries take megabytes: they are loaded only when there is something to send.
    """
    delivery = offered("alert delivery") if raised else None
    webhooks = delivery() if delivery else None
    if webhooks is None or not webhooks.has_webhook:
        return []
    machine = platform.node()
    alerts = [_alert(alert, machine) for alert in raised]
    occasion = Occasion(
        "monitor", f"Prism Bench monitor on {machine}", {alert.subject: alert.state for alert in alerts}
    )
    outcomes = webhooks.deliver(alerts, occasion, ledger or cache_folder("monitor") / "alerts.json")
    return [str(outcome) for outcome in outcomes if outcome.reason]


def _alert(alert: ActiveAlert, machine: str) -> Alert:
    """Convert an alert; its time is its state, so that the same alert raised again is delivered again."""
    return Alert(
        source="monitor",
        machine=machine,
        kind=alert.rule.name,
        subject=alert.device,
        gravity=alert.rule.severity,
        message=alert.message,
        identity=(alert.rule.metric,),
        state=f"{alert.since:.0f}",
        severity=alert.value,
        reproduce="prism-bench monitor",
        facts=alert.plain(),
    )


# The CSV file.

_LARGEST = 16 << 20  # bytes
COLUMNS = ("timestamp", "index", "uuid", "name", "lost", "reasons", "processes", *QUANTITIES)


class CsvFile:
    """CSV file with a row per device and moment, in SI units; an empty cell is a quantity that was not read.

    A file of more than `largest` bytes becomes `<name>.1` and a new file begins, so both stay below twice that size.
    """

    def __init__(self, path: Path, largest: int = _LARGEST) -> None:
        self._path, self._largest = path, largest
        self._header = not (path.is_file() and path.stat().st_size)
        self._write("")

    def add(self, status: dict) -> None:
        """Append the devices of one moment, as `status` returns them; raise ResultsError if the file is unwritable."""
        if self._path.is_file() and self._path.stat().st_size > self._largest:
            with self._named():
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._header = True
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self._header:
            writer.writerow(COLUMNS)
        writer.writerows(self._row(status["timestamp"], device) for device in status["devices"])
        self._write(text.getvalue())
        self._header = False

    @staticmethod
    def _row(timestamp: str, device: Mapping[str, Any]) -> list[object]:
        reasons = " ".join(reason.replace(" ", "-") for reason in device["reasons"] or ())
        others = "" if device["processes"] is None else len(device["processes"])
        facts = [timestamp, device["index"], device["uuid"], device["name"], device["lost"] or "", reasons, others]
        return facts + ["" if value is None else f"{value:.10g}" for value in device["values"].values()]

    def _write(self, text: str) -> None:
        with self._named(), self._path.open("a") as file:
            file.write(text)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ResultsError(f"cannot write {self._path}: {error.strerror}") from None
