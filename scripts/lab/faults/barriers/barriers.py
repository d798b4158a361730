"""y = 2 x by shared memory, shuffles and votes, with barriers and masks that CUDA leaves undefined."""

from ..include.pairs import Pair, spec_of

spec = spec_of((
    Pair("shuffle_outside", "lanes read lanes that the mask of their shuffle does not name", n=32, block=32),
    Pair("shuffle_exited", "lanes read lanes that have exited", n=32, block=32),
    Pair("barrier_skipped", "a warp goes around __syncthreads in a branch", n=64),
    Pair("syncwarp_caller", "lanes call __syncwarp with a mask that does not name them", n=32, block=32),
    Pair("barrier_missing", "a warp reads what another warp writes, without __syncthreads", n=64),
    Pair("syncwarp_missing", "lanes read what other lanes write, without __syncwarp", n=32, block=32),
    Pair("barrier_trips", "warps pass __syncthreads in a loop once and twice", n=64),
    Pair("tile_reused", "a tile is written again before all have read it"),
    Pair("vote_skipped", "lanes of the mask go around a vote in a branch", n=32, block=32),
    Pair("shared_unwritten", "shared memory is read that no thread has written", n=64),
))  # fmt: skip
