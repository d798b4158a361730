"""A task that promises the same bits: a submission whose bits depend on the order of its threads is wrong."""

from pathlib import Path

import pytest

from prism_bench.extensions.judge.judging import judge

CARD = """
source = "total.cu"
[[launch]]
entry = "total"
grid = 1
block = 256
arguments = ["x", "y", "n"]
"""
SPEC = '''"""y = the sum of x."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, reduction

spec = KernelSpec(
    entry="walk",
    arguments=(In("x", "n"), Out("y", "1"), Size("n")),
    launch=lambda: Launch(1, 1),
    reference=lambda x: x.sum(keepdims=True),
    tolerance=reduction(magnitude=lambda x, xp: xp.abs(x).sum(), terms=1e-5),
    workloads={"S0": Workload(n=1000)},
    bitwise=PROMISED,
)
'''
WALK = """
extern "C" __global__ void walk(const float* x, float* y, int n) {
    float all = 0.0f;
    for (int i = 0; i < n; ++i) all += x[i];
    y[0] = all;
}
"""
ATOMIC = """
extern "C" __global__ void total(const float* x, float* y, int n) {
    __shared__ float all;
    if (threadIdx.x == 0) all = 0.0f;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&all, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = all;
}
"""


@pytest.mark.parametrize(
    ("promised", "ruling"), [(True, "wrong"), pytest.param(False, "right", marks=pytest.mark.thorough)]
)
def test_a_submission_keeps_what_its_task_promises(tmp_path: Path, promised: bool, ruling: str) -> None:
    family, sent = tmp_path / "kernels" / "sums", tmp_path / "sent"
    family.mkdir(parents=True)
    sent.mkdir()
    (family / "sum.py").write_text(SPEC.replace("PROMISED", str(promised)))
    (family / "sum.cu").write_text(WALK)
    (sent / "total.toml").write_text(CARD)
    (sent / "total.cu").write_text(ATOMIC)
    verdict = judge(sent, "sum", catalogue=tmp_path / "kernels", trust_source=True, secret=5)
    assert ruling == verdict.ruling, verdict.objections
    if promised:
        (objection,) = verdict.objections
        assert "bitwise=True is promised; unknown: the source is compiled in its jail only" in objection.text
