"""y = 2 x by vectors, asynchronous copies and matrices: at an address that is no multiple of what they need."""

from ..include.pairs import Pair, spec_of

spec = spec_of((
    Pair("float4_global", "a float4 is read from global memory 4 bytes after a multiple of 16"),
    Pair("float2_global", "a float2 is written to global memory 4 bytes after a multiple of 8", block=128),
    Pair("int4_global", "an int4 is read from global memory 8 bytes after a multiple of 16"),
    Pair("double2_shared", "a double2 is read from shared memory 8 bytes after a multiple of 16", block=128),
    Pair("float4_dynamic", "a float4 is read from dynamic shared memory 4 bytes after a multiple of 16",
         launch={"shared": 1024}),
    Pair("half2_shared", "a half2 is read from shared memory 2 bytes after a multiple of 4", block=256),
    Pair("float4_local", "a float4 is read from a thread's own array 12 bytes after a multiple of 16"),
    Pair("cp_async", "an asynchronous copy of 16 bytes goes to 4 bytes after a multiple of 16"),
    Pair("wmma_pointer", "a matrix of WMMA begins 2 bytes after a multiple of 32", block=32),
    Pair("wmma_stride", "the rows of a matrix of WMMA are 34 bytes apart, no multiple of 16", block=32),
))  # fmt: skip
