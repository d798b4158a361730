"""The site in a real browser, opened from disk with the network off."""

import re
from dataclasses import replace
from urllib.parse import unquote, urlparse

import pytest

from prism_bench.report.site.page import MENU
from tests.report.site.browser import CONTRASTS, OVERLAPS, keep, opened, settled, window
from tests.report.site.pages import nights, site_of
from tests.report.synthetic import case_result, gpu_record, record_of

PAGES = (*MENU, "kernels/softmax", "kernels/null")
LIMIT = 500_000  # bytes of the first page with all that it loads


@pytest.mark.parametrize(
    ("look", "width", "dark"), [("wide", 1280, False), ("narrow", 390, False), ("dark", 1280, True)]
)
def test_every_page_stands_without_errors_overlaps_or_a_network(browser, site, look, width, dark):
    with window(browser, width, dark) as page:
        for name in PAGES:
            opened(page, site, name)
            keep(page, f"{name}-{look}")
            assert [] == page.evaluate(OVERLAPS), f"{name}, {look}: text on text"
            assert width >= page.evaluate("document.documentElement.scrollWidth"), f"{name}, {look}: too wide"
        assert [] == page.problems
        assert {"file", "data", "about"} >= {urlparse(url).scheme for url in page.loaded}


def test_the_first_page_is_light(page, site):
    opened(page, site, "index")
    files = {unquote(urlparse(url).path) for url in page.loaded if url.startswith("file:")}
    assert 3 < len(files)
    assert LIMIT > sum(site.joinpath(path).stat().st_size for path in files)


def rows(page, table="catalogue"):
    return page.locator(f"#{table} tbody tr:visible th").all_inner_texts()


def test_the_catalogue_is_searched_filtered_and_sorted_and_the_link_remembers(page, site):
    opened(page, site, "catalogue")
    every = rows(page)
    page.get_by_label("Search").fill("soft")
    assert ["softmax"] == [row.split()[0] for row in rows(page)]
    assert f"1 of {len(every)} rows" == page.locator("main output").inner_text()
    page.get_by_label("Search").fill("no such kernel")
    page.get_by_role("button", name="Show all").click()
    assert every == rows(page)
    page.get_by_label("Family").select_option("tensor")
    page.get_by_role("button", name="S1").click()
    page.get_by_role("button", name="S1").click()
    chosen, link = rows(page), page.url
    assert 1 < len(chosen) < len(every)
    times = [float(cell) for cell in page.locator("#catalogue tbody tr:visible td[data-title=S1]").evaluate_all(
        "cells => cells.map((cell) => cell.dataset.sort).filter(Boolean)")]  # fmt: skip
    assert sorted(times, reverse=True) == times
    page.goto("about:blank")
    page.goto(link)
    settled(page)
    assert chosen == rows(page)
    assert "tensor" == page.get_by_label("Family").input_value()


def test_the_keyboard_is_enough(page, site):
    opened(page, site, "catalogue")
    page.keyboard.press("Tab")
    assert "Skip to the content" == page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "q" == page.evaluate("document.activeElement.name")
    page.get_by_role("button", name="S0").focus()
    page.keyboard.press("Enter")
    assert "ascending" == page.locator("#catalogue th[data-key=S0]").get_attribute("aria-sort")


def test_everything_has_a_name_to_be_read_aloud(page, site):
    for name in PAGES:
        opened(page, site, name)
        unnamed = page.locator("svg.chart:not([aria-label]), img:not([alt]), html:not([lang]), button:empty")
        assert 0 == unnamed.count(), name
        controls = page.locator("input, select").evaluate_all("all => all.filter((one) => !one.labels.length).length")
        assert 0 == controls, name
        assert 0 == page.locator("thead th:not([scope])").count(), name


@pytest.mark.parametrize("dark", [False, True])
def test_inks_stand_out_from_the_paper(browser, site, dark):
    with window(browser, dark=dark) as page:
        opened(page, site, "index")
        inks = ["ink", "muted", "accent", "good", "bad", "warm"]
        found = dict(zip(inks, page.evaluate(CONTRASTS, inks), strict=True))
        assert all(ratio >= 4.5 for ratio in found.values()), found


def test_light_and_dark_can_be_chosen_and_are_remembered(page, site):
    opened(page, site, "index")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Switch between light and dark").click()
    dark = page.evaluate(paper)
    assert light != dark
    opened(page, site, "budgets")
    assert dark == page.evaluate(paper)


def test_a_kernel_shows_the_case_that_is_chosen(page, site):
    opened(page, site, "kernels/softmax")
    assert 1 == page.locator("article.case:visible").count()
    assert 14 == page.locator("figure[data-plot=trend] path.runs").first.get_attribute("d").count("h0")
    assert "+20" in page.locator("figure[data-plot=trend] svg").text_content()
    before = page.locator("article.case:visible h2").inner_text()
    page.locator("select[name=case]").select_option(index=0)
    assert before != page.locator("article.case:visible h2").inner_text()
    assert "case=" in page.url
    page.get_by_label("Metric").select_option("launch_time")
    link = page.url
    opened(page, site, "index")
    page.goto(link)
    settled(page)
    assert "launch_time" == page.get_by_label("Metric").input_value()
    assert "launch time" in page.locator("figure[data-plot=trend] svg").get_attribute("aria-label")


def test_following_a_finding_ends_at_its_case(page, site):
    opened(page, site, "index")
    page.locator("#attention .words a", has_text="softmax").first.click()
    page.wait_for_url("**/kernels/softmax.html*")
    settled(page)
    assert "softmax" == page.locator("h1").inner_text()
    assert [] == page.problems


def taken(page, button):
    with page.expect_download() as waiting:
        button.click()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def test_tables_and_pictures_can_be_taken_away(page, site):
    opened(page, site, "catalogue")
    page.get_by_label("Search").fill("softmax")
    name, data = taken(page, page.get_by_role("button", name="take catalogue as CSV"))
    head, row = data.decode().splitlines()
    assert "catalogue.csv" == name
    assert ["Kernel", "S0", "S1", "S2"] == head.split(",")[:4]
    assert row.startswith("softmax") and 1e-6 < float(row.split(",")[1]) < 1e-3

    opened(page, site, "kernels/softmax")
    name, data = taken(page, page.get_by_role("button", name="take softmax-trend as SVG"))
    assert "softmax-trend.svg" == name
    assert b"var(--" not in data and re.match(rb"<svg[^>]*width", data)
    name, data = taken(page, page.get_by_role("button", name="take softmax-trend as PNG"))
    assert ("softmax-trend.png", b"\x89PNG") == (name, data[:4])


def test_the_header_is_one_line_in_a_narrow_window_and_its_button_opens_the_menu(browser, site):
    with window(browser, 400) as page:
        opened(page, site, "kernels/softmax")
        assert 70 > page.locator("header.top .brand").bounding_box()["height"]
        assert page.locator("header.top nav").is_hidden()
        menu = page.get_by_role("button", name="Menu", exact=True)
        menu.focus()
        page.keyboard.press("Enter")
        assert ("true", True) == (menu.get_attribute("aria-expanded"), page.locator("header.top nav").is_visible())
        page.get_by_role("link", name="Machine", exact=True).click()
        assert "nvidia-h200" in page.locator("h1").inner_text().lower().replace(" ", "-")


def test_a_command_is_a_button_that_copies_it_and_is_read_aloud(browser, site):
    with window(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        opened(page, site, "index")
        command = page.locator("#attention code.command").first
        assert command.is_hidden()
        copy = page.get_by_role("button", name=f"copy the command {command.text_content()}", exact=True).first
        copy.focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="copied", exact=True).wait_for()
        assert command.text_content() == page.evaluate("navigator.clipboard.readText()")
        page.emulate_media(media="print")
        assert command.is_visible() and not page.locator("#attention .copy").first.is_visible()
    with window(browser, java_script_enabled=False) as page:
        page.goto((site / "index.html").as_uri())
        assert page.locator("#attention code.command").first.is_visible()


def test_on_paper_there_is_no_menu(page, site):
    opened(page, site, "index")
    page.emulate_media(media="print")
    assert not page.locator("nav.menu").is_visible()
    assert page.locator("h1").is_visible()


def test_a_scripts_absence_leaves_the_tables(browser, site):
    with window(browser, java_script_enabled=False) as page:
        opened(page, site, "catalogue")
        assert "softmax" in " ".join(page.locator("#catalogue tbody th").all_inner_texts())
        page.goto((site / "kernels/softmax.html").as_uri())
        assert 1 == page.locator("article.case:visible").count()
        assert "the JSON of this page has all figures" in page.locator("main > noscript").inner_text()


def pair_rows(page, column):
    cells = page.locator(f"#pair-cases tbody tr:visible [data-title='{column}']")
    return cells.evaluate_all("cells => cells.map((cell) => cell.childNodes[0].textContent)")


def test_any_two_records_are_compared_and_the_link_remembers(page, site):
    opened(page, site, "compare")
    options = page.locator("select[name=a]").locator("option").all_inner_texts()
    assert (14, "2026-10-14") == (len(options), options[0][:10])
    page.locator("select[name=a]").select_option(index=10)
    page.locator("select[name=b]").select_option(index=1)
    settled(page)
    assert (
        page.locator("#pair h3")
        .inner_text()
        .startswith("2026-10-13 22:14 00000000 (B) against 2026-10-04 22:14 00000000 (A)")
    )
    assert "2 slower" in page.locator("#pair .chips").inner_text()
    page.locator("#pair").get_by_label("Search").fill("softmax")
    page.locator("#pair").get_by_label("Verdict").select_option("slower")
    page.locator("#pair").get_by_role("button", name="Change").click()
    assert ["slower"] * 2 == pair_rows(page, "Verdict")
    link, changes = page.url, pair_rows(page, "Change")
    assert sorted(changes, key=lambda text: float(text.removesuffix(" %")), reverse=True) == changes
    page.get_by_role("button", name="Swap A and B").click()
    settled(page)
    assert [] == pair_rows(page, "Verdict")
    opened(page, site, "index")
    page.goto(link)
    settled(page)
    assert (changes, ["slower"] * 2) == (pair_rows(page, "Change"), pair_rows(page, "Verdict"))
    assert [] == page.problems


def test_the_choice_starts_with_the_fixed_comparison_and_says_the_same(page, site):
    def rows(table):
        shown = page.locator(f"#{table} tbody tr")
        shown.locator("td:nth-child(-n+4) small").evaluate_all("all => all.forEach((one) => one.remove())")
        return sorted(" ".join(text.split()).replace("-13 22:14 ", "-13 ") for text in shown.all_inner_texts())

    opened(page, site, "compare")
    assert not page.locator("#pair-cases").is_visible(), "the same pair is below"
    page.locator("#pair summary").click()
    assert "2026-10-13" in page.locator("#against-1 h2").inner_text()
    assert [row.replace("this night", "2026-10-14 22:14 00000000") for row in rows("cases-1")] == rows("pair-cases")


def test_two_machines_stand_beside_each_other_without_a_verdict(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    record = gpu_record()
    another = replace(record, machine={**record.machine, "id": "other-h200"}, created="2026-11-01T00:00:00")
    site = site_of(tmp_path, another, *nights(record, 2), replace(record, created="2026-12-01T00:00:00"))
    opened(page, site, "compare", state="a=other-h200 cuda 2026-11-01T00:00:00 7471611d")
    assert "Two different machines" in page.locator("#pair .banner").inner_text()
    assert 25 == len(pair_rows(page, "Verdict"))
    page.locator("#pair .more button").click()
    assert {"no verdict", "not compared"} == set(pair_rows(page, "Verdict"))
    assert {"–"} == set(pair_rows(page, "Noise floor"))
    groups = "groups => groups.map((group) => group.label)"
    assert ["nvidia-h200, cuda", "other-h200, cuda"] == page.locator("select[name=a] optgroup").evaluate_all(groups)
    assert "other-h200" in page.locator("#pair h3").inner_text()
    assert [] == page.problems


def test_the_choice_of_one_record_is_explained(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    opened(page, site_of(tmp_path, gpu_record()), "compare")
    assert "There is no earlier record" in page.locator("#pair .missing").first.inner_text()
    assert not page.locator("#pair form.chooser").is_visible()


def test_two_records_are_chosen_by_keyboard(page, site):
    opened(page, site, "compare")
    before = page.locator("#pair h3").inner_text()
    page.locator("select[name=a]").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("before => document.querySelector('#pair h3').innerText !== before", arg=before)
    assert "2026-10-12" in page.locator("#pair h3").inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert "swap" == page.evaluate("document.activeElement.name")


def test_a_comparison_on_paper_names_the_two(page, site):
    opened(page, site, "compare")
    page.locator("select[name=a]").select_option(index=3)
    settled(page)
    page.emulate_media(media="print")
    assert not page.locator("#pair form.chooser").is_visible()
    assert page.locator("#pair h3").is_visible() and page.locator("#pair-cases").is_visible()


def test_the_same_record_twice_is_told(page, site):
    opened(page, site, "compare")
    page.locator("select[name=a]").select_option(index=0)
    settled(page)
    assert "the same record twice" in page.locator("#pair .gap-words").inner_text()
    assert not page.locator("#pair-cases").is_visible()


def test_without_a_script_the_fixed_comparisons_stand_and_the_gap_is_explained(browser, site):
    with window(browser, java_script_enabled=False) as page:
        page.goto((site / "compare.html").as_uri())
        assert "Choosing needs JavaScript" in page.locator("#pair .missing").first.inner_text()
        assert page.locator("#cases-1").is_visible() and not page.locator("#pair-cases").is_visible()


def test_the_size_of_code_is_drawn_with_a_level_for_every_value(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    sizes = (74624, 74624, 74640, 74640, 74624)
    records = [
        record_of(
            case_result("k", times={"cold_time": 1e-5}, code={"sass": str(size), "code_bytes": size}),
            created=f"2026-01-{day:02d}T03:00:00",
        )
        for day, size in enumerate(sizes, 1)
    ]
    opened(page, site_of(tmp_path, *records), "kernels/k", "metric=code_bytes")
    page.wait_for_selector("figure[data-plot=trend] svg .level", state="attached")
    assert ["cold time", "code bytes"] == page.get_by_label("Metric").locator("option").all_inner_texts()
    figure = page.locator("figure[data-plot=trend]")
    assert 3 == figure.locator("svg .level").count()
    assert "exact: one value per run, and every change is a step" in figure.inner_text()
    assert "74,640 B" in figure.inner_text()
    assert "A run has one value of code bytes" in page.locator("figure[data-plot=strips]").inner_text()
    assert [] == page.problems
