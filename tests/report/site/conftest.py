"""A browser, and one site for all tests that only look at it: fourteen nights, a kernel slower from the eleventh on."""

import pytest

from tests.report.site.browser import started_or_skipped, window
from tests.report.site.pages import nights, site_of
from tests.report.synthetic import gpu_record


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("PRISM_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield site_of(tmp_path_factory.mktemp("reports"), *nights(gpu_record(), slower="softmax"))
    patch.undo()


browser = pytest.fixture(scope="module")(started_or_skipped)


@pytest.fixture
def page(browser):
    with window(browser) as shown:
        yield shown
