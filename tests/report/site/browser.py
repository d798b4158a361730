"""A real browser on the site's files, without a network; whatever goes wrong in a page is kept."""

import importlib.resources
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from docs.screenshots import installed, started

SCREENSHOTS = "PRISM_BENCH_SCREENSHOTS"  # a folder to keep a picture of every page in
HERE = Path(__file__).parent
# The rules of axe-core that a page is held against: the contrasts of its texts take most of the time.
ALL_RULES = {}
COLOUR_RULES = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
ALL_BUT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}
OVERLAPS, CONTRASTS = ((HERE / name).read_text("utf-8") for name in ("overlaps.js", "contrasts.js"))


def started_or_skipped():
    """Yield the Chromium that is installed, for a fixture; without one the tests are skipped."""
    program = installed()
    if program is None:
        pytest.skip("no Chromium is installed")
    with started(program) as browser:
        yield browser


@contextmanager
def window(browser, width=1280, dark=False, **options):
    """A window without a network. Its `problems` are errors of pages and requests that are no files."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **options
    )
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.problems, page.loaded = [], []
    page.on("console", lambda said: page.problems.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("requestfailed", lambda request: page.problems.append(f"failed: {request.url}"))
    page.on("request", lambda request: page.loaded.append(request.url))
    try:
        yield page
    finally:
        context.close()


def opened(page, site: Path, name: str, state: str = ""):
    """Show the page called `name`, with what a link to it remembers, and wait until its data is there."""
    page.goto("about:blank")
    page.goto((site / f"{name}.html").as_uri() + (f"#{state}" if state else ""))
    return settled(page)


def settled(page):
    """Wait until what the page asked for is there: before it is read after a click, a choice or another address."""
    page.wait_for_selector("body:not([aria-busy])", state="attached")
    return page


def rules_of(dark):
    """All rules in the light, and in the dark, where a page has the same elements, those on colours."""
    return COLOUR_RULES if dark else ALL_RULES


def violations(page, rules=ALL_RULES):
    """What axe-core finds wrong with the page: rule, number of elements, the first one."""
    axe = importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    page.evaluate(axe)
    found = page.evaluate("(options) => axe.run(document, options)", {"resultTypes": ["violations"], **rules})
    return [(one["id"], len(one["nodes"]), one["nodes"][0]["html"][:120]) for one in found["violations"]]


def keep(page, name: str):
    """A picture of the page, where somebody wants to look at it."""
    folder = os.environ.get(SCREENSHOTS)
    if folder:
        page.screenshot(path=Path(folder) / f"{name.replace('/', '-')}.png", full_page=True)
