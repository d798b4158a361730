"""A project's file with host code runs on the emulator; a finding has the line of the user's own file."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.compilation.host_source.device_side import device_side
from prism_bench.emulator import compile_source
from prism_bench.emulator.build import find_compiler
from prism_bench.errors import BackendUnavailable

PROJECT = Path(__file__).parents[1] / "extensions" / "init" / "sources" / "project" / "src"
ENTRY = "fast::softmax_kernel2<float, 8>"


@pytest.fixture
def launch():
    try:
        find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))

    def run(out):
        rows, cols = 3, 70
        inp = np.random.default_rng(0).normal(size=(rows, cols)).astype(np.float32)
        module = compile_source(device_side(PROJECT / "softmax.cu", (), (ENTRY,)).text, (), (ENTRY,), "race")
        report = module.launch(ENTRY, rows, 256, [out, inp, np.int32(rows), np.int32(cols)], shared_bytes=32)
        weights = np.exp(inp - inp.max(axis=1, keepdims=True))
        return report.findings, weights / weights.sum(axis=1, keepdims=True)

    return run


def test_a_file_with_host_code_runs_unchanged(launch):
    out = np.zeros((3, 70), np.float32)
    findings, expected = launch(out)
    assert () == findings
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_a_finding_has_the_line_of_the_users_file(launch):
    findings, _ = launch(np.zeros((2, 70), np.float32))  # one row too few
    lines = {Path(access.file).name: access.line for finding in findings for access in finding.accesses}
    assert {"softmax.cu": 67} == lines
