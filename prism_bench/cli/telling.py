"""The alerts of a command, delivered to the environment's webhooks; what could not be told is said, and no more."""

import os
import platform
from contextlib import contextmanager
from pathlib import Path

import typer

from prism_bench.errors import PrismBenchError
from prism_bench.files import path_part

_FAILURES = "failures.json"  # what a machine is called is not known where the gate could not be asked


@contextmanager
def failures(folder: Path):
    """Where the body ends with an error of ours, that is an alert too."""
    try:
        yield
    except PrismBenchError as error:
        _fail(str(error), folder)
        raise


def tell(passed, folder: Path) -> None:
    """The alerts of a gate, and the end of failures before it; a gate to which nothing could be answered is one."""
    from prism_bench.analysis.gate_alerts import alerts, failing, occasion
    from prism_bench.report.gate.words import headline

    if passed.exit_code == 2:
        _fail(headline(passed), folder)
        return
    _deliver([], failing(platform.node(), ""), folder / _FAILURES, to=[])
    _deliver(alerts(passed), occasion(passed), folder / f"{path_part(passed.machine)}.json", _destinations())


def _fail(reason, folder):
    from prism_bench.analysis.gate_alerts import failing, failure

    host = platform.node()
    _deliver([failure(host, reason)], failing(host, reason), folder / _FAILURES, _destinations())


def _destinations():
    from prism_bench import alerts

    to = alerts.destinations(os.environ)
    if not to:
        typer.echo("alerts: nobody to tell; set PRISM_BENCH_WEBHOOK or PRISM_BENCH_SLACK_WEBHOOK", err=True)
    return to


def _deliver(found, occasion, path, to):
    from prism_bench import alerts

    for outcome in alerts.tell(found, occasion, path, to):
        typer.echo(str(outcome), err=True)
