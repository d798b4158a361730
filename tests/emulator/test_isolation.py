"""Launches in a child process: crashes are findings, buffers and variables travel, and the next launch works."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import DeviceBuffer, compile_source
from prism_bench.errors import SpecError

SOURCE = Path(__file__).parent / "kernels" / "crashing.cu"
ENTRIES = ["scaled", "added", "crashes", "overflows_its_stack", "divides", "overflows"]
MODES = ("fast", "race", "address")


@pytest.fixture(scope="module", params=MODES)
def module(request):
    built = compile_source(SOURCE, entries=ENTRIES, mode=request.param)
    yield built
    built.close()


def line_of(text):
    return next(number for number, line in enumerate(SOURCE.read_text().split("\n"), 1) if text in line)


def test_arrays_and_buffers_travel_there_and_back(module):
    x, buffer = np.arange(32, dtype=np.float32), DeviceBuffer(np.ones(32, np.float32))
    for _ in range(2):
        assert module.launch("added", 1, 32, [x, buffer], isolate=True).is_clean
    np.testing.assert_array_equal(buffer.to_host(), 1 + 2 * x)


def test_variables_survive_the_childs_death(module):
    module.set_symbol("factor", np.float32([3]))
    module.launch("crashes", 1, 32, [np.zeros(2, np.int32)], isolate=True)
    y = np.zeros(32, np.float32)
    assert module.launch("scaled", 1, 32, [np.ones(32, np.float32), y], isolate=True).is_clean
    assert set(y) == {3}
    assert module.get_symbol("launches", np.int32)[0] >= 1


def test_wild_write_is_a_finding_at_its_line(module):
    findings = module.launch("crashes", 1, 32, [np.zeros(2, np.int32)], isolate=True).findings
    assert {"fast": "crash", "race": "out of bounds", "address": "crash"}[module.mode] in {
        finding.kind for finding in findings
    }
    assert {finding.line for finding in findings} == {line_of("void crashes")}


def test_stack_overflow_is_a_finding(module):
    (finding,) = module.launch("overflows_its_stack", 1, 32, [np.zeros(2, np.int32)], isolate=True).findings
    assert (finding.kind, finding.file.endswith("crashing.cu")) == ("crash", True)


def test_division_by_nought_is_a_finding(module):
    findings = module.launch("divides", 1, 1, [np.zeros(2, np.int32)], isolate=True).findings
    assert line_of("void divides") in {finding.line for finding in findings}


def test_child_answers_with_the_callers_mistakes(module):
    with pytest.raises(SpecError, match="added: argument 1: Python int"):
        module.launch("added", 1, 32, [np.zeros(32, np.float32), 0], isolate=True)
    with pytest.raises(SpecError, match="added: 1 argument"):
        module.launch("added", 1, 32, [np.zeros(32, np.float32)], isolate=True)
    with pytest.raises(SpecError, match="no kernel 'gone'"):
        module.launch("gone", 1, 32, [], isolate=True)


def test_undefined_behaviour_is_told_each_time(module):
    kinds = [
        {f.kind for f in module.launch("overflows", 1, 32, [np.zeros(32, np.int32)], isolate=True).findings}
        for _ in range(2)
    ]
    assert kinds == [{"undefined behaviour"} if module.mode == "address" else set()] * 2


def test_module_opened_anew_finds_variables_as_they_were_at_first(module):
    found = []
    for _ in range(2):
        fresh = compile_source(SOURCE, entries=ENTRIES, mode=module.mode)
        assert fresh.launch("scaled", 1, 32, [np.ones(32, np.float32), np.zeros(32, np.float32)], isolate=True).is_clean
        found.append(int(fresh.get_symbol("launches", np.int32)[0]))
        fresh.close()
    assert 1 == found[0] == found[1]


def test_one_process_serves_several_libraries(module):
    other = compile_source("__global__ void one(float* y) { y[threadIdx.x] = 1; }\n", entries=["one"], mode=module.mode)
    y = np.zeros(32, np.float32)
    for _ in range(2):
        assert other.launch("one", 1, 32, [y], isolate=True).is_clean
        assert module.launch("added", 1, 32, [np.zeros(32, np.float32), y], isolate=True).is_clean
    assert module._child._process is other._child._process
