"""Mistakes planted into copies of the catalogue's own sources: what is changed, which mode must tell, of which line."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.spec.case import Case
from tests.built_in import CATALOGUE


@dataclass(frozen=True)
class Bug:
    """`old` becomes `new` in `file`; on `case`, `mode` must find `kind`, at lines that hold one of `at` each."""

    file: str
    old: str
    new: str
    case: str
    mode: str
    kind: str
    at: tuple[str, ...]


_REDUCE, _VECTORS = "include/sums/reduce.cuh", "include/arrays/vector_load.cuh"
_LOCAL, _PRODUCT = "information_theory/conditional_mutual_information.cu", "basic/matmul.cu"
_ROWS, _LONG = "softmax:two_reads[rows=3,cols=1]", "layer_norm:two_reads[length=3,cols=1]"
_SURROGATES, _NAIVE = "conditional_mutual_information:significance[n=130,surrogates=5]", "matmul:naive[m=16,n=16,k=16]"
_BARRIER = "    __syncthreads();\n"
_STORED = "    if (lane == 0) by_warp[threadIdx.x / 32] = value;\n"
_WRITE, _READ = "by_warp[threadIdx.x / 32] = value;", "lane < warps ? by_warp[lane]"
_SHUFFLE = "return __shfl_xor_sync(FULL_WARP, value, mask);"
_GUARD, _NO_GUARD, _SUM = "row >= m || col >= n", "row > m || col > n", "sum = fmaf(line[i], b["
_PARTS, _OF_PARTS = "by_block[blockIdx.x] = *total", "__ldcg(by_block + i)"
_TAKEN = ("taken[own / 32]", "taken[chosen / 32]")
_MEET, _LOOK = "    grid.sync();\n", "    for (int p = own.begin + lane; p < own.begin + own.size; p += 32) component"
_WAIT, _MEANWHILE = "    __pipeline_wait_prior(T::STAGES - 2);\n", f"{_BARRIER}    const int first"
_GRID = "include/sequences/recurrent_grid.cuh"
_STATES = "lstm_cell:sequence[steps=3,batch=64,inputs=33,hidden=32,tile=Grid]"
_AWAIT = "        if (blocks > 0) await_count(steps.counter(grid.warp), (steps.counted + step + 1) * blocks);\n"
_SENT, _COPIED = "+ grid.sample] = own[i];", "__pipeline_wait_prior(STAGES - 1)"
_LAUNCHES = ("{ ++counters[WARPS * APART]; }", "launches = counters[WARPS * APART];")
_BEGUN, _ENDS = "    MaxSum own = {-infinity(), 0.0f};\n", "    if (threadIdx.x == 5) return;\n"

BUGS = {
    "read past the end":
        Bug(_PRODUCT, _GUARD, _NO_GUARD, _NAIVE, "race", "out of bounds", (_SUM, "* n + col] = sum;")),
    "read past the end, sanitized":
        Bug(_PRODUCT, _GUARD, _NO_GUARD, _NAIVE, "address", "out of bounds", (_SUM,)),
    "shared overflow":
        Bug(_REDUCE, _WRITE, "by_warp[threadIdx.x] = value;", _ROWS, "address", "out of bounds",
            ("by_warp[threadIdx.x] = value;",)),
    "dynamic shared overflow":
        Bug(_LOCAL, "taken[chosen / 32] |=", "taken[chosen] |=", _SURROGATES, "race", "out of bounds",
            ("taken[chosen] |=",)),
    "misaligned vector":
        Bug(_VECTORS, "return *reinterpret_cast<const float4*>(p);", "return *reinterpret_cast<const float4*>(p + 1);",
            "matmul[m=32,n=32,k=32]", "address", "misaligned", ("(p + 1);",)),
    "undefined shift":
        Bug("quantum/hadamard_gate.cu", "1ll << (qubit - 1)", "1ll << (qubit + 63)",
            "hadamard_gate:fused[qubits=4,qubit=1]", "address", "undefined behaviour", ("(qubit + 63)",)),
    "missing barrier":
        Bug(_REDUCE, _STORED + _BARRIER, _STORED, _ROWS, "race", "race", (_WRITE, _READ)),
    "missing second barrier":
        Bug(_REDUCE, f"identity, op);\n{_BARRIER}", "identity, op);\n", _LONG, "race", "race", (_WRITE, _READ)),
    "unwritten shared memory":
        Bug(_REDUCE, _STORED, "", _ROWS, "race", "unwritten shared read", (_READ,)),
    "missing warp barrier":
        Bug(_LOCAL, "            __syncwarp();\n        }\n", "        }\n", _SURROGATES, "race", "race", _TAKEN),
    "block barrier for the grid's":
        Bug("include/images/persistence.cuh", _MEET + _LOOK, _BARRIER + _LOOK,
            "pixel_tda:persistence[rows=20,cols=31,connectivity=4]", "race", "race",
            ("for (int next = now[pixel]", "up[p] = highest")),
    "missing fence":
        Bug(_REDUCE, "        __threadfence();\n        last", "        last", "dot_product[n=2049]", "race", "race",
            (_PARTS, _OF_PARTS)),
    "sum without an atomic":
        Bug(_REDUCE, "= atomicInc(arrived, blocks - 1)", "= (*arrived = (*arrived + 1) % blocks)",
            "dot_product[n=2049]", "race", "race", ("(*arrived + 1)", _PARTS, _OF_PARTS)),
    "missing wait for other blocks":
        Bug(_GRID, _AWAIT, "", _STATES, "race", "race", (_SENT, _COPIED, *_LAUNCHES)),
    "missing wait for copies":
        Bug("include/products/gemm_tile.cuh", _WAIT + _MEANWHILE, _MEANWHILE, "matmul[m=32,n=32,k=32]", "race",
            "unwritten shared read", ("float4 load4(const float* p)",)),
    "divergent barrier":
        Bug(_REDUCE, _STORED + _BARRIER, f"    if (lane == 0) {{\n    {_STORED}    {_BARRIER}    }} else\n"
            f"    {_BARRIER}", _ROWS, "fast", "divergent barrier", ("__syncthreads();",)),
    "shuffle against barrier":
        Bug(_REDUCE, _STORED + _BARRIER, f"{_STORED}    if (lane < 16)\n    {_BARRIER}", _ROWS, "fast", "deadlock",
            ("__syncthreads();", _SHUFFLE)),
    "shuffle from a lane that has ended":
        Bug("basic/softmax.cu", f"{_BEGUN}    for", f"{_BEGUN}{_ENDS}    for", _ROWS, "fast", "undefined lane",
            (_SHUFFLE,)),
}  # fmt: skip


def plant(bug: Bug, folder: Path) -> Case:
    """The bug's case, on copies of its source and of the headers below `folder` that have the mistake in them."""
    case = next(one for one in CATALOGUE.edges_of(bug.case.partition("[")[0]) if one.name == bug.case)
    source = case.spec.source
    for part in (CATALOGUE.folder / "include", source.parent):
        shutil.copytree(part, folder / part.name, ignore=shutil.ignore_patterns("*.py", "__pycache__", "generated"))
    text = (folder / bug.file).read_text()
    assert bug.old in text, f"{bug.file} no longer holds {bug.old!r}"
    (folder / bug.file).write_text(text.replace(bug.old, bug.new, 1))
    return replace(case, spec=replace(case.spec, source=folder / source.parent.name / source.name))
