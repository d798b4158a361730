"""asv's page without a network: its libraries next to it, its data in files that a page from disk may load.

A browser lets a page from disk load scripts, and fetch nothing. So each `X.json` gets a twin `X.json.js` that hands the
same data over, and `offline.js` turns asv's requests for the one into the other.
"""

import re
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.files import write_atomically
from prism_bench.report.asv.libraries import FOLDER

# The end of each address that asv's page names, and the file that replaces it.
STAND_INS = {
    "/jquery-3.3.1.min.js": "jquery.min.js",
    "/flot/0.8.3/jquery.flot.min.js": "jquery.flot.js",
    "/flot/0.8.3/jquery.flot.time.min.js": "jquery.flot.time.js",
    "/flot/0.8.3/jquery.flot.selection.min.js": "jquery.flot.selection.js",
    "/flot/0.8.3/jquery.flot.categories.min.js": "jquery.flot.categories.js",
    "/flot-orderbars@1.0.0/js/jquery.flot.orderBars.js": "jquery.flot.orderBars.js",
    "/stupidtable/1.0.1/stupidtable.min.js": "stupidtable.min.js",
    "/blueimp-md5/2.19.0/js/md5.min.js": "md5.min.js",
    "/bootstrap@3.1.1/dist/js/bootstrap.min.js": "bootstrap.min.js",
    "/bootstrap@3.1.1/dist/css/bootstrap.min.css": "bootstrap.min.css",
}
_KNOWN = "it knows the page of asv 0.6.5 and 0.6.6"
_REMOTE = re.compile(r'<(?:script|link)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]+)"[^>]*>')
_ONLY_REMOTE = re.compile(r'\s(?:integrity|crossorigin|referrerpolicy)="[^"]*"')
_OFFLINE = '<script src="offline.js"></script>'


def localised(page: str) -> str:
    """Return asv's page with every remote script and style replaced, and `offline.js` before asv's own scripts."""
    page = _REMOTE.sub(_stand_in, page)
    return inserted(
        page, '    <script language="javascript" type="text/javascript"\n            src="asv.js">', _OFFLINE
    )


def _stand_in(tag: re.Match[str]) -> str:
    address = tag.group(1)
    name = next((name for ending, name in STAND_INS.items() if address.endswith(ending)), None)
    if name is None:
        raise ResultsError(f"asv's page loads {address}, which this version of prism-bench does not carry; {_KNOWN}")
    return _ONLY_REMOTE.sub("", tag.group(0).replace(address, f"{FOLDER}/{name}"))


def inserted(page: str, before: str, addition: str) -> str:
    """Return the page with a new line before the one place where `before` is; a ResultsError without that place."""
    if page.count(before) != 1:
        first = before.strip().splitlines()[0]
        raise ResultsError(f"asv's page has no one place for our additions ({first!r}); {_KNOWN}")
    return page.replace(before, f"{addition}\n{before}")


def write_twins(site: Path) -> None:
    """Put a script next to every JSON file of the site; a NaN, which asv writes and JSON forbids, harms no script."""
    for path in site.rglob("*.json"):
        write_atomically(path.with_name(f"{path.name}.js"), b"prism_bench_file(" + path.read_bytes() + b");\n")
