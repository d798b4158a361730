"""Sum of an array in Triton: programs add strides of tiles in double precision, one program adds what they found."""

import triton
import triton.language as tl

from prism_bench import In, Launch, Out, Scratch, Size, Tune, Variant, Workload
from prism_bench.spec import Device

MOST = 4096  # programs, and what one program adds at the end


@triton.jit
def partial_sums(x, by_program, n: tl.int64, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    for first in tl.range(tl.program_id(0).to(tl.int64) * BLOCK, n, PROGRAMS * BLOCK, num_stages=4):
        total += tl.load(x + first + lanes, first + lanes < n, other=0.0).to(tl.float64)
    tl.store(by_program + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def whole_sum(by_program, result, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    found = tl.load(by_program + lanes, lanes < PROGRAMS, other=0.0)
    tl.store(result, tl.sum(found, 0).to(tl.float32))


def launch(n: int, device: Device, block: int, fill: int) -> tuple[Launch, ...]:
    programs = max(1, min(triton.cdiv(n, block), fill * device.sm_count, MOST))
    constants = {"PROGRAMS": programs, "BLOCK": block, "num_warps": 8}
    end = {"PROGRAMS": programs, "BLOCK": max(32, triton.next_power_of_2(programs)), "num_warps": 8}
    return (
        Launch(programs, entry="partial_sums", arguments=("x", "by_program", "n"), constants=constants),
        Launch(1, entry="whole_sum", arguments=("by_program", "result"), constants=end),
    )


variant = Variant(
    "in Triton: two launches",
    arguments=(In("x", "n"), Out("result", "1"), Scratch("by_program", str(MOST), "float64"), Size("n", "int64")),
    launch=launch,
    more_edges=(Workload(n=1056 * 4096),),  # fills 132 processors
    tune=Tune(block=(4096, 2048, 8192), fill=(8, 4, 2)),
)
