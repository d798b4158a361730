"""The machine in the terminal: the doctor's checks, its fitness, and the live monitor."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prism_bench.doctor import Check
from prism_bench.doctor.checks import AbilityAnswer, answers
from prism_bench.doctor.fitness import LEAST_SAMPLES, Fitness, figures, summary
from prism_bench.monitor.probe import HARMFUL, reasons_in
from prism_bench.record.measurement import plain_evidence
from prism_bench.units import bytes_text, count_text, rate_text, share_text, time_text

# The doctor's checks as a table, by group.

_ABSENT = "not here"  # what a check of an absent library found
_STYLES = {"works": "green", "note": "yellow", "missing": "cyan", "broken": "bold red"}


def doctor_view(checks: Sequence[tuple[str, Check]], everything: bool = False) -> RenderableType:
    """Return what a user can and cannot do here, then the checks that are broken or worth a note, or all of them."""
    shown = [
        (group, check)
        for group, check in checks
        if everything or check.state == "broken" or (check.state == "note" and check.found != _ABSENT)
    ]
    parts: list[RenderableType] = list(_abilities(answers(check for _, check in checks)))
    if shown:
        parts += [Text(), _checks_view(shown)]
    if len(shown) < len(checks):
        parts += [
            Text(),
            Text(f"{len(shown)} of {count_text(len(checks), 'check')} shown; --all shows every check", style="dim"),
        ]
    return Group(*parts)


def _abilities(abilities: Sequence[AbilityAnswer]) -> Iterator[Text]:
    can = [ability.what for ability in abilities if ability.possible]
    yield Text.assemble(("You can: ", "green"), ", ".join(can) + ".")
    closed = [ability for ability in abilities if not ability.possible]
    for lacks, cure in dict.fromkeys((ability.lacks, ability.cure) for ability in closed):
        what = ", ".join(ability.what for ability in closed if (ability.lacks, ability.cure) == (lacks, cure))
        reason = f"{lacks} does not work here" + (f": {cure}" if cure else "")
        yield Text.assemble(("You cannot: ", "cyan"), f"{what}. {reason}")


def _checks_view(checks: Sequence[tuple[str, Check]]) -> RenderableType:
    """Return the table of checks by group, and how many have each state."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "check", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("found", overflow="fold")
    shown = None
    for group, check in checks:
        state = Text(check.state, style=_STYLES[check.state])
        table.add_row(Text(group if group != shown else "", style="dim"), Text(check.name), state, _finding(check))
        shown = group
    states = [check.state for _, check in checks]
    return Group(table, Text(", ".join(f"{states.count(state)} {state}" for state in _STYLES if state in states)))


def _finding(check: Check) -> Text:
    """Return what was found, below it the cause and the cure."""
    text = Text(check.found if check.state != "missing" else "")
    if check.cause:
        text.append(("\n" if text.plain else "") + check.cause)
    if check.cure:
        text.append(f"\n{check.cure}", style="dim")
    return text


# Whether a GPU is fit to measure on: the answer, what to change, and what was read.

_HEADINGS = {
    "yes": "is fit to measure: yes",
    "with care": "is fit to measure: with care",
    "no": "is fit to measure: no",
    "unknown": "is fit to measure: unknown",
}
_FITNESS_STYLES = {"yes": "bold green", "with care": "bold yellow", "no": "bold red", "unknown": "bold magenta"}
_SEVERITIES = {"no": ("no", "red"), "care": ("care", "yellow"), "unknown": ("?", "magenta")}


def fitness_view(fitness: Fitness) -> RenderableType:
    """Return the answer, each problem with what to change, and the readings."""
    heading = Text(f"{fitness.facts.reading.name} {_HEADINGS[fitness.answer]}", style=_FITNESS_STYLES[fitness.answer])
    parts: list[RenderableType] = [heading]
    if fitness.problems:
        parts += [Text(), _problems(fitness)]
    return Group(*parts, Text(), _readings(fitness))


def fitness_json(fitness: Fitness) -> dict[str, Any]:
    """Return the answer, the problems, the readings, the figures of the probe and its evidence as plain values."""
    facts = fitness.facts
    return {
        "answer": fitness.answer,
        "gpu": facts.reading.name,
        "uuid": facts.reading.uuid,
        "problems": [asdict(problem) for problem in fitness.problems],
        "readings": dict(facts.reading.values),
        "missing": dict(facts.reading.missing),
        "processes": None if facts.reading.processes is None else [str(item) for item in facts.reading.processes],
        "probe": [asdict(figures(item)) for item in facts.kernels if len(item.samples) >= LEAST_SAMPLES],
        "evidence": plain_evidence(facts.evidence) if facts.evidence else None,
    }


def _problems(fitness: Fitness) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for problem in fitness.problems:
        word, style = _SEVERITIES[problem.severity]
        text = Text.assemble(f"{problem.found}: {problem.cause}\n", (problem.cure, "dim"))
        table.add_row(Text(word, style=style), text)
    return table


def _readings(fitness: Fitness) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in _lines(fitness):
        table.add_row(name, text)
    return table


def _lines(fitness: Fitness) -> Iterator[tuple[str, str]]:
    """Yield every reading by name; a dash where it is not known."""
    facts, value = fitness.facts, fitness.facts.value
    clocks = facts.clocks
    under_load = f"; {rate_text(min(clocks), 'Hz')} to {rate_text(max(clocks), 'Hz')} under load" if clocks else ""
    reasons = ", ".join(reasons_in(value("clock_reasons")))
    yield (
        "clock",
        (
            f"{rate_text(value('sm_clock'), 'Hz')} of {rate_text(value('max_sm_clock'), 'Hz')}"
            f"{f' ({reasons})' if reasons else ''}{under_load}"
        ),
    )
    yield (
        "power",
        (
            f"{_whole(value('power'), 'W')}; limit {_whole(value('power_limit'), 'W')} of "
            f"{_whole(value('default_power_limit'), 'W')}"
        ),
    )
    hottest = facts.evidence.highest("temperature") if facts.evidence else None
    yield (
        "temperature",
        (
            f"{_whole(value('temperature'), 'C')}; {_whole(hottest, 'C')} under load; slows down at "
            f"{_whole(value('slowdown_temperature'), 'C')}"
        ),
    )
    yield (
        "memory",
        (
            f"{bytes_text(value('memory_free'))} of {bytes_text(value('memory_total'))} free; "
            f"{_whole(value('ecc_uncorrected'), 'uncorrected errors')}"
        ),
    )
    yield "use at rest", f"{share_text(value('utilization'))}, {_others(fitness)}"
    yield "setup", f"persistence mode {_switch(value('persistence'))}, MIG {_switch(value('mig'))}"
    for kernel in facts.kernels:
        yield kernel.case, summary(kernel)


def _others(fitness: Fitness) -> str:
    processes = fitness.facts.reading.processes
    if processes is None:
        return "other processes unknown"
    return ", ".join(str(process) for process in processes if not process.ours) or "no other process"


def _whole(number: float | None, unit: str) -> str:
    return "-" if number is None else f"{number:.0f} {unit}"


def _switch(value: float | None) -> str:
    return "-" if value is None else "on" if value else "off"


# What `prism-bench monitor` draws: devices, alerts, and the kernels that ran last.

_NAME = 52


def view(snapshot: Mapping[str, Any]) -> RenderableType:
    """Return a snapshot (`monitor/station.py`) as panels that are as wide as the console."""
    parts = [_device(device) for device in snapshot["status"]["devices"]]
    parts += [_alerts(snapshot["alerts"])]
    parts += [_kernels(snapshot)]
    return Group(*parts, _foot(snapshot))


def _device(device: Mapping[str, Any]) -> Panel:
    title = Text.assemble(
        (f"{device['index']}  {device['name']}", "bold"), ("  slice" if device["slice"] else "", "cyan")
    )
    if device["lost"]:
        return Panel(Text(device["lost"], style="bold red"), title=title, title_align="left", border_style="red")
    harm = bool(set(HARMFUL) & set(device["reasons"] or ()))
    body = Group(_bars(device["values"]), _facts(device), _processes(device))
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


def _facts(device: Mapping[str, Any]) -> Text:
    values = device["values"]
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
    reasons = device["reasons"]
    clock = "clock reasons unknown" if reasons is None else f"clock: {', '.join(reasons) or 'nothing holds it'}"
    harm = bool(set(HARMFUL) & set(reasons or ()))
    return Text.assemble("   ".join(parts), "   ", (clock, "bold yellow" if harm else "dim"))


def _processes(device: Mapping[str, Any]) -> Text:
    if device["processes"] is None:
        return Text(f"processes: {device['missing'].get('processes', 'unknown')}", style="dim")
    texts = [f"{process['name']} ({process['pid']}) {bytes_text(process['memory'])}" for process in device["processes"]]
    return Text(f"processes: {', '.join(texts) or 'none'}", style="dim", no_wrap=True, overflow="ellipsis")


def _alerts(alerts: Mapping[str, Any]) -> RenderableType:
    active = alerts["active_alerts"]
    if not active:
        return Text(f"no alert; {alerts['total_alerts_today']} in the last day", style="dim")
    styles = {"critical": "bold red", "warning": "yellow"}
    return Group(
        *(Text(f"{alert['severity']}: {alert['message']}", style=styles[alert["severity"]]) for alert in active)
    )


def _kernels(snapshot: Mapping[str, Any]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("kernel", ratio=1, no_wrap=True, overflow="ellipsis", max_width=_NAME)
    for name in ("calls", "mean", "min", "max", "success"):
        table.add_column(name, justify="right", no_wrap=True)
    for kernel in snapshot["kernels"]:
        times = [time_text(None if kernel[key] is None else kernel[key] * 1e-3) for key in _TIMES]
        style = "" if kernel["success_rate"] == 1 else "red"
        table.add_row(
            Text(kernel["name"]), str(kernel["total_calls"]), *times, share_text(kernel["success_rate"]), style=style
        )
    if not snapshot["kernels"]:
        return Text("no kernel ran here in the last hour; 'prism-bench run' in another terminal shows up", style="dim")
    return table


_TIMES = ("avg_time_ms", "min_time_ms", "max_time_ms")


def _foot(snapshot: Mapping[str, Any]) -> Text:
    sampler = snapshot["report"]["sampler"]
    hertz, share = sampler["hertz"], share_text(sampler["cpu_share"])
    text = "a single look" if hertz is None else f"read at {hertz:.3g} Hz for {share} of a core; Ctrl-C ends"
    return Text(f"{snapshot['status']['timestamp'][11:19]} UTC  {text}", style="dim")
