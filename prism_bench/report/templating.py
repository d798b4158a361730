"""Templates: one environment for every page, with the filters that turn SI values into words."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from html import escape
from math import log2
from pathlib import Path

from jinja2 import BytecodeCache, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from prism_bench.extension import installed
from prism_bench.io.files import cache_folder, write_atomically
from prism_bench.report.headline import times_text
from prism_bench.report.plain import backend_text
from prism_bench.spec.metric import STAND_INS, value_text
from prism_bench.units import (
    bytes_text,
    change_range_text,
    change_text,
    count_text,
    energy_text,
    rate_text,
    share_text,
    time_text,
)


def moment(created: str) -> str:
    """Return an ISO time as `20 November 2026, 22:14 UTC`, and any other text as it is."""
    try:
        time = datetime.fromisoformat(created.replace("Z", "+00:00"))
    except ValueError:
        return created
    time = time.astimezone(UTC) if time.tzinfo else time
    return f"{time.day} {time:%B %Y, %H:%M} UTC"


def span(seconds: float) -> str:
    """Return a run's duration as text, like `2 min 23 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else time_text(seconds)


def micro(text: str) -> str:
    """Return the text with the usual sign for a millionth."""
    return re.sub(r"(?<=\d) us\b", " µs", text)


def quantity(text: str) -> Markup:
    """Return a number and its unit apart, so that both align in a column: `1.18 us` as `1.18` and `µs`."""
    text = text.replace(" us", " µs")
    found = re.fullmatch(r"(-?[\d.,]+) ?([^\d\s]\D*)", text)
    if not found:
        return Markup(escape("–" if text == "-" else text))
    return Markup(f'<span class="q">{found[1]}<span class="u">{escape(found[2])}</span></span>')


def _verbatim(text: str) -> Markup:
    """Return text as the content of an element, without escaped quotes: a source has thousands of them."""
    return Markup(escape(text, quote=False))


def ratio_path(ratio: float) -> str:
    """Return the bar from 1 to the ratio as a path, 96 wide: logarithmic from 1/2 to 2, beyond which it ends."""
    end = 48 + 48 * max(-1.0, min(1.0, log2(ratio)))
    return f"M48 6H{end:.1f}"


class _TemplateCache(BytecodeCache):
    """Compiled templates, kept where caches are: compiling all of them takes half a second of every report.

    What cannot be read or kept is compiled again; Jinja itself asks whether the source is still the same.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, ValueError, EOFError, TypeError):
            bucket.bytecode_from_string(self._place(bucket).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            write_atomically(self._place(bucket), bucket.bytecode_to_string())

    def _place(self, bucket: Bucket) -> Path:
        return cache_folder("templates") / f"{bucket.key}.bin"


@cache
def environment() -> Environment:
    """Return the templates of every page, with the filters that they use."""
    packages = ["prism_bench.report", *(extension.package for extension in installed() if extension.has_templates)]
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_TemplateCache(),
    )
    made.globals.update(
        words=value_text,
        times=times_text,
        number_of=count_text,
        backend_words=backend_text,
        stand_ins=STAND_INS,
        time_words=time_text,
        bytes_words=bytes_text,
        energy_words=energy_text,
        error_words=lambda value: f"{value:.1e}",
    )
    made.filters.update(
        capitalized=lambda text: text[:1].upper() + text[1:],
        picked=lambda view, *names: {name: view[name] for name in names},
        dict=dict,
        time=lambda seconds: quantity(time_text(seconds)),
        rate=rate_text,
        share=share_text,
        change=change_text,
        change_to=change_range_text,
        bytes=bytes_text,
        q=quantity,
        micro=micro,
        moment=moment,
        verbatim=_verbatim,
        day=lambda created: created[:10],
        ratio_path=ratio_path,
    )
    return made
