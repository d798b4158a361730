"""The roofline and the catalogue: the worst first, roofs that were measured alone, trend lines of one GPU."""

import json
from dataclasses import replace

import pytest

from prism_bench.report.site.cases import sparkline
from tests.report.site.browser import opened, window
from tests.report.site.pages import nights, read, site_of
from tests.report.site.test_verdict import merged
from tests.report.site.unpacked import given_values
from tests.report.synthetic import case_result, record_of


def shares(site):
    return [one.get("bound_share") for one in json.loads((site / "roofline.json").read_text())["cases"]]


def test_the_farthest_from_its_limit_is_first(site):
    found = [share for share in shares(site) if share is not None]
    assert len(found) > 5 and sorted(found) == found


def test_what_has_no_roof_is_named(site):
    text = read(site, "roofline").text
    assert "This run measured no ceiling of tensor cores (3 cases) and of FP64" in text


def test_the_catalogue_begins_with_what_went_wrong_and_ends_with_the_unmeasured(site):
    rows = json.loads((site / "catalogue.json").read_text())["kernels"]
    wrong = [row["state"] not in ("measured", "older", "round", "unmeasured") for row in rows]
    assert any(wrong) and sorted(wrong, reverse=True) == wrong
    well = [
        row["limit"]["share"]
        for row in rows
        if row["state"] == "measured" and row["budget"] != "missed" and "limit" in row
    ]
    assert sorted(well) == well


def test_a_trend_line_has_its_scale(site):
    assert "lowest to its highest time" in read(site, "catalogue").text
    row = next(
        one for one in json.loads((site / "catalogue.json").read_text())["kernels"] if one["kernel"] == "softmax"
    )
    assert 0 < row["trend"]["low"] < row["trend"]["high"] and 14 == row["trend"]["nights"]


def test_no_line_goes_across_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    record = record_of(case_result("k", times={"cold_time": 1e-5}))
    units = ["GPU-a", "GPU-b", "GPU-a", "GPU-a"]
    runs = [
        replace(one, machine={**one.machine, "uuid": unit}) for one, unit in zip(nights(record, 4), units, strict=True)
    ]
    site = site_of(tmp_path, *runs)
    (row,) = json.loads((site / "catalogue.json").read_text())["kernels"]
    assert 2 == row["trend"]["nights"]
    assert {"k[n=100]": [1, 2]} == devices(site, "k")


def devices(site, kernel):
    """By case of the kernel's page, the runs from which on another GPU measured it."""
    (script,) = (site / "data" / "pages" / "kernels").glob(f"{kernel}-*.js")
    view = given_values(script.read_bytes())["view"]
    return {one["name"]: one["devices"] for one in view["cases"]}


def test_no_line_goes_across_the_gpus_of_merged_records(tmp_path, monkeypatch):
    """Both records have the same two boards, and each kernel was on the other one in the second."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    orders = (("softmax", "matmul"), ("matmul", "softmax"), ("matmul", "softmax"))
    days = [replace(merged(*order), created=f"2026-10-0{day}T22:14:05", commit=f"{day:040x}")
            for day, order in enumerate(orders, 1)]  # fmt: skip
    site = site_of(tmp_path, *days)
    rows = {one["kernel"]: one["trend"] for one in json.loads((site / "catalogue.json").read_text())["kernels"]
            if "variant" not in one}  # fmt: skip
    assert [2, 2] == [rows[kernel]["nights"] for kernel in ("softmax", "matmul")]
    cuts = {name: cuts for kernel in ("softmax", "matmul") for name, cuts in devices(site, kernel).items()}
    broken = {case.name for case in days[0].cases if case.status != "ok"}
    assert {name: [] if name in broken else [1] for name in cuts} == cuts and len(cuts) > len(broken & set(cuts))


def test_a_case_that_stayed_on_its_gpu_keeps_its_line(tmp_path, monkeypatch):
    """Of two cases on two boards, one moves to the other board: the record's boards are the same."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    record = record_of(*(case_result("k", workload={"n": n}, times={"cold_time": 1e-5}) for n in (1, 2, 3)))
    runs = [
        replace(
            one, cases=tuple(replace(case, board=f"GPU-{board}") for case, board in zip(one.cases, on, strict=True))
        )
        for one, on in zip(nights(record, 2), ("aab", "abb"), strict=True)
    ]
    assert {"k[n=1]": [], "k[n=2]": [1], "k[n=3]": []} == devices(site_of(tmp_path, *runs), "k")


def test_one_value_makes_no_line():
    assert sparkline([1.0]) is None


def points(page):
    return page.locator("figure[data-plot=roofs] .mark").count()


def test_search_chooses_points_and_rows_together(page, site):
    opened(page, site, "roofline")
    every = points(page)
    page.get_by_label("Search").fill("softmax")
    assert 2 == points(page) < every
    assert 2 == page.locator("#roofline tbody tr:visible").count()
    page.get_by_label("Search").fill("no such kernel")
    assert "No case fits." in page.locator("figure[data-plot=roofs]").inner_text()
    page.get_by_role("button", name="Show all").click()
    assert every == points(page)


def test_a_part_is_enlarged_by_buttons_keys_and_mouse(page, site):
    opened(page, site, "roofline")
    every = points(page)
    page.get_by_role("button", name="Zoom in").click()
    assert points(page) < every
    page.get_by_role("button", name="Show the whole picture").click()
    assert every == points(page)
    page.locator("figure[data-plot=roofs] svg").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    near = points(page)
    assert near < every and "svg" == page.evaluate("document.activeElement.localName"), "the keyboard goes on"
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("0")
    assert every == points(page)
    box = page.locator("figure[data-plot=roofs] svg").bounding_box()
    page.mouse.move(box["x"] + 150, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 300, steps=4)
    page.mouse.up()
    assert points(page) < every
    assert [] == page.problems


def test_the_keyboard_reads_points_and_opens_them(page, site):
    opened(page, site, "roofline")
    tip = page.locator("figure[data-plot=roofs] .tip")
    page.locator("figure[data-plot=roofs] svg").focus()
    page.keyboard.press("ArrowRight")
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    assert "FLOP/s in" in first and first != tip.inner_text()
    page.keyboard.press("Home")
    assert first == tip.inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/kernels/*.html#case=*")


@pytest.mark.parametrize("name", ["roofline", "kernels/softmax"])
def test_a_finger_reads_the_nearest_point(browser, site, name):
    from playwright.sync_api import expect

    with window(browser, 400, has_touch=True, is_mobile=True) as page:
        opened(page, site, name)
        figure = page.locator("figure[data-plot=roofs], figure[data-plot=trend]").first
        figure.scroll_into_view_if_needed()
        point = figure.locator(".mark, path.runs").first.bounding_box()
        before = figure.locator(".tip").inner_text()
        page.touchscreen.tap(point["x"] + min(4, point["width"] / 2), point["y"] + point["height"] / 2)
        expect(figure.locator(".tip")).not_to_have_text(before)
        assert name in page.url, "a touch reads, and its link opens"
