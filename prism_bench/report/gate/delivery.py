"""The alerts of a gate, delivered to the environment's webhooks; failed deliveries are reported, and no more."""

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from prism_bench.extensions.ci import alerts
from prism_bench.extensions.ci.alerts import Alert, Destination, Occasion
from prism_bench.analysis.gate.alerts import alerts as alerts_of
from prism_bench.analysis.gate.alerts import failing, failure, occasion
from prism_bench.analysis.gate.checks import Gate
from prism_bench.errors import PrismBenchError
from prism_bench.io.files import path_part
from prism_bench.report.gate.words import headline

_FAILURES = "failures.json"  # the machine's name is unknown where the gate could not judge anything
Report = Callable[[str], None]


@contextmanager
def failures(folder: Path, report: Report) -> Iterator[None]:
    """Send an alert where the body ends with an error of the package; `report` takes lines about the delivery."""
    try:
        yield
    except PrismBenchError as error:
        _fail(str(error), folder, report)
        raise


def send(passed: Gate, folder: Path, report: Report) -> None:
    """Send the alerts of a gate, and the end of failures before it; a gate that could judge nothing is a failure."""
    if passed.exit_code == 2:
        _fail(headline(passed), folder, report)
        return
    _deliver([], failing(platform.node(), ""), folder / _FAILURES, [], report)
    path = folder / f"{path_part(passed.machine)}.json"
    _deliver(alerts_of(passed), occasion(passed), path, _destinations(os.environ, report), report)


def _fail(reason: str, folder: Path, report: Report) -> None:
    host = platform.node()
    to = _destinations(os.environ, report)
    _deliver([failure(host, reason)], failing(host, reason), folder / _FAILURES, to, report)


def _destinations(environment: Mapping[str, str], report: Report) -> Sequence[Destination]:
    to = alerts.destinations(environment)
    if not to:
        report("alerts: no webhook; set PRISM_BENCH_WEBHOOK or PRISM_BENCH_SLACK_WEBHOOK")
    return to


def _deliver(found: Sequence[Alert], about: Occasion, path: Path, to: Sequence[Destination], report: Report) -> None:
    for outcome in alerts.tell(found, about, path, to):
        report(str(outcome))
