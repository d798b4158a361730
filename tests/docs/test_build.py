"""The documentation is built without a network, and no link in it is dead."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from docs.screenshots import PICTURED, README, installed, screenshots, without_missing
from prism_bench.record import store
from prism_bench.report.site.build import FILE as SITE_INDEX
from prism_bench.report.site.build import search_file
from prism_bench.report.site.page import Page as SitePage
from tests.docs.blocks import ROOT
from tests.report.site.browser import (
    ALL_BUT_CONTRAST,
    ALL_RULES,
    opened,
    rules_of,
    started_or_skipped,
    violations,
    window,
)
from tests.report.site.pages import nights, site_of
from tests.report.synthetic import case_result, gpu_record, record_of

pytest.importorskip("mkdocs", reason="needs the extra 'docs'")

pytestmark = pytest.mark.xdist_group("docs")  # one worker builds them
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRISM_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = site_of(tmp_path_factory.mktemp("reports"), *nights(gpu_record(), 2)) / "docs"
    (folder.parent / SITE_INDEX).write_bytes(
        search_file([SitePage("kernels/sum", "sum of numbers", {}, words="a < b")])
    )
    words = ["-m", "mkdocs", "--quiet", "build", "--config-file", "docs/mkdocs.yml", "--site-dir", str(folder)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    return {path: Page(path) for path in folder.rglob("*.html")}


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("axe_playwright_python", reason="it brings axe-core")
    yield from started_or_skipped()


def found_by_axe(site, browser, wanted, dark=False, rules=ALL_RULES):
    """The violations of the pages that are wanted; 404.html is made for a server's root and has no styles from disk."""
    folder = next(path for path in site if path.name == "tutorial.html").parent
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in site if path.name != "404.html")
    with window(browser, dark=dark) as page:
        found = {}
        for name in filter(wanted, names):
            opened(page, folder, name)
            page.wait_for_selector(".md-search")
            found[name] = violations(page, rules)
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_on_any_kind_of_page(site, browser, dark):
    found = found_by_axe(site, browser, KINDS.__contains__, dark, rules_of(dark))
    assert dict.fromkeys(sorted(KINDS), []) == found


def test_axe_finds_nothing_on_a_written_page(site, browser):

    def written(name):
        return not name.startswith("reference/") and name not in KINDS

    found = found_by_axe(site, browser, written, rules=ALL_BUT_CONTRAST)
    assert len(found) > 20
    assert {} == {name: one for name, one in found.items() if one}


@pytest.mark.thorough
def test_axe_finds_nothing_on_a_generated_page(site, browser):
    found = found_by_axe(
        site, browser, lambda name: name.startswith("reference/") and name not in KINDS, rules=ALL_BUT_CONTRAST
    )
    assert len(found) > 15
    assert {} == {name: one for name, one in found.items() if one}


def test_pictures_of_the_site_are_made_with_the_pages(site):
    if installed() is None:
        pytest.skip("no Chromium is installed")
    pytest.importorskip("playwright")
    folder = next(path for path in site if path.name == "tutorial.html").parent
    for name in PICTURED:
        assert b"\x89PNG" == (folder / "pictures" / name).read_bytes()[:4]
        assert any(link.endswith(f"pictures/{name}") for page in site.values() for link in page.loaded), name


def test_the_readme_shows_the_newest_record(tmp_path, monkeypatch):
    if installed() is None:
        pytest.skip("no Chromium is installed")
    pytest.importorskip("playwright")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    record = record_of(case_result("softmax", flops=10**9, times={"cold_time": 1e-5}))
    store.save(record, tmp_path / "runs" / "nvidia-h200" / "20261120T221405Z-00000000.json.gz")
    subprocess.run([sys.executable, "-m", "docs.screenshots", str(tmp_path)], cwd=ROOT, check=True, timeout=300)
    for name in README:
        picture = (tmp_path / name).read_bytes()
        assert b"\x89PNG" == picture[:4]
        assert f"reports/{name}" in (ROOT / "README.md").read_text()
        size = (ROOT / "reports" / name).read_bytes()[16:24]
        assert size == picture[16:24], f"{name} is not made by `python -m docs.screenshots`"


def test_a_picture_that_was_not_made_is_left_out(tmp_path):
    page = "before\n\n![It](../pictures/site-overview.png)\n\n![Other](../pictures/fusion.png)\n"
    assert {} == screenshots(tmp_path), "there is no site"
    assert "before\n\n\n![Other](../pictures/fusion.png)\n" == without_missing(page, ())
    assert page == without_missing(page, {"site-overview.png"})


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
