"""Pictures of pages of the site that the documentation is built into, made while it is built: none goes stale.

Where there is no such site, no Chromium or no playwright, there are none, and pages leave them out.
"""

import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path

PICTURED = {"site-overview.png": "index", "site-compare.png": "compare"}  # the page of each picture
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_IMAGE = re.compile(r"^!\[[^\]]*\]\(\S*pictures/(site-[\w-]+\.png)\)\n?", re.MULTILINE)
_WIDTH, _HEIGHT = 1280, 860


def screenshots(site: Path) -> dict[str, bytes]:
    """Return the pictures of the site's pages as PNG, by name; empty where none can be made."""
    program = os.environ.get("PRISM_BENCH_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None or not all((site / f"{page}.html").is_file() for page in PICTURED.values()):
        return {}
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light", offline=True)
        found = {}
        for name, shown in PICTURED.items():
            page.goto((site / f"{shown}.html").resolve().as_uri())
            page.wait_for_selector("body:not([aria-busy])", state="attached")  # its data is there
            found[name] = page.screenshot()
        browser.close()
    return found


def without_missing(markdown: str, made: Collection[str]) -> str:
    """Return the page without pictures of the site that were not made."""
    return _IMAGE.sub(lambda image: image[0] if image[1] in made else "", markdown)
