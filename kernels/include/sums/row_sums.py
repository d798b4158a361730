"""How many blocks share the rows that row_sums.cuh, or the arrays that vector_load.cuh, goes through to add them up."""

from prism_bench import Launch, Rule, Tune
from prism_bench.spec import Device

MOST_BLOCKS = 8192  # for which specs have scratch


# Blocks of an SM in all, and their threads. What a float accumulator takes in decides how much it can lose.
SHARED_TUNE = Tune(
    fill=(12, 16, 24, 32, 48),
    block=(512, 256),
    rules=(Rule("no more elements a thread than by default", lambda fill, block: fill * block >= 12 * 512),),
)


# The same where floats are added within a tile only, so that any share will do. One block for each place of an SM that
# holds 32 registers a thread: all blocks start, walk and end together.
TILED_TUNE = Tune(fill=(4, 8, 12, 24), block=(512, 256))


def parts_of(rows: int, cols: int, device: Device, unroll: int = 1, *, fill: int = 12, block: int = 512) -> int:
    """Blocks that share a row, at most `fill` an SM.

    By default enough that every SM has its fill three times over, whatever their registers, and late ones even out.

    Where each has a part of the row alone, a thread's vectors come in whole batches of `unroll`: single ones at the end
    cost a batch's time.
    """
    rows, own = max(1, rows), 4 * block
    parts = max(1, min(-(-cols // own), fill * device.sm_count // rows, MOST_BLOCKS // (2 * rows)))
    each = -(-cols // (own * parts))
    return parts if min(parts, unroll) == 1 or each < unroll else -(-cols // (own * (each - each % unroll)))


def shared_rows(
    rows: int,
    cols: int,
    device: Device,
    unroll: int,
    entry: str | None = None,
    *,
    fill: int = 12,
    block: int = 512,
) -> Launch:
    """A block per row; where rows are few and long, as many of `block` threads share one as `fill` allows."""
    parts = parts_of(rows, cols, device, unroll, fill=fill, block=block)
    each = 4 if rows <= device.sm_count else 8  # where nothing else runs, no load waits for another
    alone = threads_for(cols, each, 256)
    return Launch(grid=(rows, parts), block=block if parts > 1 else alone, entry=entry)


def threads_for(count: int, each: int, most: int) -> int:
    """Threads of a block that has `count` elements alone, `each` a thread: whole warps, a power of two of them."""
    return next((block for block in (32, 64, 128, 256) if block < most and each * block >= count), most)
