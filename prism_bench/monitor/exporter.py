"""What Prometheus scrapes: DCGM's names where there are such, so that existing boards work, ours for all else.

    DCGM_FI_DEV_*, DCGM_FI_PROF_*{gpu, UUID, device, modelName, Hostname}     monitor/probe.py; units are DCGM's
    DCGM_FI_DEV_XID_ERRORS                                                     the last Xid, 0 where there was none
    prism_bench_device_lost{...}                                               1 while the device does not answer
    prism_bench_kernel_executions_total{kernel, result}                        result: success or failure
    prism_bench_kernel_seconds{kernel, statistic}                              statistic: mean, min, max
    prism_bench_case_seconds{case, metric}                                     valid medians of the newest record
    prism_bench_case_joules{case}                                              energy of one launch there
    prism_bench_budget_met{case, metric}                                       1 or 0; all that is neither is absent

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
    """What the exporter serves of a run record: seconds and joules by case, and budgets by verdict.

    `unreadable` are the files of newer records that cannot be read.
    """

    seconds: Iterable[tuple[str, str, float]] = ()
    joules: Iterable[tuple[str, float]] = ()
    budgets: Iterable[tuple[str, str, bool]] = ()
    unreadable: Iterable[str] = ()


class MetricsCollector:
    """Gives Prometheus the present state whenever it asks; `newest` gives the newest record's part."""

    def __init__(self, sampler: Sampler | None, executions: Executions, newest: Callable[[], Newest] = Newest) -> None:
        self._sampler, self._executions, self._newest = sampler, executions, newest

    def collect(self) -> Iterator:
        """Every metric family."""
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
            for one in shown:
                if one["values"][quantity.name] is not None:
                    family.add_metric(_labels(one), one["values"][quantity.name] * quantity.scale)
            yield family
        yield from self._faults(sampler, shown)

    def _faults(self, sampler: Sampler, shown: Sequence[dict[str, Any]]) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        lost = GaugeMetricFamily("prism_bench_device_lost", "1 while the device does not answer", labels=_DEVICE)
        xids = GaugeMetricFamily("DCGM_FI_DEV_XID_ERRORS", "the last Xid error", labels=_DEVICE)
        events = sampler.xids(0.0, float("inf"))
        for one in shown:
            lost.add_metric(_labels(one), float(one["lost"] is not None))
            if sampler.xids_missing is None:
                own = [number for uuid, number in events if uuid == one["uuid"]]
                xids.add_metric(_labels(one), own[-1] if own else 0)
        yield lost
        yield xids

    def _kernels(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counts = CounterMetricFamily("prism_bench_kernel_executions", "executions seen", labels=("kernel", "result"))
        times = GaugeMetricFamily("prism_bench_kernel_seconds", "their times", labels=("kernel", "statistic"))
        for one in self._executions.statistics():
            counts.add_metric((one.kernel, "success"), one.succeeded)
            counts.add_metric((one.kernel, "failure"), one.calls - one.succeeded)
            for word, value in (("mean", one.mean), ("min", one.least), ("max", one.most)):
                if value is not None:
                    times.add_metric((one.kernel, word), value)
        yield counts
        yield times

    def _record(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        shown = self._newest()
        damaged = [(file, 1.0) for file in shown.unreadable]
        families = (
            ("prism_bench_case_seconds", "valid medians of the newest record", ("case", "metric"), shown.seconds),
            ("prism_bench_case_joules", "energy of one launch, newest record", ("case",), shown.joules),
            ("prism_bench_record_unreadable", "1 for each newer record that cannot be read", ("file",), damaged),
            ("prism_bench_budget_met", "1 where the budget is met, 0 where missed", ("case", "metric"), shown.budgets),
        )
        for name, meaning, labels, rows in families:
            family = GaugeMetricFamily(name, meaning, labels=labels)
            for *words, value in rows:
                family.add_metric(words, float(value))
            yield family


def _labels(device: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(device["index"]), device["uuid"], f"nvidia{device['index']}", device["name"], platform.node())


def serve(collector: MetricsCollector, port: int = PORT, address: str = LOOPBACK) -> tuple[WSGIServer, Thread]:
    """Answer on `address`, port `port` (0 takes a free one) until the server is shut down; return server and thread.

    BackendUnavailable without prometheus-client; a UsageError where the address is taken or belongs to another machine.
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
        words = "is taken by another program; --port chooses another one" if taken else f"cannot be used ({error})"
        raise UsageError(f"{address}:{port} {words}") from None
