"""A project whose tests use the fixture, run by pytest in this process on the null backend."""

import json

import numpy.random  # noqa: F401 - pytester forgets what a run imports, and NumPy loads once
import pandas  # noqa: F401
import pytest
import scipy.special  # noqa: F401

import prism_bench.pytest_plugin.journal  # noqa: F401
from prism_bench.backends.null import SCRIPT

PLUGIN = "prism_bench.pytest_plugin"
FUNCTIONS = """
import numpy as np
import pytest

x = np.arange(1000, dtype=np.float32)

def double(x):
    return x * 2

def twice(x):
    return x + x

def nearly(x):
    return x * 2 + (x == 501)
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A function that runs tests, given as text, by times scripted by name; flags are those of pytest."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PRISM_BENCH_MACHINE", "desk")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def run(tests, *flags, script=None, backend="null"):
        monkeypatch.setenv(SCRIPT, str(pytester.path / "script.json"))
        (pytester.path / "script.json").write_text(json.dumps(script or {}))
        pytester.makepyfile(test_it=FUNCTIONS + tests)
        words = [*(("--prism-backend", backend) if backend else ()), *flags]
        return pytester.runpytest_inprocess("-p", PLUGIN, "-p", "no:cacheprovider", *words)

    run.path = pytester.path
    return run
