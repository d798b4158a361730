"""Add our pages to a site that asv has just written."""

import shutil
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.report.asv.libraries import carry_libraries
from prism_bench.report.asv.local import inserted, localised
from prism_bench.report.asv.newest import newest_by_machine
from prism_bench.report.asv.pages import PAGES, document
from prism_bench.report.asv.past import past_of

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
    machines, past = newest_by_machine(runs), past_of(runs)
    for name in PAGES:
        write_atomically(site / "prism_bench" / f"{name}.html", document(name, machines, past).encode())
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
