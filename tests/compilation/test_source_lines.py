"""Lines of a kernel's source that count."""

from prism_bench.compilation.program import source_lines

CUDA = """// a kernel
#include "shared.cuh"

__global__ void k(float* x) { /* one
   line */ x[0] = 1; }
"""
PYTHON = '''"""Doubles."""
import triton


@triton.jit
def k(x, y,
      n):
    """Say what it does."""
    # a remark
    at = n

    y[at] = x[at]


def launch(n):
    return n
'''


def test_comments_and_blank_lines_of_cuda_do_not_count_and_headers_are_apart(tmp_path):
    family = tmp_path / "family"
    family.mkdir()
    (family / "k.cu").write_text(CUDA)
    (family / "shared.cuh").write_text("\n// nothing\nusing real = float;\n")
    assert (2, 1) == source_lines(family / "k.cu")


def test_only_decorated_functions_of_python_count(tmp_path):
    (tmp_path / "k.triton.py").write_text(PYTHON)
    assert (5, 0) == source_lines(tmp_path / "k.triton.py")


def test_machine_code_has_no_lines(tmp_path):
    (tmp_path / "k.cubin").write_bytes(b"")
    assert source_lines(tmp_path / "k.cubin") is None
