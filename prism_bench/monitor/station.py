"""Where somebody watches: devices, executions of runs elsewhere, and alerts, looked at together moment by moment."""

import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import UsageError
from prism_bench.extension import offered
from prism_bench.io.files import cache_folder
from prism_bench.monitor import devices as listing
from prism_bench.monitor import export, gpm
from prism_bench.monitor.alerts import ActiveAlert, AlertRule, AlertWatch
from prism_bench.monitor.devices import NvmlDevice
from prism_bench.monitor.executions import ExecutionJournal, Executions
from prism_bench.monitor.sampler import Sampler
from prism_bench.monitor.watching import sampling
from prism_bench.record.alert import Alert, Occasion

EARLIER = 3600.0  # seconds of executions before the start that are shown too


@dataclass(frozen=True)
class Moment:
    """A `snapshot` (`export.py`), with the alerts that it raised and ended."""

    snapshot: dict
    raised: tuple[ActiveAlert, ...] = ()
    over: tuple[ActiveAlert, ...] = ()


class Station:
    """Monitoring station: reads a sampler, the journal of executions and the alert rules on request."""

    def __init__(self, sampler: Sampler, rules: dict[str, AlertRule], query: export.KernelQuery | None = None) -> None:
        self.sampler, self.executions, self.alerts, self._query = sampler, Executions(), AlertWatch(rules), query
        self._followed = ExecutionJournal().follow(time.time() - EARLIER)
        self._before: list[dict] = [{} for _ in sampler.probes]

    def look(self) -> Moment:
        """Return this moment."""
        for execution in next(self._followed):
            self.executions.add(execution)
        changes = [self.alerts.update(None, {"failures": float(self.executions.failures_of_last())})]
        for place, before in enumerate(self._before):
            uuid = self.sampler.probes[place].device.uuid
            changes.append(self.alerts.update(uuid, export.alert_values(self.sampler, place, before)))
        raised = tuple(alert for new, _ in changes for alert in new)
        over = tuple(alert for _, old in changes for alert in old)
        return Moment(export.snapshot(self.sampler, self.executions, self.alerts, self._query), raised, over)

    def look_once(self) -> Moment:
        """Return a single moment, by a sampler that does not beat by itself: twice, since a mean needs two looks."""
        self.sampler.beat()
        time.sleep(gpm.PERIOD * 1.1)
        self.sampler.beat()
        return self.look()

    def moments(self, interval: float, duration: float | None = None) -> Iterator[Moment]:
        """Yield a moment every `interval` seconds, at once and for `duration` seconds; without that, for ever."""
        while not all(self.sampler.latest(place) or self.sampler.lost(place) for place in range(len(self._before))):
            time.sleep(0.005)
        began = due = time.monotonic()
        while duration is None or due - began <= duration:
            time.sleep(max(0.0, due - time.monotonic()))
            yield self.look()
            due = max(due + interval, time.monotonic())


@contextmanager
def station(
    words: Sequence[str] | None, rules: dict[str, AlertRule], hertz: float, *,
    once: bool, query: export.KernelQuery | None = None,
) -> Iterator[Station]:  # fmt: skip
    """Yield a station for the devices that `words` name, else for the visible ones.

    BackendUnavailable without NVML; a UsageError for an unknown device, or where none is visible.
    """

    def choose(found: list[NvmlDevice]) -> Sequence[NvmlDevice]:
        picked = listing.chosen(found, list(words or ()))
        if not picked:
            said = os.environ.get(listing.VISIBLE)
            raise UsageError("no GPU here" if said is None else f"no GPU is visible: {listing.VISIBLE}={said}")
        return picked

    with sampling(choose, hertz=hertz, full=True, threaded=not once) as sampler:
        yield Station(sampler, rules, query)


def deliver(raised: Sequence[ActiveAlert], ledger: Path | None = None) -> list[str]:
    """Send raised alerts to the webhooks of the environment, each current alert once; return what failed, and why.

    Network libraries take megabytes: they are loaded when there is something to send.
    """
    delivery = offered("alerts") if raised else None
    webhooks = delivery() if delivery else None
    if webhooks is None or not webhooks.has_webhook:
        return []
    machine = platform.node()
    alerts = [_alert(one, machine) for one in raised]
    occasion = Occasion("monitor", f"Prism Bench monitor on {machine}", {one.subject: one.state for one in alerts})
    outcomes = webhooks.deliver(alerts, occasion, ledger or cache_folder("monitor") / "alerts.json")
    return [str(outcome) for outcome in outcomes if outcome.reason]


def _alert(one: ActiveAlert, machine: str) -> Alert:
    """When it was raised is its state: the same alert raised again is news again."""
    return Alert(
        source="monitor", machine=machine, kind=one.rule.name, subject=one.device, gravity=one.rule.severity,
        message=one.message, identity=(one.rule.metric,), state=f"{one.since:.0f}", severity=one.value,
        reproduce="prism-bench monitor", facts=one.plain(),
    )  # fmt: skip
