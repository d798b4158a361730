"""One self-contained HTML page for one record: opens from disk, needs no network, in light, dark and print."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from prism_bench.analysis.findings import GRAVITY
from prism_bench.analysis.reading import Reading, read
from prism_bench.catalogue import Catalogue
from prism_bench.files import write_atomically
from prism_bench.report.case_table import case_table
from prism_bench.report.headline import chips, headline, tiles
from prism_bench.report.machine import facts, machine_name
from prism_bench.report.rivals_chart import rivals_charts
from prism_bench.report.roofline_chart import plotted, roofline_chart
from prism_bench.report.verification import checks
from prism_bench.run_record import RunRecord
from prism_bench.units import rate_text, time_text

_WIDE, _NARROW = 1120, 400


def write_report(record: RunRecord, path: Path | str, catalogue: Catalogue | None = None) -> Path:
    """Write the record's page to `path`, whole or not at all, and return the path.

    With the catalogue, the budgets of its specs are judged too; whatever goes wrong leaves the old page standing.
    """
    path = Path(path)
    write_atomically(path, page(read(record, catalogue)).encode())
    return path


def page(reading: Reading) -> str:
    """The page as text."""
    record = reading.record
    return environment().get_template("record.html").render(
        record=record, reading=reading, limits=reading.limits, table=case_table(reading), headline=headline(reading),
        lede=_lede(record), chips=chips(reading), tiles=tiles(reading), facts=facts(record),
        machine_name=machine_name(record), created=_moment(record.created), findings=_by_gravity(reading),
        rooflines=[Markup(svg) for svg in _rooflines(reading)], plotted=len(plotted(reading)),
        bars=_bars(reading), checks=checks(record),
    )  # fmt: skip


def _lede(record):
    """What, where, when, how long, from which sources."""
    parts = [machine_name(record), f"{record.backend} backend", _moment(record.created)]
    parts += [_span(record.duration)] if record.duration else []
    changed = " with uncommitted changes" if record.dirty else ""
    parts.append(f"commit {record.commit[:8]}{changed}" if record.commit else "no commit")
    return parts + ([f"catalogue {record.catalogue}"] if record.catalogue != "built-in" else [])


def _rooflines(reading):
    sizes = ((_WIDE, 520), (_NARROW, 400))
    return [svg for width, height in sizes if (svg := roofline_chart(reading, width, height))]


def _bars(reading) -> Mapping[str, list[Markup]]:
    wide, narrow = rivals_charts(reading, _WIDE), rivals_charts(reading, _NARROW)
    return {label: [Markup(wide[label]), Markup(narrow[label])] for label in wide}


def _by_gravity(reading):
    return [(gravity, [f for f in reading.findings if f.gravity == gravity]) for gravity in GRAVITY]


def _moment(created):
    """`20 November 2026, 22:14 UTC`; the text itself where it is no ISO time."""
    try:
        moment = datetime.fromisoformat(created.replace("Z", "+00:00"))
    except ValueError:
        return created
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _span(seconds):
    """`2 min 23 s` for a run's duration."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else time_text(seconds)


def quantity(text: str) -> Markup:
    """A number with its unit set apart, so that numbers and units align in a column: `1.18 us` as `1.18` and `µs`."""
    text = text.replace(" us", " µs")
    found = re.fullmatch(r"(-?[\d.,]+) ?([^\d\s]\D*)", text)
    if not found:
        return Markup('<span class="q">{}</span>').format("–" if text == "-" else text)
    number, unit = found.groups()
    return Markup('<span class="q">{}<span class="u">{}</span></span>').format(number, unit)


@cache
def environment() -> Environment:
    """The templates of every page, with the filters that they use."""
    made = Environment(
        loader=PackageLoader("prism_bench.report", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters.update(
        time=lambda seconds: quantity(time_text(seconds)), rate=rate_text,
        q=quantity, micro=lambda text: text.replace(" us", " µs"),
    )  # fmt: skip
    return made
