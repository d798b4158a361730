"""Pictures of pages of the site that the documentation is built into, made while it is built: none goes stale.

Where there is no such site, no Chromium or no playwright, there are none, and pages leave them out. As a program, it
makes those of the README from the newest record of the H200: `python -m docs.screenshots [REPORTS]`.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.catalogue import discover
from prism_bench.report.site import build_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = "PRISM_BENCH_CHROMIUM"  # names the browser where it has another name
PICTURED = {"site-overview.png": "index", "site-compare.png": "compare"}  # the page of each picture
README = {"h200.png": "roofline"}  # those of the README, kept in `reports`
_REPORTS = Path(__file__).resolve().parent.parent / "reports"
_MACHINE = "nvidia-h200"
# Without the parts that only a desktop shows, a window takes a third of the processor time: that one is taken first.
_NAMES = (
    "chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
_IMAGE = re.compile(r"^!\[[^\]]*\]\(\S*pictures/(site-[\w-]+\.png)\)\n?", re.MULTILINE)
_WIDTH, _HEIGHT = 1280, 860


def installed() -> str | None:
    """Return the path of a Chromium, None where there is none."""
    return os.environ.get(CHROMIUM) or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def started(program: str) -> Iterator["Browser"]:
    """Start the Chromium at a path by playwright, which must be installed, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def screenshots(site: Path, pictured: Mapping[str, str] = PICTURED) -> dict[str, bytes]:
    """Return the pictures of the site's pages as PNG, by name; empty where none can be made."""
    program = installed()
    if program is None or find_spec("playwright") is None:
        return {}
    if not all((site / f"{page}.html").is_file() for page in pictured.values()):
        return {}
    with started(program) as browser:
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light", offline=True)
        found = {}
        for name, shown in pictured.items():
            page.goto((site / f"{shown}.html").resolve().as_uri())
            page.wait_for_selector("body:not([aria-busy])", state="attached")  # its data is there
            found[name] = page.screenshot()
    return found


def without_missing(markdown: str, made: Collection[str]) -> str:
    """Return the page without pictures of the site that were not made."""
    return _IMAGE.sub(lambda image: image[0] if image[1] in made else "", markdown)


def readme_pictures(reports: Path) -> dict[str, bytes]:
    """Return the pictures of the README, of the newest record of its machine alone; empty where none can be made."""
    newest = max((reports / "runs" / _MACHINE).glob("*.json.gz"))
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "runs" / _MACHINE
        kept.mkdir(parents=True)
        shutil.copy(newest, kept)
        build_site(kept.parent, Path(folder) / "site", discover())
        return screenshots(Path(folder) / "site", README)


if __name__ == "__main__":
    reports = Path(sys.argv[1]) if len(sys.argv) > 1 else _REPORTS
    for made, picture in readme_pictures(reports).items():
        (reports / made).write_bytes(picture)
