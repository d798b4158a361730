"""What `prism-bench monitor` draws: devices, alerts, and the kernels that ran last."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prism_bench.monitor.quantities import HARMFUL
from prism_bench.units import bytes_text, rate_text, share_text, time_text

_NAME = 52


def view(snapshot: Mapping[str, Any]) -> RenderableType:
    """Return a snapshot (`monitor/export.py`) as panels that are as wide as the console."""
    parts = [_device(one) for one in snapshot["status"]["devices"]]
    parts += [_alerts(snapshot["alerts"])]
    parts += [_kernels(snapshot)]
    return Group(*parts, _foot(snapshot))


def _device(one: Mapping[str, Any]) -> Panel:
    title = Text.assemble((f"{one['index']}  {one['name']}", "bold"), ("  slice" if one["slice"] else "", "cyan"))
    if one["lost"]:
        return Panel(Text(one["lost"], style="bold red"), title=title, title_align="left", border_style="red")
    harm = bool(set(HARMFUL) & set(one["reasons"] or ()))
    body = Group(_bars(one["values"]), _facts(one), _processes(one))
    return Panel(body, title=title, title_align="left", border_style="yellow" if harm else "green")


def _bars(values: Mapping[str, Any]) -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=11)
    grid.add_column(ratio=1)
    grid.add_column(justify="right", width=22)
    used, total = values["memory_used"], values["memory_total"]
    memory = used / total if used is not None and total else None
    grid.add_row("utilisation", _bar(values["utilization"]), share_text(values["utilization"]))
    grid.add_row("memory", _bar(memory), f"{bytes_text(used)} of {bytes_text(total)}")
    for name, word in (("sm_active", "SMs"), ("tensor_active", "tensor"), ("dram_active", "DRAM")):
        if values[name] is not None:
            grid.add_row(word, _bar(values[name]), share_text(values[name]))
    return grid


def _bar(share: float | None) -> RenderableType:
    if share is None:
        return Text("not offered by this device", style="dim")
    return ProgressBar(total=1.0, completed=min(share, 1.0), complete_style="green" if share < 0.9 else "yellow")


def _facts(one: Mapping[str, Any]) -> Text:
    values = one["values"]
    power = values["power"] if values["power"] is not None else values["power_average"]
    limit = f" of {values['power_limit']:.0f} W" if values["power_limit"] else ""
    power_words = "-" if power is None else f"{power:.0f} W{limit}"
    heat = "-" if values["temperature"] is None else f"{values['temperature']:.0f} C"
    parts = [
        f"SM {rate_text(values['sm_clock'], 'Hz')}",
        f"memory {rate_text(values['memory_clock'], 'Hz')}",
        f"power {power_words}",
        heat,
    ]
    reasons = one["reasons"]
    words = "clock reasons unknown" if reasons is None else f"clock: {', '.join(reasons) or 'nothing holds it'}"
    harm = bool(set(HARMFUL) & set(reasons or ()))
    return Text.assemble("   ".join(parts), "   ", (words, "bold yellow" if harm else "dim"))


def _processes(one: Mapping[str, Any]) -> Text:
    if one["processes"] is None:
        return Text(f"processes: {one['missing'].get('processes', 'unknown')}", style="dim")
    words = [f"{p['name']} ({p['pid']}) {bytes_text(p['memory'])}" for p in one["processes"]]
    return Text(f"processes: {', '.join(words) or 'none'}", style="dim", no_wrap=True, overflow="ellipsis")


def _alerts(alerts: Mapping[str, Any]) -> RenderableType:
    active = alerts["active_alerts"]
    if not active:
        return Text(f"no alert; {alerts['total_alerts_today']} in the last day", style="dim")
    styles = {"critical": "bold red", "warning": "yellow"}
    return Group(*(Text(f"{one['severity']}: {one['message']}", style=styles[one["severity"]]) for one in active))


def _kernels(snapshot: Mapping[str, Any]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("kernel", ratio=1, no_wrap=True, overflow="ellipsis", max_width=_NAME)
    for name in ("calls", "mean", "min", "max", "success"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in snapshot["kernels"]:
        times = [time_text(None if one[key] is None else one[key] * 1e-3) for key in _TIMES]
        style = "" if one["success_rate"] == 1 else "red"
        table.add_row(Text(one["name"]), str(one["total_calls"]), *times, share_text(one["success_rate"]), style=style)
    if not snapshot["kernels"]:
        return Text("no kernel ran here in the last hour; 'prism-bench run' in another terminal shows up", style="dim")
    return table


_TIMES = ("avg_time_ms", "min_time_ms", "max_time_ms")


def _foot(snapshot: Mapping[str, Any]) -> Text:
    sampler = snapshot["report"]["sampler"]
    hertz, share = sampler["hertz"], share_text(sampler["cpu_share"])
    words = "a single look" if hertz is None else f"read at {hertz:.3g} Hz for {share} of a core; Ctrl-C ends"
    return Text(f"{snapshot['status']['timestamp'][11:19]} UTC  {words}", style="dim")
