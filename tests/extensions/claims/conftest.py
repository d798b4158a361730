"""One catalogue and one claim for all tests of a module."""

import pytest

from tests.extensions.claims.planted import claim_in, plant


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    """The planted catalogue."""
    return plant(tmp_path_factory.mktemp("claims") / "kernels")


@pytest.fixture(scope="module")
def claim(catalogue):
    """The claim that `triple` is twice as fast as its variant."""
    return claim_in(catalogue)
