"""A page: what it shows as plain values, which are next to it as JSON, and the template that shows them."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import orjson

from prism_bench.extension import installed

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
    `words` are what the search finds it by, next to its title.
    """

    name: str
    title: str
    view: Mapping[str, object]
    shown: Mapping[str, object] = field(default_factory=dict)
    template: str | None = None
    scripts: tuple[str, ...] = ()
    drawn: Mapping[str, object] | None = None
    words: str = ""

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
        return {name: _concise(one) for name, one in value.items() if not _missing(one)}
    if isinstance(value, list | tuple):
        return [_concise(one) for one in value]
    return value


def _missing(value: Any) -> bool:
    if isinstance(value, list | tuple | Mapping):
        return not value
    return value is None or isinstance(value, float) and isnan(value)


def plain(view: object) -> bytes:
    """Return the values as JSON, whose numbers are finite: what is none becomes null."""
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(view, default=str, option=options)
