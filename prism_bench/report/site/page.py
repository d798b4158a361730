"""A page: its plain values, the JSON next to it, and what it shows only on request."""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import orjson
from markupsafe import Markup

from prism_bench.extension import installed

# A page: what it shows as plain values, which are next to it as JSON, and the template that shows them.

# The pages that the navigation names, in its order, by the file they are.
MENU = {
    "index": "Overview", "catalogue": "Catalogue", "trend": "Trend", "compare": "Compare", "budgets": "Budgets",
    "roofline": "Roofline", "speedup": "Speedup", "tuning": "Tuning",
    **{page.name: page.title for extension in installed() for page in extension.pages},
    "machine": "Machine", "method": "Method",
}  # fmt: skip
KERNELS, OPERATIONS = "kernels", "operations"


@dataclass(frozen=True)
class Page:
    """The page at `name` (a path without its ending), shown by the template of that name unless another is given.

    `view` holds plain values and becomes the JSON next to the page; `shown` holds what only the template needs: charts
    and rows that carry words. `scripts` are those it loads after `tables.js`; they get `drawn` as `prism.view()`.
    `words` are what the search finds it by, next to its title. The menu leaves out an `empty` page, whose text is
    how to fill it.
    """

    name: str
    title: str
    view: Mapping[str, object]
    shown: Mapping[str, object] = field(default_factory=dict)
    template: str | None = None
    scripts: tuple[str, ...] = ()
    drawn: Mapping[str, object] | None = None
    words: str = ""
    empty: bool = False

    @property
    def root(self) -> str:
        """The way from the page to the site's first folder."""
        return "../" * self.name.count("/")

    @property
    def menu(self) -> str:
        """The page of the menu that it belongs to."""
        return "catalogue" if self.name.startswith((f"{KERNELS}/", f"{OPERATIONS}/")) else self.name


def file_name(name: str) -> str:
    """Return a name as part of a file's: itself where every file system takes it, else its letters and a digest."""
    if re.fullmatch(r"[a-z0-9_][a-z0-9_.-]{0,80}", name):
        return name
    letters = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:40]
    return f"{letters}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def kernel_page(kernel: str) -> str:
    """Return the name of a kernel's page."""
    return f"{KERNELS}/{file_name(kernel)}"


def figures(view: object) -> bytes:
    """Return the values as JSON for programs: numbers to six digits, what is unknown or empty left out of objects."""
    return plain(_concise(view))


def _concise(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {name: _concise(item) for name, item in value.items() if not _missing(item)}
    if isinstance(value, list | tuple):
        return [_concise(item) for item in value]
    return value


def _missing(value: Any) -> bool:
    if isinstance(value, list | tuple | Mapping):
        return not value
    return value is None or isinstance(value, float) and isnan(value)


def plain(view: object) -> bytes:
    """Return the values as JSON; a number that is not finite becomes null."""
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(view, default=str, option=options)


# Script files that hand values to a page: `prism.give(name, first, values);`, packed where the values are long.
#
# Rows of a table and points of a picture repeat themselves: packed, they take a fourth to a tenth. A page from disk may
# fetch nothing, so that no server packs it. `site.js` unpacks them.

_LEAST = 8_000  # bytes: what is shorter stays readable
_RAW = -15  # DEFLATE without a header, with its largest window


def giving(name: str, first: int, values: object) -> bytes:
    """Return the content of the script file that hands over these values."""
    text = plain(values).strip()
    if len(text) >= _LEAST:
        packer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
        packed = base64.b64encode(packer.compress(text) + packer.flush())
        text = b'prism.unpacked(%d, "%s")' % (len(text), packed)
    return b"prism.give(%s, %d, %s);\n" % (plain(name).strip(), first, text)


# What a page does not show at first: rows and folded details, kept in a script file and made when they are seen.
#
# A long table needs nothing: of one with `data-name` and more than `MOST` rows the page keeps the first `SHOWN`, and
# `tables.js` makes the others when they are searched, sorted or asked for. Other markup is put aside by a template:
#
#     <details><summary>Counters</summary>{% call later() %}<table>...</table>{% endcall %}</details>
#
# It is made when the details open; outside of details a script makes it, with `prism.make(element)` for what is inside
# of an element. What scripts draw from is `Page.drawn`, which they get as `prism.view()`. Both are in the page's own
# file `data/pages/NAME-DIGEST.js`, so that the page is as small as what it shows.

MOST, SHOWN = 37, 25  # rows of a table that are in its page: at most; those of a longer one
FOLDER = "data/pages"
_TABLE = re.compile(r"<table\b[^>]*\bdata-name=[^>]*>.*?</table>", re.DOTALL)
_BODY = re.compile(r"(<table\b[^>]*)(>.*?<tbody>)(.*?)(</tbody>\s*</table>)", re.DOTALL)
_PLACE = '<template data-later="{}"></template>'


@dataclass
class Later:
    """The markup that a page puts aside: `put` takes a template's, `shortened` the rows of long tables."""

    contents: list[str] = field(default_factory=list)

    def put(self, caller: Callable[[], str]) -> Markup:
        """Keep what a template's block would show, and return the place that it is made in."""
        return Markup(_PLACE).format(self._kept(caller()))

    def shortened(self, page: str) -> str:
        """Return the page with the first rows of its long tables, and keep the others."""
        return _TABLE.sub(self._shorter, page)

    def _shorter(self, table: re.Match[str]) -> str:
        parts = _BODY.fullmatch(table.group())
        if not parts:
            return table.group()
        opening, head, body, end = parts.groups()
        first, *rows = re.split(r"(?=<tr\b)", re.sub(r">\s*\n\s*<", "><", body.strip()))
        rows = [first, *rows] if first else rows
        if len(rows) <= MOST:
            return parts.group()
        kept, shown = self._kept("".join(rows[SHOWN:])), "".join(rows[:SHOWN])
        opening += f' data-rest="{kept}" data-total="{len(rows)}"'
        return f"{opening}{head}{shown}{end}"

    def _kept(self, content: str) -> int:
        self.contents.append(content)
        return len(self.contents) - 1

    def script(self, page: str, drawn: Mapping[str, object] | None) -> tuple[str, bytes] | None:
        """Return name and content of the page's script file; None where the page needs none."""
        if not self.contents and drawn is None:
            return None
        content = giving("page", 0, {"contents": self.contents, "view": drawn})
        return f"{FOLDER}/{page}-{hashlib.sha256(content).hexdigest()[:10]}.js", content
