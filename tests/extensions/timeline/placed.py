"""Small kernels with regions."""

from lab.timelines import HEAD

from prism_bench.catalogue import discover

SPEC = '''"""A kernel with regions."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="{name}",
    arguments=(In("x", "n 128"), Out("y", "n 128"), Size("n")),
    launch=lambda n: Launch(grid=n, block=128),
    reference=lambda x: 2 * x,
    tolerance=exact(),
    workloads={{"S0": Workload(n=6), "S1": Workload(n=1000)}},
    compiler={compiler!r},
)
'''
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
# Each thread keeps 100 values of which every next one depends on two, so that probes have no free register.
CROWDED = """{
    const int at = blockIdx.x * 128 + threadIdx.x;
    float kept[100];
    for (int k = 0; k < 100; ++k) kept[k] = x[at] * k;
    for (int turn = 0; turn < n; ++turn) {
        PB_REGION("turn");
        #pragma unroll
        for (int k = 0; k < 100; ++k) kept[k] = fmaf(kept[k], kept[(k + 37) % 100], x[at + turn]);
    }
    float sum = 0;
    for (int k = 0; k < 100; ++k) sum += kept[k] * k;
    y[at] = sum;
}
"""
BODIES = {
    "roles": ROLES,
    "crowded": CROWDED,
    "elected": "{ " + AT + ' y[at] = 2 * x[at]; if (threadIdx.x == 70) { PB_REGION("one thread"); } }',
    "unclosed": "{ " + AT + ' y[at] = 2 * x[at]; PB_REGION_BEGIN(gap, "open"); if (n) return; PB_REGION_END(gap); }',
    "silent": '{ PB_REGION("work"); if (x[0] > 1e30f) y[0] = n; }',
    "wrong": '{ PB_REGION("work"); y[blockIdx.x * 128 + threadIdx.x] = n; }',
    "untaken": "{ " + AT + ' y[at] = 2 * x[at]; if (n < 0) { PB_REGION("never"); y[at] = 0; } }',
    "bare": "{ " + AT + " y[at] = 2 * x[at]; }",
}  # fmt: skip


def write(folder, name, body=None, compiler="nvrtc", head=HEAD):
    """Write a kernel of BODIES, or with another body, into a catalogue and return its source."""
    path = folder / "planted" / f"{name}.cu"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}{SIGNATURE.format(name=name)} {body or BODIES[name]}\n")
    path.with_suffix(".py").write_text(SPEC.format(name=name, compiler=compiler))
    return path


def case_of(folder, name, label="S0"):
    """Return the case of a kernel or kernel:variant in a catalogue."""
    cases = discover(folder).cases([name], [label])
    return next(case for case in cases if bool(case.variant) == (":" in name))
