"""Kernels with regions: small ones, and copies of the catalogue's with regions placed in them."""

import shutil
from pathlib import Path

from prism_bench.catalogue import discover

KERNELS = Path(__file__).parents[3] / "kernels"

SPEC = '''"""A kernel with regions."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="{name}",
    arguments=(In("x", "n 128"), Out("y", "n 128"), Size("n")),
    launch=lambda n: Launch(grid=n, block=128),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={{"S0": Workload(n=6), "S1": Workload(n=1000)}},
    options={options!r},
)
'''
HEAD = "#include <prism_bench/regions.cuh>\n"
SIGNATURE = 'extern "C" __global__ void {name}(const float* x, float* y, int n)'
AT = "const int at = blockIdx.x * 128 + threadIdx.x;"

# Warps 0 and 1 load, warps 2 and 3 store: their regions are open at the same time.
ROLES = """{
    const int at = blockIdx.x * 128 + threadIdx.x % 64;
    __shared__ float tile[2][64];
    const bool loads = threadIdx.x < 64;
    for (int half = 0; half < 2; ++half) {
        PB_REGION("half");
        if (loads) {
            PB_REGION_BEGIN(load, "load");
            tile[half][threadIdx.x] = x[at + 64 * half];
            PB_REGION_END(load);
        }
        __syncthreads();
        if (!loads) {
            PB_REGION("store");
            y[at + 64 * half] = 2 * tile[half][threadIdx.x % 64];
        }
    }
}
"""
BODIES = {
    "roles": ROLES,
    "elected": "{ " + AT + ' y[at] = 2 * x[at]; if (threadIdx.x == 70) { PB_REGION("one thread"); } }',
    "unclosed": "{ " + AT + ' y[at] = 2 * x[at]; PB_REGION_BEGIN(gap, "open"); if (n) return; PB_REGION_END(gap); }',
    "silent": '{ PB_REGION("work"); if (x[0] > 1e30f) y[0] = n; }',
    "wrong": '{ PB_REGION("work"); y[blockIdx.x * 128 + threadIdx.x] = n; }',
    "untaken": "{ " + AT + ' y[at] = 2 * x[at]; if (n < 0) { PB_REGION("never"); y[at] = 0; } }',
    "bare": "{ " + AT + " y[at] = 2 * x[at]; }",
}  # fmt: skip


def write(folder, name, body=None, options=(), head=HEAD):
    """Write a kernel of BODIES, or with another body, into a catalogue and return its source."""
    path = folder / "planted" / f"{name}.cu"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}{SIGNATURE.format(name=name)} {body or BODIES[name]}\n")
    path.with_suffix(".py").write_text(SPEC.format(name=name, options=options))
    return path


def case_of(folder, name, label="S0"):
    """Return the case of a kernel or kernel:variant in a catalogue."""
    cases = discover(folder).cases([name], [label])
    return next(case for case in cases if bool(case.variant) == (":" in name))


# Copies of kernels of the catalogue. For each: the folders or files to copy, and by file the lines after which, or for
# which, others come. A region in a loop of warpgroup instructions begins after a wait and ends after the next one.
PLACES = {
    "tensor_core_matmul": (
        ("tensor_core/tensor_core_matmul",),
        {
            "include/tensor_cores/streamed_product.cuh": {
                "            await_phase(ring.empty + 8 * place.stage, place.parity ^ 1);\n": (
                    '            PB_REGION_BEGIN(room, "wait for room");\n{line}            PB_REGION_END(room);\n'
                    '            PB_REGION("copy");\n'
                ),
                "        await_phase(ring.full + 8 * place.stage, place.parity);\n": (
                    '        PB_REGION_BEGIN(tiles, "wait for tiles");\n{line}        PB_REGION_END(tiles);\n'
                    '        PB_REGION("multiply");\n'
                ),
            }
        },
    ),
    "fused_attention_softmax": (
        ("fused/fused_attention_softmax",),
        {
            "include/attention/attention_streamed.cuh": {
                "                await_phase(key + stream.FREE, stream.parity ^ 1);\n": (
                    '                PB_REGION("copy");\n{line}'
                ),
                "        weigh(block);\n": (
                    '        PB_REGION_BEGIN(softmax, "exponentials");\n{line}        PB_REGION_END(softmax);\n'
                ),
            }
        },
    ),
    "active_inference_chain:full": (
        ("active_inference", "tensor"),
        {
            "active_inference/active_inference_chain.cu": {
                '#include "../tensor/axpby.cu"\n': HEAD + "{line}",
                "        T gradient;\n": '        PB_REGION("gradient");\n{line}',
                "    if (!last_block(arrived + tiles, tiles + 1)) return;\n": '{line}    PB_REGION("sum up");\n',
            }
        },
    ),
}  # fmt: skip


def copy(folder, kernel):
    """Copy a kernel of PLACES into a catalogue, with its regions."""
    sources, places = PLACES[kernel]
    for name in sources:
        whole = KERNELS / name
        paths = whole.iterdir() if whole.is_dir() else (whole.with_suffix(".cu"), whole.with_suffix(".py"))
        for path in paths:
            to = folder / path.relative_to(KERNELS)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                shutil.copy(path, to)
    for name, lines in places.items():
        text = (KERNELS / name).read_text()
        for line, more in lines.items():
            assert line in text, f"{name} has no line {line.strip()}: place the region elsewhere"
            text = text.replace(line, more.replace("{line}", line))
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text.replace("#pragma once\n", f"#pragma once\n\n{HEAD}", 1))
