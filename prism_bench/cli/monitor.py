"""`prism-bench monitor`: what the GPU does now."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.strict_json import json_text

NAME = "monitor"
DeviceOption = Annotated[
    list[str] | None, typer.Option("--device", "-d", help="index or UUID; may be repeated; the visible ones without it")
]
AlertsOption = Annotated[Path | None, typer.Option("--alerts", help="TOML file that changes alert rules")]


def command(
    device: DeviceOption = None,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="seconds between two looks")] = 1.0,
    duration: Annotated[float | None, typer.Option(min=0, help="seconds until it ends; for ever without it")] = None,
    once: Annotated[bool, typer.Option("--once", help="look once and end")] = False,
    csv: Annotated[Path | None, typer.Option(help="append every look to this file, which is rotated at 16 MB")] = None,
    alerts: AlertsOption = None,
    sort_by: Annotated[str, typer.Option(help="order of the kernels: last, avg_time, total_time or calls")] = "last",
    limit: Annotated[int, typer.Option(min=0, help="how many kernels")] = 20,
    min_calls: Annotated[int, typer.Option(min=1, help="kernels that ran less often are left out")] = 1,
    json: options.JsonOption = False,
) -> None:  # fmt: skip
    """Watch the GPU and the kernels that ran last.

    Utilisation, memory, clocks, power, temperature and processes.

    A terminal shows a live view, anything else a line per look, with --json an object of status, kernels, alerts and
    report. Alerts go to the webhooks of the environment.
    """
    from prism_bench.monitor.alerts import configured
    from prism_bench.monitor.csv_file import CsvFile
    from prism_bench.monitor.export import KernelQuery
    from prism_bench.monitor.station import station

    rules, query, table = configured(alerts), KernelQuery(sort_by, limit, min_calls), CsvFile(csv) if csv else None
    with station(device, rules, 1 / interval, once=once, query=query) as post:
        moments = iter([post.look_once()]) if once else post.moments(interval, duration)
        try:
            last = _show(_kept(moments, table), json=json, once=once)
        except KeyboardInterrupt:
            return
    lost = last is not None and all(one["lost"] for one in last.snapshot["status"]["devices"])
    raise SystemExit(2 if lost else 0)


def _kept(moments, table):
    """The moments, each in the CSV file and its alerts delivered before it is shown."""
    from prism_bench.monitor.station import deliver

    for moment in moments:
        if table:
            table.add(moment.snapshot["status"])
        for trouble in deliver(moment.raised):
            options.err().print(trouble, highlight=False, soft_wrap=True)
        yield moment


def _show(moments, *, json, once):
    """Show every moment in the way that suits the output; the last one is returned."""
    console = options.out()
    if json:
        return _each(moments, lambda moment: print(_json(moment, once), flush=True))
    if once:
        return _each(moments, lambda moment: console.print(_view(moment)))
    if console.is_terminal and not console.is_dumb_terminal:
        return _live(moments, console)
    return _each(moments, _line)


def _each(moments, show):
    last = None
    for last in moments:
        show(last)
    return last


def _live(moments, console):
    """The view on a screen of its own, which is drawn over in place and follows the terminal's size."""
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as live:
        return _each(moments, lambda moment: live.update(_view(moment), refresh=True))


def _view(moment):
    from prism_bench.report.terminal.monitor import view

    return view(moment.snapshot)


def _json(moment, once):
    return json_text(moment.snapshot, indent=1 if once else None)


def _line(moment):
    """One line of words for a pipe or a terminal that cannot be drawn on; alerts come on lines of their own."""
    from prism_bench.monitor.export import headline

    status = moment.snapshot["status"]
    print(f"{status['timestamp'][11:19]}  {headline(status['devices'])}", flush=True)
    for word, found in (("raised", moment.raised), ("over", moment.over)):
        for alert in found:
            print(f"{alert.rule.severity} {word}: {alert.message}", flush=True)
