"""axe-core finds nothing on any kind of page, light or dark."""

import pytest

from prism_bench.report.site.page import MENU
from tests.report.site.browser import opened, violations, window

pytest.importorskip("axe_playwright_python", reason="it brings axe-core")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_have_no_violations(browser, site, dark):
    with window(browser, dark=dark, bypass_csp=True) as page:
        for name in (*MENU, "kernels/softmax", "kernels/null"):
            opened(page, site, name)
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            assert [] == violations(page, dark or None), name
