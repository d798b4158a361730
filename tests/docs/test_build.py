"""The documentation is built without a network, and no link in it is dead."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from prism_bench.report.site.page import Page as SitePage
from prism_bench.report.site.search import FILE as SITE_INDEX
from prism_bench.report.site.search import search_file
from tests.docs.blocks import ROOT
from tests.report.site.browser import installed, opened, violations, window

pytest.importorskip("mkdocs", reason="needs the extra 'docs'")

KINDS = ("index", "tutorial", "reference/python", "reference/catalogue/basic")


class Page(HTMLParser):
    """The links of a page, and the places in it that links lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("script", "img", "link") and attrs.get("rel") != "canonical":
            self.loaded += [attrs[key] for key in ("src", "href") if attrs.get(key)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages by their files."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    (folder.parent / "data").mkdir()
    (folder.parent / SITE_INDEX).write_bytes(
        search_file([SitePage("kernels/sum", "sum of numbers", {}, words="a < b")])
    )
    words = ["-m", "mkdocs", "--quiet", "build", "--config-file", "docs/mkdocs.yml", "--site-dir", str(folder)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    return {path: Page(path) for path in folder.rglob("*.html")}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(site, dark):
    pytest.importorskip("axe_playwright_python", reason="it brings axe-core")
    program = installed()
    if program is None:
        pytest.skip("no Chromium is installed")
    from playwright.sync_api import sync_playwright

    folder = next(path for path in site if path.name == "tutorial.html").parent
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with window(browser, dark=dark) as page:
            for name in KINDS:
                opened(page, folder, name)
                page.wait_for_selector(".md-search")
                assert [] == violations(page), name
        browser.close()


def test_no_link_is_dead(site):
    dead = []
    for path, page in site.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or path.name == "404.html":
                continue
            place = unquote(parts.fragment)
            if not target.exists() or (place and place not in ("__skip",) and place not in site[target].places):
                dead.append(f"{path.name}: {link}")
    assert [] == dead


def test_the_search_finds_pages_of_the_site_around_it(site):
    folder = next(path for path in site if path.name == "tutorial.html").parent
    index = json.loads((folder / "search" / "search_index.js").read_text().removeprefix("var __index = "))["docs"]
    assert {"location": "../kernels/sum.html", "title": "sum of numbers", "text": "a &lt; b"} == index[-1]


def test_nothing_is_loaded_from_a_network(site):
    far = {link for page in site.values() for link in page.loaded if re.match(r"(https?:)?//", link)}
    assert set() == far


def test_the_pages_that_the_program_writes_are_there(site):
    names = {path.name for path in site}
    assert {"tutorial.html", "commands.html", "troubleshooting.html", "python.html", "names.html"} <= names
