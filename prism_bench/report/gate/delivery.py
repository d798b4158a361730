"""The alerts of a gate, delivered to the environment's webhooks; failed deliveries are reported, and no more."""

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prism_bench.analysis.gate.alerts import alerts as alerts_of
from prism_bench.analysis.gate.alerts import failing, failure, occasion
from prism_bench.analysis.gate.checks import Gate
from prism_bench.errors import PrismBenchError
from prism_bench.extension import offered
from prism_bench.io.files import path_part
from prism_bench.record.alert import Alert, Occasion
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
    _deliver([], failing(platform.node(), ""), folder / _FAILURES, report, send=False)
    _deliver(alerts_of(passed), occasion(passed), folder / f"{path_part(passed.machine)}.json", report)


def _fail(reason: str, folder: Path, report: Report) -> None:
    host = platform.node()
    _deliver([failure(host, reason)], failing(host, reason), folder / _FAILURES, report)


def _deliver(found: Sequence[Alert], about: Occasion, path: Path, report: Report, *, send: bool = True) -> None:
    delivery = offered("alerts")
    if delivery is None:
        if send:
            report("alerts: none is sent: no extension that delivers them is installed")
        return
    webhooks = delivery()
    if send and not webhooks.has_webhook:
        report("alerts: no webhook; set PRISM_BENCH_WEBHOOK or PRISM_BENCH_SLACK_WEBHOOK")
    for outcome in webhooks.deliver(found, about, path, send=send):
        report(str(outcome))
