"""The site of one record of the whole catalogue stays light: bytes, elements, and sheets on paper."""

import gzip
import json
import re
from pathlib import Path

import pytest

from prism_bench.report.site import build_site
from prism_bench.report.site.page import MENU
from tests.built_in import CATALOGUE
from tests.report.site.browser import (
    ALL_BUT_CONTRAST,
    COLOUR_RULES,
    OVERLAPS,
    keep,
    opened,
    settled,
    violations,
    window,
)

pytestmark = pytest.mark.xdist_group("heavy site")  # one worker builds it
REPORTS = Path(__file__).resolve().parents[3] / "reports"
RECORD = max((REPORTS / "runs" / "nvidia-h200").glob("*.json.gz"))
SITE = 12_000_000  # bytes of all files
PAGE, ELEMENTS, SHEETS = 300_000, 5_000, 10
PAINT = 1_000  # milliseconds until something is seen
HEAVY = "kernels/linear_algebra_chain"  # with the most cases
KINDS = (*MENU, HEAVY, "operations/matmul")  # a page of every kind
ALL_OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
TOPS = """() => ["h1", "#verdict", "#notes"].map((one) => document.querySelector(one).getBoundingClientRect().top)"""
PAINTED = """() => new Promise((answer) => new PerformanceObserver((seen, self) => {
    self.disconnect(); answer(seen.getEntries()[0].startTime);
}).observe({type: "paint", buffered: true}))"""


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """The site about the newest stored record of an H200, and what is kept next to it."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PRISM_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield site_about(tmp_path_factory.mktemp("reports"), [RECORD])
    patch.undo()


def site_about(folder, records):
    """The site about these records of an H200, and what is kept next to them."""
    kept = folder / "runs" / RECORD.parent.name
    kept.mkdir(parents=True)
    for record in records:
        (kept / record.name).symlink_to(record)
    for name in ("profiles", "noise", "compile", "rounds", "memory", "tuning"):
        (folder / name).symlink_to(REPORTS / name)
    build_site(folder / "runs", folder / "site", CATALOGUE)
    return folder / "site"


def test_a_site_of_one_record_is_light(heavy):
    assert sum(path.stat().st_size for path in heavy.rglob("*") if path.is_file()) < SITE


def weights(site):
    """The bytes of each page of the site and of the data that it loads, by its name."""
    pages = {path.relative_to(site).as_posix(): path for path in site.rglob("*.html")}
    return {name: sum(one.stat().st_size for one in (path, *loaded(path))) for name, path in pages.items()}


def loaded(path):
    """The script files with data that the page loads."""
    scripts = re.findall(r'<script src="([^"]*data/[^"]+)"', path.read_text("utf-8"))
    return [(path.parent / script).resolve() for script in scripts]


def test_no_page_is_heavier_than_what_it_shows(heavy):
    assert loaded(heavy / "roofline.html"), "its points are loaded"
    assert {} == {name: size for name, size in weights(heavy).items() if size > PAGE}


def moved(day, folder):
    """Write a copy of the newest record as one of that day of November and of another commit; return its path."""
    text = gzip.decompress(RECORD.read_bytes()).decode()
    record = json.loads(text)
    commit = f"{day}{record['commit'][2:]}"
    text = text.replace(record["created"][:10], f"2026-11-{day}").replace(record["commit"], commit)
    path = folder / f"202611{day}{RECORD.name[8:16]}-{commit[:8]}.json.gz"
    path.write_bytes(gzip.compress(text.encode(), 1))
    return path


@pytest.mark.thorough  # five records take a minute to be read
def test_pages_of_several_records_are_no_heavier(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    records = [*RECORD.parent.glob("*.json.gz"), moved(25, tmp_path), moved(26, tmp_path)]
    assert len(records) >= 5
    site = site_about(tmp_path / "reports", records)
    assert {} == {name: size for name, size in weights(site).items() if size > PAGE}
    pills_open_little(browser, site)


def test_a_pill_opens_its_notes_and_no_more(browser, heavy):
    pills_open_little(browser, heavy)


def pills_open_little(browser, site):
    """Each pill leads to the first of its rows; the page stays small, and on paper begins with its summary."""
    with window(browser) as page:
        opened(page, site, "index")
        links = page.locator(".chips a")
        assert links.count() > 3
        for link in links.all():
            link.click()
            page.locator(page.evaluate("location.hash")).wait_for(state="visible")
            settled(page)
        assert ELEMENTS >= page.evaluate("document.querySelectorAll('*').length")
        assert SHEETS >= len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))
        page.emulate_media(media="print")
        assert sorted(tops := page.evaluate(TOPS)) == tops
        assert [] == page.problems


def test_elements_are_made_when_they_are_seen(browser, heavy):
    with window(browser) as page:
        found = {}
        for name in KINDS:
            opened(page, heavy, name)
            found[name] = page.evaluate("document.querySelectorAll('*').length")
        assert {} == {name: count for name, count in found.items() if count > ELEMENTS}
        assert [] == page.problems


@pytest.mark.thorough  # a time: a machine that tests something next to it may be slower
def test_something_is_seen_within_a_second(browser, heavy):
    """The faster of two loads."""
    found = {}
    with window(browser) as page:
        for name in KINDS:
            found[name] = min(page.evaluate(PAINTED) for _ in range(2) if opened(page, heavy, name))
    assert {} == {name: taken for name, taken in found.items() if taken > PAINT}


def found_by_axe(browser, site, dark, rules, width=1280):
    """What axe finds on a page of every kind with its details open, by its name."""
    pytest.importorskip("axe_playwright_python", reason="it brings axe-core")
    found = {}
    with window(browser, width, dark=dark, bypass_csp=True) as page:
        for name in KINDS:
            opened(page, site, name).evaluate(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
            )
            found[name] = violations(settled(page), rules)
    return {name: one for name, one in found.items() if one}


@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_nothing_on_a_full_page(browser, heavy, width):
    """The colours are those of the pages in `test_axe`."""
    assert {} == found_by_axe(browser, heavy, dark=False, rules=ALL_BUT_CONTRAST, width=width)


@pytest.mark.thorough
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_faint_text_on_a_full_page(browser, heavy, dark):
    assert {} == found_by_axe(browser, heavy, dark, COLOUR_RULES)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1440])
def test_full_pages_fit_their_width(browser, heavy, width, dark):
    with window(browser, width, dark) as page:
        for name in KINDS:
            opened(page, heavy, name)
            keep(page, f"full-{name}-{width}-{'dark' if dark else 'light'}")
            assert [] == page.evaluate(OVERLAPS), f"{name}: text on text"
            assert width >= page.evaluate("document.documentElement.scrollWidth"), f"{name}: too wide"
        assert [] == page.problems


def test_pages_are_printed_on_few_sheets(browser, heavy):
    with window(browser) as page:
        for name in KINDS:
            opened(page, heavy, name)
            sheets = len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))
            assert 1 <= sheets <= SHEETS, name


def test_more_rows_are_shown_searched_and_taken_away(browser, heavy):
    with window(browser) as page:
        opened(page, heavy, "catalogue")
        rows = page.locator("#catalogue tbody tr")
        total = int(page.locator("#catalogue").get_attribute("data-total"))
        assert (25, f"{total} rows") == (rows.count(), page.locator("main output").inner_text())
        page.locator("section .more button, main .more button").first.click()
        assert 50 == rows.count()
        page.get_by_label("Search").fill("pixel_tda")
        assert {"pixel_tda"} == {text.split()[0].split(":")[0] for text in rows.locator("th").all_inner_texts()}
        page.get_by_label("Search").fill("")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="take catalogue as CSV").click()
        assert total + 1 == len(waiting.value.path().read_text().splitlines())
