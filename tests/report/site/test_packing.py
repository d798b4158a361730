"""Long values are packed by Python and unpacked by a page, whatever they are."""

import base64
import random

import pytest

from prism_bench.report.site.page import giving
from tests.report.site.browser import window
from tests.report.site.pages import site_of
from tests.report.site.unpacked import given_values
from tests.report.synthetic import case_result, record_of

DEALT = random.Random(23)
VALUES = {
    "short": ["a"],
    "alike": ["x" * 90_000],  # the longest distances and lengths
    "numbers": [DEALT.random() for _ in range(3_000)],
    "words": [f"{number} µs – {number * 7}" for number in range(3_000)],
    "random": [base64.b64encode(DEALT.randbytes(80_000)).decode()],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(name):
    script = giving("page", 0, VALUES[name])
    assert VALUES[name] == given_values(script)
    assert (b"unpacked" in script) == (name != "short")


def test_a_page_unpacks_what_was_packed(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    site = site_of(tmp_path, record_of(case_result("k", times={"cold_time": 1e-5})))
    with window(browser) as page:
        page.goto((site / "index.html").as_uri())
        for name, values in VALUES.items():
            script = giving(name, 0, values).decode()
            assert values == page.evaluate(f"() => {{ {script} return prism.given.get('{name} 0'); }}"), name
        assert [] == page.problems
