"""The one place where tests that need a GPU are skipped."""

import pytest


def pytest_collection_modifyitems(items):
    """Skip what is marked `gpu` where no device answers, with the backend's own words for why."""
    needing = [item for item in items if item.get_closest_marker("gpu")]
    missing = _what_is_missing() if needing else None
    if missing:
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=missing))


def _what_is_missing():
    from prism_bench.backends.cuda.device import open_cupy
    from prism_bench.errors import BackendUnavailable

    try:
        open_cupy()
    except BackendUnavailable as error:
        return str(error)
    return None
