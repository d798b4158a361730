"""y = 2 x with an index outside of a buffer."""

from ..include.pairs import Pair, spec_of

spec = spec_of((
    Pair("global_read", "the number after the last one is read", n=64),
    Pair("global_write", "the number after the last one is written", n=64, block=128),
    Pair("shared_static", "the number after the last one of a tile is written and read", n=64),
    Pair("local_array", "the number after the last one of a thread's own array is read", n=64),
    Pair("negative_index", "the number before the first one is read", n=64),
    Pair("far_below", "a number far below the buffer is written", n=64),
    Pair("columns", "a loop over 8 columns takes the ninth, which the last row does not have", n=64, block=8),
    Pair("sub_buffer", "the number after the last one of a part of a buffer is written", n=64, block=32),
    Pair("constant_table", "the number after the last one of a __constant__ table is read", n=64),
    Pair("shared_dynamic", "the number after the last one of dynamic shared memory is written and read", n=64,
         launch={"shared": 256}),
))  # fmt: skip
