"""Our pages inside asv's site: budgets, steps, roofline."""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path

from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from prism_bench.analysis.bounds.bottleneck import plotted
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.gate.checks import ENOUGH
from prism_bench.analysis.run_analysis import Reading, metric_words, read
from prism_bench.analysis.trend import Breakpoint, Course, Key, Step, Trend, trend
from prism_bench.analysis.trend.causes import Shift, shifts
from prism_bench.analysis.trend.series import courses, kept_floors
from prism_bench.catalogue import Catalogue, of_project
from prism_bench.errors import ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.record import store
from prism_bench.record.store import History
from prism_bench.report.asv.libraries import carry_libraries, inserted, localised
from prism_bench.report.charts import INK, canvas, inline, roofline_chart, tick
from prism_bench.report.plain import machine_name
from prism_bench.report.templating import environment
from prism_bench.report.view import VERDICTS
from prism_bench.spec.metric import value_text

# The newest record of each machine, read and judged; one that cannot be read harms no other.


@dataclass(frozen=True)
class _NewestReading:
    """What is known of one `machine`: the `reading` of its newest readable record, and why others were passed by."""

    machine: str
    reading: Reading | None
    passed_by: tuple[str, ...] = ()


def _newest_by_machine(runs: Path) -> list[_NewestReading]:
    """Return a reading for each folder of records below `runs`, by name.

    Budgets are those of the configured catalogue, else of the one next to the package.
    A ResultsError where a device's budgets are not right, or not for its records.
    """
    catalogue = of_project()
    machines = sorted({path.parent for path in store.records_in(runs)})
    return [_newest(folder, catalogue) for folder in machines]


def _newest(folder: Path, catalogue: Catalogue | None) -> _NewestReading:
    passed_by = []
    for path in reversed([record for record in store.records_in(folder.parent) if record.parent == folder]):
        try:
            record = store.read(path)
        except ResultsError as error:
            passed_by.append(f"{path.name}: {str(error).removeprefix(f'{path}: ')}")
        else:
            return _NewestReading(folder.name, read(record, catalogue), tuple(passed_by))
    return _NewestReading(folder.name, None, tuple(passed_by))


# What all records together say about each machine: its steps, its breakpoints, what was set aside.


@dataclass(frozen=True)
class _Past:
    """A `history` and its `trend`."""

    history: History
    trend: Trend

    def records(self, machine: str) -> int:
        """Return how many records of the machine there are."""
        return sum(facts.machine == machine for facts in self.history.records)

    def shifts(self, machine: str) -> list[Shift]:
        """Return the machine's shifts, the newest first."""
        return [shift for shift in reversed(self._shifts) if shift.first.key.machine == machine]

    def breakpoints(self, machine: str) -> list[Breakpoint]:
        """Return where something changed that may move every series of the machine, the newest first."""
        return [point for point in reversed(self.trend.breakpoints) if point.machine == machine]

    @cached_property
    def _shifts(self) -> list[Shift]:
        return shifts(self.trend.steps)

    @cached_property
    def series(self) -> Mapping[Key, Course]:
        """The series that a step is drawn on: of each shift that of its largest step."""
        wanted = {shift.largest.key for shift in self._shifts}
        return {course.key: course for course in courses(self.history, wanted)} if wanted else {}

    def place(self, step: Step) -> int:
        """Return the first run of the step's new level in its series."""
        records = self.series[step.key].records.tolist()
        return next(place for place, record in enumerate(records) if self.history.records[record].file == step.record)


def _past_of(runs: Path) -> _Past:
    """Return the past of all records below `runs`, with the noise floors that are kept next to them."""
    history = store.read_history(runs)
    return _Past(history, trend(history, kept_floors(history, runs.parent / "noise")))


# A series with its step: a dot for each run, a line for the level before and after.

_WIDTH, _HEIGHT = 460, 120
_AROUND = 45  # runs shown before and after the step


def _step_chart(series: Course, step: Step, place: int, began: int, name: str) -> str:
    """Draw the chart as inline SVG.

    `place` is the step's first run in the series, `began` that of the level before; `name` sets its ids apart.
    """
    start, end = max(0, place - _AROUND), min(len(series.values), place + _AROUND)
    levels = ((max(start, began), place - 1, step.before), (place, min(end, place + step.nights) - 1, step.after))
    context, figure_of = canvas(_WIDTH, _HEIGHT, name)
    with context:
        figure = figure_of()
        axes = figure.add_subplot()
        figure.subplots_adjust(left=62 / _WIDTH, right=1 - 8 / _WIDTH, bottom=14 / _HEIGHT, top=1 - 10 / _HEIGHT)
        axes.plot(
            range(start, end),
            series.values[start:end],
            "o",
            markersize=2.6,
            markerfacecolor=INK["second"],
            markeredgewidth=0,
            clip_on=False,
        )
        for first, last, level in levels:
            axes.plot((first, last), (level, level), color=INK["accent"], linewidth=1.6)
        axes.axvline(place - 0.5, color=INK["rule"], linewidth=0.8, linestyle=(0, (3, 3)))
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.yaxis.set_major_formatter(lambda value, _: tick(value_text(step.key.metric, value)))
        axes.set_xticks([])
        before, after = (value_text(step.key.metric, value) for value in (step.before, step.after))
        label = f"{step.key.case}: {before} before, {after} after"
        return inline(figure, label, prefix=f"{name}-")


# Our three pages, each a separate document: budgets, steps, roofline.

PAGES = {"budgets": "Budgets", "steps": "Steps", "roofline": "Roofline"}
_WIDE, _NARROW = (1120, 520), (400, 400)


@dataclass(frozen=True)
class Promise:
    """One budget on one case in words; `use` is how much of what it allows is used, above 1 where it is missed.

    `ratio` is the value over the limit, `why` is its file, its owner, its reason, and when it expires.
    """

    case: str
    label: str
    metric: str
    limit: str
    value: str
    verdict: str
    use: float | None
    ratio: float | None
    why: str


def _document(name: str, machines: Sequence[_NewestReading], past: _Past) -> str:
    """Return the page called `name` as text."""
    template = environment().get_template(f"asv/{name}.html")
    return template.render(
        title=PAGES[name],
        machines=machines,
        promises=promises,
        counts=counts,
        rooflines=_rooflines,
        machine_name=machine_name,
        plotted=lambda reading: plotted(reading.frame),
        past=past,
        enough=ENOUGH,
        chart=lambda shift: _chart(shift, past),
    )


def _chart(shift: Shift, past: _Past) -> Markup:
    """Draw the shift's largest step on its series."""
    step = shift.largest
    number = past.trend.steps.index(step)
    place = past.place(step)
    earlier = [past.place(earlier_step) for earlier_step in past.trend.steps[:number] if earlier_step.key == step.key]
    return Markup(_step_chart(past.series[step.key], step, place, max(earlier, default=0), f"step{number}"))


def promises(reading: Reading) -> list[Promise]:
    """Return every budget on every case, also on those that did not run; the missed ones first, worst ahead."""
    judged = [_promise(verdict, reading) for verdict in reading.every_budget]
    return sorted(judged, key=lambda promise: (VERDICTS.index(promise.verdict), -(promise.use or 0)))


def _promise(verdict: BudgetVerdict, reading: Reading) -> Promise:
    budget, case = verdict.budget, reading.record.case(verdict.case)
    word = "at most" if budget.at_most is not None else "at least"
    return Promise(
        verdict.case,
        case.label if case else "",
        metric_words(budget.metric),
        f"{word} {value_text(budget.metric, budget.limit)}",
        value_text(budget.metric, verdict.value),
        verdict.verdict,
        verdict.use,
        verdict.ratio,
        _why(verdict),
    )


def _why(verdict: BudgetVerdict) -> str:
    budget = verdict.budget
    until = f"until {budget.expires}" if budget.expires else None
    return "; ".join(part for part in (budget.reason, budget.owner, until, verdict.source) if part)


def counts(reading: Reading) -> list[tuple[str, int]]:
    """Return how many budgets have each verdict; those without any are left out."""
    counted = Counter(budget.verdict for budget in reading.every_budget)
    return [(verdict, counted[verdict]) for verdict in VERDICTS if counted[verdict]]


def _rooflines(reading: Reading) -> list[Markup]:
    """Draw the chart, wide and narrow; empty where the record has nothing to draw."""
    charts = [roofline_chart(reading, width, height) for width, height in (_WIDE, _NARROW)]
    return [Markup(chart) for chart in charts if chart]


# Add our pages to a site that asv has just written.

_STYLE = '<link href="our_pages.css" rel="stylesheet" type="text/css"/>\n<script src="our_pages.js"></script>'
_NAV = '<li id="nav-li-{name}" class="prism-nav"><a href="#/{name}">{title}</a></li>'


def build(site: Path, runs: Path, tell: Callable[[str], None] = print) -> None:
    """Make the site in `site` independent of any network, with our pages about the records below `runs` in it.

    Where asv's libraries cannot be fetched its page loads them from the network, and `tell` gets a message.
    """
    index = site / "index.html"
    page = _independent(site, index.read_text("utf-8"), tell)
    page = inserted(page, '    <link rel="shortcut icon"', _STYLE)
    nav = "\n".join(_NAV.format(name=name, title=title) for name, title in PAGES.items())
    page = inserted(page, '        <li id="nav-li-graphdisplay">', nav)
    with as_file(files("prism_bench.report.asv")) as here:
        for name in ("our_pages.js", "our_pages.css", "offline.js"):
            shutil.copy(here / name, site)
    machines, past = _newest_by_machine(runs), _past_of(runs)
    for name in PAGES:
        write_atomically(site / "prism_bench" / f"{name}.html", _document(name, machines, past).encode())
    write_atomically(index, page.encode())


def _independent(site: Path, page: str, tell: Callable[[str], None]) -> str:
    """Put asv's libraries next to its page; leave the page as it was where they cannot be fetched."""
    local = localised(page)
    try:
        carry_libraries(site)
    except ResultsError as error:
        tell(f"asv's page needs a network to be looked at: {error}")
        return page
    return local
