"""How many blocks share the rows that row_sums.cuh, or the arrays that vector_load.cuh, goes through to add them up."""

from prism_bench import Launch

MOST_BLOCKS = 8192  # for which specs have scratch


def parts_of(rows, cols, device, unroll):
    """Blocks of 512 threads that share a row: until every SM has its fill three times over, so that late blocks even
    out the SMs. A thread's vectors come in whole batches of `unroll`: single ones at the end cost a batch's time."""
    rows = max(1, rows)
    parts = max(1, min(-(-cols // 2048), 12 * device.sm_count // rows, MOST_BLOCKS // (2 * rows)))
    each = -(-cols // (2048 * parts))
    return parts if parts == 1 or each < unroll else -(-cols // (2048 * (each - each % unroll)))


def shared_rows(rows, cols, device, unroll, entry=None):
    """A block per row; where rows are few and long, as many share one as fill the device."""
    parts = parts_of(rows, cols, device, unroll)
    block = 512 if parts > 1 else next((b for b in (32, 64, 128) if 8 * b >= cols), 256)
    return Launch(grid=(rows, parts), block=block, entry=entry)
