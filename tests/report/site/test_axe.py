"""axe-core finds nothing on any kind of page, light or dark."""

import pytest

from prism_bench.report.site.page import MENU
from tests.report.site.browser import ALL_BUT_CONTRAST, ALL_RULES, COLOUR_RULES, opened, rules_of, violations, window

pytest.importorskip("axe_playwright_python", reason="it brings axe-core")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_have_no_violations(browser, site, dark):
    with window(browser, dark=dark, bypass_csp=True) as page:
        for name in (*MENU, "kernels/softmax", "kernels/null"):
            opened(page, site, name)
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            assert [] == violations(page, rules_of(dark)), name


def test_faint_text_and_a_picture_without_words_are_found(browser, tmp_path):
    """Each choice of rules finds what it is for, and nothing else."""
    body = '<main><h1>t</h1><p style="color:#ccc">faint</p><img src="data:,"></main>'
    (tmp_path / "bad.html").write_text(f'<html lang="en"><title>t</title>{body}</html>')
    choices = ALL_RULES, COLOUR_RULES, ALL_BUT_CONTRAST
    with window(browser) as page:
        opened(page, tmp_path, "bad")
        found = [{rule for rule, *_ in violations(page, rules)} for rules in choices]
    assert [{"color-contrast", "image-alt"}, {"color-contrast"}, {"image-alt"}] == found
