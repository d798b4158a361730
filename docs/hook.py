"""Hooks of MkDocs: add the generated pages, the pictures of reports, and what lets the search work from disk."""

import json
import re
import sys
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))  # for `lab`

from docs.generated import navigation, pages  # noqa: E402
from docs.generated.catalogue import TIMELINES  # noqa: E402
from docs.screenshots import screenshots, without_missing  # noqa: E402
from prism_bench.report.site.build import FILE as SITE_INDEX  # noqa: E402

_FAR, _NEAR = "https://unpkg.com/iframe-worker/shim", "assets/worker.js"
_REPORTS = Path(__file__).resolve().parent.parent / "reports"
_NAMELESS, _NAMED = (
    'data-md-component="search" role="dialog"',
    'data-md-component="search" role="dialog" aria-label="Search"',
)
PICTURES = ("asv-pages.png", "fusion.png", "monitor.svg")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Append the generated pages to the menu."""
    config.nav = [*(config.nav or []), *navigation()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the pictures that pages show."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for path in (*(_REPORTS / name for name in PICTURES), *TIMELINES.glob("*.png")):
        files.append(File.generated(config, f"pictures/{path.name}", abs_src_path=str(path)))
    for name, picture in screenshots(Path(config.site_dir).parent).items():
        files.append(File.generated(config, f"pictures/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out pictures of the site where none could be made."""
    return without_missing(markdown, {Path(file.src_uri).name for file in files if "pictures/" in file.src_uri})


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load the script of the search from the site, which the theme would fetch from a network, and name its dialog.

    Sections of a docstring become headings of the level below its own, and empty heads of tables plain cells.
    """
    output = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", output)
    output = re.sub(r"(?<=<)(/?)h5\b", r"\1h4", output.replace(_NAMELESS, _NAMED))
    return output.replace(_FAR, "../" * page.url.count("/") + _NEAR)


def on_post_build(config: MkDocsConfig) -> None:
    """Add the pages of the site that the documentation is built into to its search.

    The search has written its index by now; the plugin `offline` makes a script of it afterwards.
    """
    site = Path(config.site_dir).parent / SITE_INDEX
    index = Path(config.site_dir) / "search" / "search_index.json"
    if not (site.is_file() and index.is_file()):
        return
    entries = json.loads(site.read_text("utf-8").partition(", 0, ")[2].removesuffix(");\n"))
    plain = json.loads(index.read_text("utf-8"))
    found = [{"location": f"../{link}", "title": title, "text": escape(words)} for title, words, link in entries]
    plain["docs"] += found
    index.write_text(json.dumps(plain), "utf-8")


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Load the script of the search from the site on the page for missing pages."""
    return output_content.replace(_FAR, _NEAR).replace(_NAMELESS, _NAMED)
