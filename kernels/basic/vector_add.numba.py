"""c = a + b in Numba: a thread adds several elements, each a block's threads behind the one before."""

from numba import cuda, float32, uint64

from prism_bench import Launch, Tune, Variant, Workload

EACH = 4


@cuda.jit
def vector_add(a, b, c, n):
    """Load all elements before the first is stored, so that the loads wait together.

    Indices have 64 bits, because arrays may have more elements than 32 bits count, and no sign, which would be tested.
    """
    left, right = cuda.local.array(EACH, float32), cuda.local.array(EACH, float32)
    step = uint64(cuda.blockDim.x)
    first = uint64(cuda.blockIdx.x) * uint64(EACH) * step + uint64(cuda.threadIdx.x)
    if first + uint64(EACH - 1) * step < uint64(n):
        for item in range(EACH):
            left[item], right[item] = a[first + uint64(item) * step], b[first + uint64(item) * step]
        for item in range(EACH):
            c[first + uint64(item) * step] = left[item] + right[item]
    else:
        for item in range(EACH):
            at = first + uint64(item) * step
            if at < uint64(n):
                c[at] = a[at] + b[at]


def launch(n: int, block: int, each: int) -> Launch:
    return Launch(-(-n // (block * each)), block, constants={"EACH": each, "launch_bounds": block})


variant = Variant(
    "in Numba: a thread adds several elements",
    entry="vector_add",
    launch=launch,
    tune=Tune(block=(256, 512, 1024), each=(4, 8, 2)),
    more_edges=(
        Workload(n=4096),
        *(Workload(n=n, each=each) for n in (2047, 2048, 2049) for each in (2, 8)),
    ),
)
