"""Bits of bfloat16 and of e4m3, which travel as unsigned integers: NumPy has no such types."""

from prism_bench.spec import ONE_BY_ONE, PRECISIONS, Fill, as_drawn, widened

BFLOATS = Fill(
    lambda rng, count, axes: rng.normal(size=count).astype("float32").view("uint32") >> 16,
    "bits of normal bfloat16",
    as_drawn(),
    runs=ONE_BY_ONE,
)
FLOAT8S = Fill(
    lambda rng, count, axes: PRECISIONS["float8"].narrowed(rng.normal(size=count)),
    "bits of normal e4m3",
    as_drawn(),
    runs=ONE_BY_ONE,
)
wide = widened  # the values of such bits; others as they are
