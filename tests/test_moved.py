"""Old import paths of the public API give the same objects, with a warning, and load nothing before they are asked."""

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

# The documented names of version 0.1: every package with `__all__`, as the reference listed them.
DOCUMENTED = {
    "prism_bench.backends": "Backend Runnable names open_backend open_default",
    "prism_bench.compilation": (
        "Compiled Resources compile_source compile_to_ptx include_folders nvrtc_version sass_hash source_hash"
    ),
    "prism_bench.emulator": (
        "ORDERS Access ArgumentTraffic DeviceBuffer Finding HostBuffer LaunchReport Module Traffic compile_source "
        "not_emulated"
    ),
    "prism_bench.fusion": (
        "ByHand Choice ColumnSums Form Function Input Map Nearest Product Program Reduce RowDots Shared Within names"
    ),
    "prism_bench.spec.kernel": (
        "Array Chain Edge Golden In InOut KernelSpec Launch Out Requirement Rule Scalar Scratch Size Tune Variant Zero"
    ),
    "prism_bench.measure": "ClockGate Criterion Series median_interval relative_half_width sample shuffled",
    "prism_bench.memory": "Event Lease Limits PoolState SizeClassPool Source Trace Tracker",
    "prism_bench.monitor": "Blind Rules Sampler energy_per_launch remarks sampling watched",
    "prism_bench.persistent": "FORMS LAUNCHES PERSISTENT Executor Incident Pending Settings",
    "prism_bench.pipelines": "INTEGRATION KNOWN MEASURED Pipeline Stage pipelines",
    "prism_bench.record.store": (
        "History Place add_once all_points load newest numbered path_for read read_history readable records_in save "
        "table unusable_newest"
    ),
    "prism_bench.workbench": "PROTOCOL Progress Settings Watching lanes_for merge run share verify",
    "prism_bench.workbench.prepare": "prepare",
    "prism_bench.workbench.callable": "Benchmark benchmark",
    "prism_bench.workbench.products": "Matmul",
    "prism_bench.workbench.online": "OnlineRunnable",
    "prism_bench.memory.trace": "Event Trace",
    "prism_bench": (
        "Budget Chain Edge Golden In InOut KernelSpec Launch Out Requirement Rule Scalar Scratch Size Tune Variant "
        "Workload Zero absolute benchmark constant elementwise exact exact_except integers load normal normalising "
        "normwise prepare product reduction uniform"
    ),
}
NAMES = [(module, name) for module, names in DOCUMENTED.items() for name in names.split()]


def python(script, *options):
    return subprocess.run([sys.executable, *options, "-c", script], capture_output=True, text=True)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_documented_name_can_be_imported(module, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert hasattr(import_module(module), name)


@pytest.mark.parametrize("statement", ["import prism_bench.workbench", "from prism_bench.memory import Trace"])
def test_an_old_path_warns_once_and_names_the_new_one(statement):
    found = python(f"{statement}\n{statement}", "-W", "always::DeprecationWarning")
    assert 0 == found.returncode
    assert 1 == found.stderr.count("DeprecationWarning"), found.stderr
    assert "<string>:1: DeprecationWarning: prism_bench." in found.stderr
    assert "is now prism_bench." in found.stderr


def test_an_old_path_gives_the_same_objects():
    script = """
import prism_bench.memory.trace as old, prism_bench.extensions.memory.trace as new, prism_bench
from prism_bench.extensions import memory
assert old is new and prism_bench.memory is memory
assert new.__spec__.name == new.__name__ == "prism_bench.extensions.memory.trace"
"""
    found = python(script, "-W", "ignore::DeprecationWarning")
    assert (0, "") == (found.returncode, found.stderr)


def test_a_name_that_never_was_is_not_found():
    for name in ("prism_bench.nothing", "prism_bench.memory.nothing"):
        found = python(f"import {name}", "-W", "ignore")
        assert f"ModuleNotFoundError: No module named '{name}'" in found.stderr


def test_importing_the_package_loads_nothing_heavy():
    found = python("import sys, prism_bench; print(*sys.modules)")
    loaded = {name.split(".")[0] for name in found.stdout.split()}
    assert "prism_bench" in loaded
    assert not loaded & {"numpy", "pandas", "matplotlib", "cupy", "typer", "rich"}
