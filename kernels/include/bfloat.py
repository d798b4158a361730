"""Bits of bfloat16, which travel as uint16: NumPy has no such type."""

from prism_bench.inputs import Fill

BFLOATS = Fill(
    lambda rng, count, axes: rng.normal(size=count).astype("float32").view("uint32") >> 16, "bits of normal bfloat16"
)


def wide(x, xp):
    """The values of bfloat16 bits; others as they are."""
    return x if x.dtype.kind == "f" else (x.astype("uint32") << 16).view(xp.float32).astype("float64")
