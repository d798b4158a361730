"""Prometheus metrics: DCGM's names if DCGM has one, so that existing boards work, else names of this package.

    DCGM_FI_DEV_*, DCGM_FI_PROF_*{gpu, UUID, device, modelName, Hostname}     monitor/probe.py; units are DCGM's
    DCGM_FI_DEV_XID_ERRORS                                                     the last Xid, 0 without any
    prism_bench_device_lost{...}                                               1 while the device does not answer
    prism_bench_kernel_executions_total{kernel, result}                        result: success or failure
    prism_bench_kernel_seconds{kernel, statistic}                              statistic: mean, min, max
    prism_bench_case_seconds{case, metric}                                     valid medians of the newest record
    prism_bench_case_joules{case}                                              energy of one launch there
    prism_bench_budget_met{case, metric}                                       1 or 0; absent where not measured

A quantity that a device does not offer is absent: Prometheus has no null.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import EADDRINUSE
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIServer

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.io.installation import pip_install
from prism_bench.monitor import station
from prism_bench.monitor.executions import Executions
from prism_bench.monitor.probe import QUANTITIES
from prism_bench.monitor.sampler import Sampler

LOOPBACK, PORT = "127.0.0.1", 9400
_DEVICE = ("gpu", "UUID", "device", "modelName", "Hostname")


@dataclass(frozen=True)
class Newest:
    """The part of the newest run record that is served: seconds and joules by case, and budgets by verdict.

    `unreadable` names the files of newer records that cannot be read.
    """

    seconds: Iterable[tuple[str, str, float]] = ()
    joules: Iterable[tuple[str, float]] = ()
    budgets: Iterable[tuple[str, str, bool]] = ()
    unreadable: Iterable[str] = ()


class MetricsCollector:
    """Collector of the current state for each scrape; `newest` returns the newest record's part."""

    def __init__(self, sampler: Sampler | None, executions: Executions, newest: Callable[[], Newest] = Newest) -> None:
        self._sampler, self._executions, self._newest = sampler, executions, newest

    def collect(self) -> Iterator:
        """Yield every metric family."""
        if self._sampler:
            yield from self._devices(self._sampler)
        yield from self._kernels()
        yield from self._record()

    def _devices(self, sampler: Sampler) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily, UnknownMetricFamily

        shown = [station.device(sampler, place) for place in range(len(sampler.probes))]
        for quantity in QUANTITIES.values():
            if quantity.dcgm is None:
                continue
            # DCGM's counters carry no `_total`, which the client would put behind every counter's name.
            kind = UnknownMetricFamily if quantity.kind == "counter" else GaugeMetricFamily
            family = kind(quantity.dcgm, quantity.meaning, labels=_DEVICE)
            for device in shown:
                if device["values"][quantity.name] is not None:
                    family.add_metric(_labels(device), device["values"][quantity.name] * quantity.scale)
            yield family
        yield from self._faults(sampler, shown)

    def _faults(self, sampler: Sampler, shown: Sequence[dict[str, Any]]) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        lost = GaugeMetricFamily("prism_bench_device_lost", "1 while the device does not answer", labels=_DEVICE)
        xids = GaugeMetricFamily("DCGM_FI_DEV_XID_ERRORS", "the last Xid error", labels=_DEVICE)
        events = sampler.xids(0.0, float("inf"))
        for device in shown:
            lost.add_metric(_labels(device), float(device["lost"] is not None))
            if sampler.xids_missing is None:
                numbers = [number for uuid, number in events if uuid == device["uuid"]]
                xids.add_metric(_labels(device), numbers[-1] if numbers else 0)
        yield lost
        yield xids

    def _kernels(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counts = CounterMetricFamily("prism_bench_kernel_executions", "executions seen", labels=("kernel", "result"))
        times = GaugeMetricFamily("prism_bench_kernel_seconds", "their times", labels=("kernel", "statistic"))
        for kernel in self._executions.statistics():
            counts.add_metric((kernel.kernel, "success"), kernel.succeeded)
            counts.add_metric((kernel.kernel, "failure"), kernel.calls - kernel.succeeded)
            for statistic, value in (("mean", kernel.mean), ("min", kernel.least), ("max", kernel.most)):
                if value is not None:
                    times.add_metric((kernel.kernel, statistic), value)
        yield counts
        yield times

    def _record(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        newest = self._newest()
        damaged = [(file, 1.0) for file in newest.unreadable]
        families = (
            ("prism_bench_case_seconds", "valid medians of the newest record", ("case", "metric"), newest.seconds),
            ("prism_bench_case_joules", "energy of one launch, newest record", ("case",), newest.joules),
            ("prism_bench_record_unreadable", "1 for each newer record that cannot be read", ("file",), damaged),
            ("prism_bench_budget_met", "1 where the budget is met, 0 where missed", ("case", "metric"), newest.budgets),
        )
        for name, meaning, labels, rows in families:
            family = GaugeMetricFamily(name, meaning, labels=labels)
            for *values, number in rows:
                family.add_metric(values, float(number))
            yield family


def _labels(device: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(device["index"]), device["uuid"], f"nvidia{device['index']}", device["name"], platform.node())


def serve(collector: MetricsCollector, port: int = PORT, address: str = LOOPBACK) -> tuple[WSGIServer, Thread]:
    """Serve on `address`, port `port` (0 takes a free one) until the server is shut down; return server and thread.

    Raise BackendUnavailable without prometheus-client, UsageError if the address is taken or of another machine.
    """
    try:
        from prometheus_client import start_http_server
        from prometheus_client.registry import CollectorRegistry
    except ImportError as error:
        raise BackendUnavailable(f"prometheus-client is missing ({error}); {pip_install('monitor')}") from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        return start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        taken = isinstance(error, OSError) and error.errno == EADDRINUSE
        problem = "is taken by another program; --port chooses another one" if taken else f"cannot be used ({error})"
        raise UsageError(f"{address}:{port} {problem}") from None
