"""What the search of a site finds: its own pages, as a script file that a page loads when somebody searches.

Where the documentation is next to the site, the page loads its index as well; `docs/hook.py` adds this one to it.
"""

from collections.abc import Iterable

from prism_bench.io.documents import json_text
from prism_bench.report.site.page import Page

FILE = "data/search.js"


def search_file(pages: Iterable[Page]) -> bytes:
    """Return the pages as a script: `[[title, words, link], ...]`; links are from the folder of the machine's pages."""
    entries = [[page.title, page.words, f"{page.name}.html"] for page in pages]
    return f'prism.give("search", 0, {json_text(entries)});\n'.encode()
