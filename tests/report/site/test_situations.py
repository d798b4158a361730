"""Five planted situations: the first screen of the overview alone gives the right answer."""

from dataclasses import replace

import pytest

from tests.report.site.browser import keep, opened, window
from tests.report.site.pages import Page, _moved, site_of
from tests.report.synthetic import gpu_record

VISIBLE = """() => [...document.querySelectorAll("h1, h2, p, li, dt, dd, td, th")]
    .filter((one) => { const box = one.getBoundingClientRect(); return box.height && box.bottom <= innerHeight; })
    .map((one) => one.innerText).join(" \\n ")"""
CASE = ("softmax", "S1")


def well():
    """A record without mishaps."""
    record = gpu_record()
    sound = [case for case in record.cases if case.status == "ok" and not any(m.distrusted for m in case.measurements)]
    return replace(record, cases=tuple(sound))


def later(change=None):
    """The record a day later, in which `change` happened to one case."""
    cases = [change(case) if change and (case.kernel, case.label) == CASE else case for case in well().cases]
    return replace(well(), created="2026-11-21T22:14:05", commit="b" * 40, cases=tuple(cases))


def slower(case):
    return _moved(case, 2.0)


def faster(case):
    return _moved(case, 0.5)


def doubtful(case):
    reason = "its read bandwidth exceeds the ceiling"
    found = [replace(one, valid=False, reason=reason) if (one.subject, one.metric) == ("kernel", "cold_time") else one
             for one in case.measurements]  # fmt: skip
    return replace(case, measurements=tuple(found))


def wrong(case):
    return replace(case, status="wrong", reason="y[3] is 1.5, reference 0.5", measurements=())


SITUATIONS = {
    "regression": (slower, "Worse: 1 case slower than when last measured.", "bad", ["slower 2.00x", "softmax"]),
    "improvement": (faster, "Better: 1 case faster than when last measured, none slower.", "good", ["faster", "0.50x"]),
    "untrusted": (doubtful, "Untrusted: 1 case cannot be trusted.", "bad", ["invalid", "exceeds the ceiling"]),
    "wrong kernel": (wrong, "Wrong: 1 case wrong.", "bad", ["softmax", "y[3] is 1.5, reference 0.5"]),
    "nothing": (None, "No change: 42 cases as fast as when last measured.", "good", ["42 same"]),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_first_screen_answers(browser, tmp_path, monkeypatch, name):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    change, sentence, tone, words = SITUATIONS[name]
    site = site_of(tmp_path, well(), later(change))
    with window(browser, 1440) as page:
        opened(page, site, "index")
        keep(page, f"situation-{name.replace(' ', '-')}")
        heading = page.locator("h1")
        seen = " ".join(page.evaluate(VISIBLE).split())
        assert sentence == heading.inner_text()
        assert tone in heading.get_attribute("class")
        assert [] == [one for one in words if one not in seen], seen


def test_nothing_is_claimed_of_limits_that_were_not_measured(tmp_path):
    cases = tuple(case for case in well().cases if case.ceiling is None)
    text = Page((site_of(tmp_path, replace(well(), cases=cases)) / "index.html").read_text("utf-8")).text
    assert "none measured: times have no limit to be held against" in text
    assert "launch overhead and below" not in text
    assert "nothing to compare with yet" in text
