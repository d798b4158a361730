"""Six planted situations: the first screen of the overview alone gives the right answer."""

import re
from dataclasses import replace

import pytest

from tests.report.site.browser import keep, opened, window
from tests.report.site.pages import Page, site_of
from tests.report.situations import SITUATIONS, doubtful, faster, later, two_runs, well, wrong
from tests.report.synthetic import case_result, gpu_record

VISIBLE = """() => [...document.querySelectorAll("h1, h2, p, li, dt, dd, td, th")]
    .filter((one) => { const box = one.getBoundingClientRect(); return box.height && box.bottom <= innerHeight; })
    .map((one) => one.innerText).join(" \\n ")"""
INKS = """() => {
    const seen = (one) => { const box = one.getBoundingClientRect(); return box.height && box.top < innerHeight; };
    const ink = (one) => getComputedStyle(one).color, probe = document.body.appendChild(document.createElement("i"));
    const named = ["good", "bad", "warn", "muted"]
        .map((name) => { probe.className = name; return [name, ink(probe)]; });
    probe.remove();
    return { ...Object.fromEntries(named), heading: ink(document.querySelector("h1")),
             seen: [...document.querySelectorAll("main *, header *")].filter(seen).map(ink) };
}"""
IN_SIGHT = """(row) => { const box = row.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; }"""
ORDER = ("attention", "verdict", "better", "coverage", "against-peers", "languages", "machines")
NARROW = 400


SCREENS = {  # the first sentence, its colour, and words that are seen without scrolling
    "regression": ("Worse: 1 case slower than when last measured.", "bad", ["slower +100.0 %", "softmax"]),
    "improvement": ("Better: 1 case faster than when last measured, none slower.", "good", ["faster", "-50.0 %"]),
    "untrusted": ("Untrusted: 1 case cannot be trusted.", "warn", ["invalid", "exceeds the ceiling"]),
    "wrong kernel": ("Wrong: 1 case wrong.", "bad", ["softmax", "y[3] is 1.5, reference 0.5"]),
    "nothing": ("No change: 38 cases as fast as when last measured.", "good", ["42 same"]),
    "undecided": ("Undecided: 38 cases compared with the last measurement.", "muted", ["42 inconclusive"]),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_first_screen_answers(browser, tmp_path, monkeypatch, name):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    sentence, tone, words = SCREENS[name]
    site = site_of(tmp_path, *two_runs(name))
    with window(browser, 1440) as page:
        opened(page, site, "index")
        keep(page, f"situation-{name.replace(' ', '-')}")
        heading = page.locator("h1")
        seen = " ".join(page.evaluate(VISIBLE).split())
        assert sentence == heading.inner_text()
        assert tone in heading.get_attribute("class")
        inks = page.evaluate(INKS)
        assert inks["heading"] == inks[tone]
        assert tone == "bad" or inks["bad"] not in inks["seen"], "red is for kernels"
        assert [] == [one for one in words if one not in seen], seen
    with window(browser, NARROW) as page:
        opened(page, site, "index")
        keep(page, f"situation-{name.replace(' ', '-')}-narrow")
        heading, box = page.locator("h1"), page.locator("h1").bounding_box()
        assert sentence == heading.inner_text() and box["y"] + box["height"] < page.viewport_size["height"]
        assert NARROW >= page.evaluate("document.documentElement.scrollWidth")


def test_nothing_is_claimed_of_limits_that_were_not_measured(tmp_path):
    cases = tuple(case for case in well().cases if case.ceiling is None)
    text = Page((site_of(tmp_path, replace(well(), cases=cases)) / "index.html").read_text("utf-8")).text
    assert "none measured: times have no limit to be held against" in text
    assert "launch overhead and below" not in text
    assert "nothing to compare with yet" in text


def test_coverage_follows_what_the_run_found(tmp_path):
    text = (site_of(tmp_path, well(), later(faster)) / "index.html").read_text("utf-8")
    sections = re.findall(r'<section id="([a-z-]+)"', text)
    assert ["verdict", "better", "coverage", "against-peers"] == [one for one in sections if one in ORDER][:4]
    assert text.index('id="coverage"') < text.index('class="tiles"') < text.index('id="against-peers"')


def troubled():
    """A record with more concerns of a kind, and more notes, than the overview shows at once."""
    sound = {case.name: place for place, case in enumerate(well().cases)}
    cases = [wrong(case) if (place := sound.get(case.name, 99)) < 14 else doubtful(case) if place < 18 else case
             for case in gpu_record().cases]  # fmt: skip
    skipped = [case_result(f"absent{n}", status="skipped", reason="no memory") for n in range(9)]
    return replace(gpu_record(), cases=(*cases, *skipped), complete=False)


def test_every_pill_leads_to_a_row_that_is_seen(browser, tmp_path, monkeypatch):
    """Rows beyond the first ten are folded, and notes by kind: a pill opens what hides its row, or its kind's rows."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    site = site_of(tmp_path, troubled())
    for width in (1440, NARROW):
        with window(browser, width, reduced_motion="reduce") as page:
            pills = opened(page, site, "index").locator(".chips a")
            found = [(one.inner_text(), one.get_attribute("href")) for one in pills.all()]
            assert len(found) > 4 and page.locator(".chips li").count() == len(found)
            for words, href in found:
                opened(page, site, "index").locator(f".chips a[href='{href}']").click()
                row = page.locator(href)
                row.wait_for(state="visible")
                page.wait_for_function(IN_SIGHT, arg=row.element_handle())
                kind = row.locator(".kind").first
                kind.wait_for(state="visible")
                assert kind.inner_text().split()[0] in words.replace("run cut short", "incomplete")
