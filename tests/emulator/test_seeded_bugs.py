"""Each bug in each mode: caught at its line where the mode can; silence where it cannot, and when it is mended."""

from functools import cache

import pytest

from prism_bench.emulator.build import MODES, find_compiler
from tests.emulator.seeds import SEEDS, build, kinds_found, run

_build = cache(build)
_by_name = {seed.entry: seed for seed in SEEDS}
pytestmark = pytest.mark.parametrize("mode", MODES)
each_seed = pytest.mark.parametrize("name", _by_name)


@pytest.fixture(scope="module", autouse=True)
def end_child_processes():
    yield
    for mode in MODES:
        for fixed in (False, True):
            _build(mode, fixed).close()


@cache
def _found(mode, name):
    if name == "misaligned_vector" and find_compiler().is_clang:
        pytest.skip("clang splits a float4 into scalars before either check sees it")
    return kinds_found(_build(mode, False), _build("fast", True), _by_name[name])


@each_seed
def test_bug_is_caught_by_the_modes_that_can(mode, name):
    seed = _by_name[name]
    kinds, _ = _found(mode, name)
    assert seed.caught_by.get(mode) in kinds if mode in seed.caught_by else not kinds - {"outputs"}


@each_seed
def test_finding_names_the_line_of_the_bug(mode, name):
    seed = _by_name[name]
    _, findings = _found(mode, name)
    told = {
        access.line for finding in findings if finding.kind == seed.caught_by.get(mode) for access in finding.accesses
    }
    expects_place = seed.caught_by.get(mode) not in (None, "outputs") and (mode, name) != ("fast", "dynamic_overflow")
    assert bool(told) == expects_place
    assert told <= seed.lines
    assert all(access.file.endswith("seeded_bugs.cu") for finding in findings for access in finding.accesses)


@each_seed
def test_mended_kernel_is_clean(mode, name):
    for order in ("forward", "reverse", "shuffled"):
        _, report = run(_build(mode, True), _by_name[name], order)
        assert report.is_clean, str(report)
