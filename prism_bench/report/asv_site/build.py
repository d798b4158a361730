"""Add our pages to a site that asv has just written."""

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from prism_bench.files import write_atomically
from prism_bench.report.asv_site.local import carry_libraries, inserted, localised
from prism_bench.report.asv_site.newest import newest_by_machine
from prism_bench.report.asv_site.pages import PAGES, document
from prism_bench.report.asv_site.past import past_of

_STYLE = '<link href="our_pages.css" rel="stylesheet" type="text/css"/>\n<script src="our_pages.js"></script>'
_NAV = '<li id="nav-li-{name}" class="prism-nav"><a href="#/{name}">{title}</a></li>'


def build(site: Path, runs: Path) -> None:
    """Make the site in `site` independent of any network, with our pages about the records below `runs` in it."""
    index = site / "index.html"
    page = localised(index.read_text("utf-8"))
    page = inserted(page, '    <link rel="shortcut icon"', _STYLE)
    nav = "\n".join(_NAV.format(name=name, title=title) for name, title in PAGES.items())
    page = inserted(page, '        <li id="nav-li-graphdisplay">', nav)
    carry_libraries(site)
    with as_file(files(__package__)) as here:
        for name in ("our_pages.js", "our_pages.css"):
            shutil.copy(here / name, site)
    machines, past = newest_by_machine(runs), past_of(runs)
    for name in PAGES:
        write_atomically(site / "prism_bench" / f"{name}.html", document(name, machines, past).encode())
    write_atomically(index, page.encode())
