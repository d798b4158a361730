"""`scripts/uncovered`: a line that no edge reaches is told, and what all of them reach is not."""

import json
import shutil

import pytest

from tests.scripts.loading import loaded

pytestmark = pytest.mark.skipif(not (shutil.which("g++") and shutil.which("gcov")), reason="needs g++ and gcov")

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
    toys = tmp_path / "kernels"
    shutil.copytree("tests/toys", toys)
    for path in [*toys.glob("machine/*"), *toys.glob("arith/double.*")]:
        path.unlink()
    (toys / "arith" / "triple.cu").write_text(SOURCE)
    return toys


def test_a_line_that_no_edge_reaches_is_told(planted, capsys):
    assert 1 == loaded("uncovered").main(["--catalogue", str(planted)])
    *lines, total = capsys.readouterr().out.splitlines()
    assert ["arith/triple.cu:4: y[i] = x[i] + x[i] + x[i];"] == lines
    assert total.startswith("1 of ") and total.endswith(" lines are executed by no edge")


def test_where_edges_reach_everything_it_ends_well(planted, capsys):
    shutil.copy("tests/toys/arith/triple.cu", planted / "arith")
    assert 0 == loaded("uncovered").main(["--catalogue", str(planted), "--json"])
    assert {"without": {"arith/triple.cu": []}, "complaints": []} == json.loads(capsys.readouterr().out)


def test_a_kernel_that_does_not_compile_is_a_complaint(planted, capsys):
    (planted / "arith" / "triple.cu").write_text(SOURCE.replace("3.0f", "three"))
    assert 2 == loaded("uncovered").main(["--catalogue", str(planted)])
    assert "uncovered: triple: " in capsys.readouterr().err
