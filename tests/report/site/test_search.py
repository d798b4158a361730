"""The search of a site, which finds its pages and those of the documentation next to it; links to the documentation."""

import json
import re

import pytest

from prism_bench.report.site.build import GUIDES
from tests.docs.blocks import ROOT
from tests.report.site.browser import opened, settled, window
from tests.report.site.pages import read, site_of
from tests.report.synthetic import case_result, record_of

SECTION = {"location": "guides/x.html#y", "title": "Clocks &amp; <em>power</em>", "text": "<p>Held down while hot.</p>"}


@pytest.fixture(scope="module")
def documented(tmp_path_factory):
    """A site whose folder has a documentation of one section, next to an entry of the site itself."""
    folder = tmp_path_factory.mktemp("reports")
    patch = pytest.MonkeyPatch()
    patch.setenv("PRISM_BENCH_CACHE", str(folder / "cache"))
    docs = folder / "site" / "docs"
    (docs / "search").mkdir(parents=True)
    (docs / "index.html").write_text("the documentation")
    index = {"docs": [SECTION, {"location": "../kernels/sum.html", "title": "sum", "text": ""}]}
    (docs / "search" / "search_index.js").write_text(f"var __index = {json.dumps(index)}")
    yield site_of(folder, record_of(*(case_result(name, times={"cold_time": 1e-5}) for name in ("sum", "sum_rows"))))
    patch.undo()


def test_pages_of_the_site_and_of_the_documentation_are_found(browser, documented):
    with window(browser) as page:
        opened(page, documented, "kernels/sum_rows")
        find, results = page.get_by_label("Find"), page.locator(".search li")
        find.fill("power clocks")
        settled(page)
        assert ["documentation: Held down while hot."] == results.locator("small").all_inner_texts()
        link = results.locator("a")
        assert ("Clocks & power", "../docs/guides/x.html#y") == (link.inner_text(), link.get_attribute("href"))
        find.fill("sum")
        settled(page)
        assert ["sum", "sum_rows"] == results.locator("a").all_inner_texts(), "the documentation's own entry is not"
        find.press("Enter")
        page.wait_for_url("**/kernels/sum.html")
        assert [] == page.problems


def test_a_page_links_to_how_its_content_was_measured(documented, tmp_path):
    for name in ("index", "kernels/sum", "fusion"):
        assert f"docs/{GUIDES[name.split('/')[0]]}" in " ".join(read(documented, name).linked), name
    alone = site_of(tmp_path, record_of(case_result("sum", times={"cold_time": 1e-5})))
    assert "../method.html" in read(alone, "kernels/sum").linked
    assert not any("docs/" in link for link in read(alone, "kernels/sum").linked)


@pytest.mark.parametrize("guide", sorted(set(GUIDES.values())))
def test_guides_are_places_of_the_documentation(guide):
    path, _, place = guide.partition("#")
    text = (ROOT / "docs" / "pages" / path).with_suffix(".md").read_text("utf-8")
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    assert not place or place in {re.sub(r"[^a-z0-9]+", "-", one.lower()).strip("-") for one in headings}
