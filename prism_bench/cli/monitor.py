"""`prism-bench monitor`: a live view of the GPU, and its values for Prometheus."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType

from prism_bench.cli import measuring, options
from prism_bench.errors import UsageError
from prism_bench.io.documents import json_text

if TYPE_CHECKING:
    from prism_bench.monitor.station import CsvFile, Moment

NAME = "monitor"
_LAST_PORT = 65535
_SHORTEST = 0.1  # seconds between samples: each reads every quantity
DeviceOption = Annotated[
    list[str] | None,
    typer.Option("--device", "-d", help="Choose a GPU by index or UUID; may be repeated; default: all visible ones."),
]
_ServeOption = Annotated[
    str | None,
    typer.Option(metavar="[ADDRESS:]PORT", help="Serve the values to Prometheus there; port 0 takes a free one."),
]
AlertsOption = Annotated[Path | None, typer.Option("--alerts", help="Read alert rules from this TOML file.")]


def command(
    device: DeviceOption = None,
    interval: measuring.IntervalOption = 1.0,
    seconds: options.SecondsOption = None,
    output: options.OutputOption = None,
    alerts: AlertsOption = None,
    sort_by: Annotated[str, typer.Option(help="Sort kernels by last, avg_time, total_time or calls.")] = "last",
    limit: options.LimitOption = 20,
    serve: _ServeOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Watch the GPU and the kernels that ran last.

    Utilisation, memory, clocks, power, temperature and processes. With --serve they are served to Prometheus under
    DCGM's names, with the times and budgets of the newest record.

    A terminal shows a live view, other output a line per sample, --json an object of status, kernels, alerts and
    report. --seconds 0 samples once; --output appends every sample to a CSV file, rotated at 16 MB. Alerts go to the
    webhooks of the environment.
    """
    if interval < _SHORTEST:
        raise UsageError(f"--interval {interval:g}: it is at least {_SHORTEST:g} seconds here")
    csv, once = options.written_forms(output, (".csv",), appends=True).get(".csv"), seconds == 0
    from prism_bench.monitor.alerts import configured
    from prism_bench.monitor.station import CsvFile, KernelQuery, station

    if serve is not None:
        options.refuse({"--output": csv, "--json": json}, "leave it out with --serve")
        _serve(serve, device, alerts, interval, seconds, runs, catalogue)
        return
    rules, query, table = configured(alerts), KernelQuery(sort_by, limit), CsvFile(csv) if csv else None
    with station(device, rules, 1 / interval, once=once, query=query) as post:
        moments = iter([post.look_once()]) if once else post.moments(interval, seconds)
        try:
            last = _show(_kept(moments, table), json=json, once=once)
        except KeyboardInterrupt:
            return
    lost = last is not None and all(device["lost"] for device in last.snapshot["status"]["devices"])
    raise SystemExit(2 if lost else 0)


def _serve(
    place: str,
    device: list[str] | None,
    alerts: Path | None,
    interval: float,
    seconds: float | None,
    runs: Path,
    catalogue: Path | None,
) -> None:
    """Serve the monitor's values at the place, `[ADDRESS:]PORT`, until that time has passed."""
    from prism_bench.monitor.alerts import configured
    from prism_bench.monitor.exporter import LOOPBACK, MetricsCollector, serve
    from prism_bench.monitor.station import station
    from prism_bench.workflows.exported import exported

    address, _, port = place.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT:
        raise UsageError(f"--serve '{place}': give PORT or ADDRESS:PORT, such as 9400 or 0.0.0.0:9400")
    address = address.strip("[]") or LOOPBACK
    with station(device, configured(alerts), 1 / interval, once=False) as post:
        collector = MetricsCollector(post.sampler, post.executions, lambda: exported(runs, catalogue, options.remark))
        server, thread = serve(collector, int(port), address)
        options.line(f"serving http://{address}:{server.server_port}/metrics")
        try:
            for _ in post.moments(interval, seconds):
                continue
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _kept(moments: "Iterable[Moment]", table: "CsvFile | None") -> "Iterator[Moment]":
    """Yield the moments, each in the CSV file and its alerts delivered before it is shown."""
    from prism_bench.monitor.station import deliver

    for moment in moments:
        if table:
            table.add(moment.snapshot["status"])
        for trouble in deliver(moment.raised):
            options.remark(trouble)
        yield moment


def _show(moments: "Iterable[Moment]", *, json: bool, once: bool) -> "Moment | None":
    """Show every moment in the way that suits the output and return the last one."""
    console = options.out()
    if json:
        return _each(moments, lambda moment: print(json_text(moment.snapshot, indent=1 if once else None), flush=True))
    if once:
        return _each(moments, lambda moment: console.print(_view(moment)))
    if console.is_terminal and not console.is_dumb_terminal:
        return _live(moments, console)
    return _each(moments, _line)


def _each(moments: "Iterable[Moment]", show: "Callable[[Moment], object]") -> "Moment | None":
    last: Moment | None = None
    for last in moments:
        show(last)
    return last


def _live(moments: "Iterable[Moment]", console: Console) -> "Moment | None":
    """Show the view on an own screen, which is redrawn in place and follows the terminal's size."""
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as live:
        return _each(moments, lambda moment: live.update(_view(moment), refresh=True))


def _view(moment: "Moment") -> RenderableType:
    from prism_bench.report.terminal.machine import view

    return view(moment.snapshot)


def _line(moment: "Moment") -> None:
    """Print one line, for a pipe or a terminal that cannot be redrawn; alerts are on own lines."""
    from prism_bench.monitor.station import headline

    status = moment.snapshot["status"]
    print(f"{status['timestamp'][11:19]}  {headline(status['devices'])}", flush=True)
    for word, alerts in (("raised", moment.raised), ("over", moment.over)):
        for alert in alerts:
            print(f"{alert.rule.severity} {word}: {alert.message}", flush=True)
