"""`scripts/uncovered`: a line that no edge reaches is told, and what all of them reach is not."""

import json
import shutil
from pathlib import Path

import pytest
from lab import uncovered_lines

pytestmark = pytest.mark.skipif(not (shutil.which("g++") and shutil.which("gcov")), reason="needs g++ and gcov")

TOY = Path(__file__).parents[1] / "toys" / "arith" / "triple.cu"
SOURCE = """extern "C" __global__ void tripled(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && n > 5000) {
        y[i] = x[i] + x[i] + x[i];
    } else if (i < n) {
        y[i] = 3.0f * x[i];
    }
}
"""


@pytest.fixture
def planted(tmp_path):
    """The toy that triples, with a way that only large sizes take."""
    family = tmp_path / "kernels" / "arith"
    family.mkdir(parents=True)
    shutil.copy(TOY.with_suffix(".py"), family)
    (family / "triple.cu").write_text(SOURCE)
    return family.parent


def test_a_line_that_no_edge_reaches_is_told(planted, capsys):
    assert 1 == uncovered_lines.main(["--catalogue", str(planted)])
    *lines, total = capsys.readouterr().out.splitlines()
    assert ["arith/triple.cu:4: y[i] = x[i] + x[i] + x[i];"] == lines
    assert total.startswith("1 of ") and total.endswith(" lines are executed by no edge")


def test_where_edges_reach_everything_it_ends_well(planted, capsys):
    shutil.copy(TOY, planted / "arith")
    assert 0 == uncovered_lines.main(["--catalogue", str(planted), "--json"])
    assert {"without": {"arith/triple.cu": []}, "complaints": []} == json.loads(capsys.readouterr().out)


def test_a_kernel_that_does_not_compile_is_a_complaint(planted, capsys):
    (planted / "arith" / "triple.cu").write_text(SOURCE.replace("3.0f", "three"))
    assert 2 == uncovered_lines.main(["--catalogue", str(planted)])
    assert "uncovered: triple: " in capsys.readouterr().err
