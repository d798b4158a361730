"""The Python API is one package: every name of it can be imported from `prism_bench.api`."""

import subprocess
import sys

import pytest

from prism_bench import api


@pytest.mark.parametrize("name", api.__all__)
def test_every_name_is_there(name):
    assert name == getattr(api, name).__name__
    assert name in dir(api)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        api.nothing  # noqa: B018


def test_the_package_loads_nothing_before_it_is_asked():
    script = "import sys, prism_bench.api; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "matplotlib", "cupy"} & set(found.stdout.split())
