"""y = 2 x by launches and kernels beyond what a device takes."""

from ..include.pairs import Pair, spec_of

spec = spec_of((
    Pair("launch_bounds", "a block of 128 threads, where __launch_bounds__ allow 64", block=128, launch={"grid": 2}),
    Pair("grid_y", "a grid of 70,000 blocks in y, of at most 65,535", block=1, launch={"grid": (1, 256)},
         fault={"grid": (1, 70_000)}, entry="doubled"),
    Pair("grid_z", "a grid of 65,536 blocks in z, of at most 65,535", block=1, launch={"grid": (1, 1, 256)},
         fault={"grid": (1, 1, 65_536)}, entry="doubled"),
    Pair("block_z", "a block of 128 threads in z, of at most 64", launch={"grid": 2, "block": (2, 1, 64)},
         fault={"block": (1, 1, 128)}, entry="doubled"),
    Pair("block_threads", "a block of 32 x 33 threads, of at most 1,024", block=(32, 32), fault={"block": (32, 33)},
         entry="doubled"),
    Pair("dynamic_shared", "228 KB of dynamic shared memory, of at most 227 KB", block=256,
         launch={"shared": 96 * 1024}, fault={"shared": 228 * 1024}, entry="doubled"),
    Pair("static_shared", "240,000 bytes of static shared memory, of at most 232,448", block=256),
    Pair("registers", "1,024 threads of more than 64 registers, where a block has 65,536", block=1024),
    Pair("cluster_size", "a cluster of 16 blocks, of at most 8 without the attribute", block=16, launch={"grid": 16}),
    Pair("cooperative", "more blocks of a cooperative launch than the device holds at a time", block=32,
         launch={"grid": 8, "shared": 200 * 1024, "cooperative": True}, fault={"grid": 300}, entry="resident"),
))  # fmt: skip
