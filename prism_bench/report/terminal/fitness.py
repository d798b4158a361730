"""Whether a GPU is fit to measure on: the answer, what to change, and what was read."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.doctor.fitness import Fitness
from prism_bench.doctor.fitness.noise_rules import LEAST_SAMPLES, figures, summary
from prism_bench.monitor.quantities import reasons_in
from prism_bench.record.measurement import plain_evidence
from prism_bench.units import bytes_text, rate_text, share_text

_HEADINGS = {
    "yes": "is fit to measure: yes",
    "with care": "is fit to measure: with care",
    "no": "is fit to measure: no",
    "unknown": "is fit to measure: unknown",
}
_STYLES = {"yes": "bold green", "with care": "bold yellow", "no": "bold red", "unknown": "bold magenta"}
_SEVERITIES = {"no": ("no", "red"), "care": ("care", "yellow"), "unknown": ("?", "magenta")}


def fitness_view(fitness: Fitness) -> RenderableType:
    """Return the answer, each problem with what to change, and the readings."""
    heading = Text(f"{fitness.facts.reading.name} {_HEADINGS[fitness.answer]}", style=_STYLES[fitness.answer])
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
        "problems": [{"rule": rule, **asdict(problem)} for rule, problem in fitness.problems],
        "readings": dict(facts.reading.values),
        "missing": dict(facts.reading.missing),
        "processes": None if facts.reading.processes is None else [str(one) for one in facts.reading.processes],
        "probe": [asdict(figures(one)) for one in facts.kernels if len(one.samples) >= LEAST_SAMPLES],
        "evidence": plain_evidence(facts.evidence) if facts.evidence else None,
    }


def _problems(fitness: Fitness) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for _, problem in fitness.problems:
        word, style = _SEVERITIES[problem.severity]
        words = Text.assemble(f"{problem.found}: {problem.cause}\n", (problem.cure, "dim"))
        table.add_row(Text(word, style=style), words)
    return table


def _readings(fitness: Fitness) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, words in _lines(fitness):
        table.add_row(name, words)
    return table


def _lines(fitness: Fitness) -> Iterator[tuple[str, str]]:
    """Yield every reading by name; a dash where it is not known."""
    facts, value = fitness.facts, fitness.facts.value
    clocks = facts.clocks
    under_load = f"; {rate_text(min(clocks), 'Hz')} to {rate_text(max(clocks), 'Hz')} under load" if clocks else ""
    reasons = ", ".join(reasons_in(value("clock_reasons")))
    yield "clock", (f"{rate_text(value('sm_clock'), 'Hz')} of {rate_text(value('max_sm_clock'), 'Hz')}"
                    f"{f' ({reasons})' if reasons else ''}{under_load}")  # fmt: skip
    yield "power", (f"{_whole(value('power'), 'W')}; limit {_whole(value('power_limit'), 'W')} of "
                    f"{_whole(value('default_power_limit'), 'W')}")  # fmt: skip
    hottest = facts.evidence.highest("temperature") if facts.evidence else None
    yield "temperature", (f"{_whole(value('temperature'), 'C')}; {_whole(hottest, 'C')} under load; slows down at "
                          f"{_whole(value('slowdown_temperature'), 'C')}")  # fmt: skip
    yield "memory", (f"{bytes_text(value('memory_free'))} of {bytes_text(value('memory_total'))} free; "
                     f"{_whole(value('ecc_uncorrected'), 'uncorrected errors')}")  # fmt: skip
    yield "use at rest", f"{share_text(value('utilization'))}, {_others(fitness)}"
    yield "setup", f"persistence mode {_switch(value('persistence'))}, MIG {_switch(value('mig'))}"
    for kernel in facts.kernels:
        yield kernel.case, summary(kernel)


def _others(fitness: Fitness) -> str:
    processes = fitness.facts.reading.processes
    if processes is None:
        return "other processes unknown"
    return ", ".join(str(one) for one in processes if not one.ours) or "no other process"


def _whole(number: float | None, unit: str) -> str:
    return "-" if number is None else f"{number:.0f} {unit}"


def _switch(value: float | None) -> str:
    return "-" if value is None else "on" if value else "off"
