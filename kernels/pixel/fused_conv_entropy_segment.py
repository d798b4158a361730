"""Labels of an image by the entropy of its convolution in windows: three kernels in one launch.

Zeros surround the image for the convolution; windows and votes are clipped to it. The cuts are 0.5, 1 and 1.5 times
`threshold`, in bits; lo and hi bound the levels, as a range taken from the data would need a separate pass.

Labels are exactly the reference's, except where an entropy, of the pixel or of a neighbour that votes, is so near to a
cut that rounding decides. Images and taps are whole numbers, so that the convolution is exact and no pixel's level is
in doubt.
"""

from typing import Any

from prism_bench import KernelSpec, Out, Scalar, Size, Variant, absolute
from prism_bench.spec import AnyArray, ArrayModule

from ..include.images.image_segments import (
    EDGES,
    GOLDEN,
    INPUTS,
    PARAMETERS,
    RULES,
    TOLERANCE,
    WORKLOADS,
    entropy_map,
    flops,
    fused_launch,
    reference,
    segments,
)

# L1 and shared memory are the bottleneck: the windows take 31 shared-memory words a pixel (2 w table reads, w + 3
# counters, 4 for codes and levels), the convolution 4 loads, and requests need more than one wavefront each, as
# `traffic` counts. Instruction issue comes next, at 700 instructions of a warp for a row of 128 windows; 128 registers,
# and the shared memory that counters leave, limit the warps. S0 is latency-bound: of the 13 rows that enter a warp's
# windows 4 have labels.


def arguments(label: str, *more: Any) -> tuple[Any, ...]:
    levels = (Scalar("lo"), Scalar("hi"), Scalar("threshold"), Size("bins"), Size("majority"))
    return (*INPUTS, Out("labels", "rows cols", label), *more, *levels, Size("rows"), Size("cols"))


def with_entropies(
    x: AnyArray,
    taps: AnyArray,
    k: int,
    window: int,
    bins: int,
    lo: float,
    hi: float,
    threshold: float,
    rule: str,
    majority: int,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray]:
    entropy = entropy_map(x, taps, k, window, bins, lo, hi, xp)
    return segments(entropy, threshold, rule, majority, xp), entropy


def bytes_reference(
    x: AnyArray,
    taps: AnyArray,
    k: int,
    window: int,
    bins: int,
    lo: float,
    hi: float,
    threshold: float,
    rule: str,
    majority: int,
    xp: ArrayModule,
) -> AnyArray:
    return reference(x, taps, k, window, bins, lo, hi, threshold, rule, majority, xp).astype("uint8")


spec = KernelSpec(
    entry="fused_conv_entropy_segment<3, 8, false, int>",
    arguments=arguments("int32"),
    parameters=PARAMETERS,
    rules=RULES,
    launch=fused_launch("fused_conv_entropy_segment", entry_of_tiles="fused_conv_entropy_tile"),
    reference=reference,
    tolerance=TOLERANCE,
    looked_at={"cucim": "has the entropy of windows; the convolution and the vote would be CuPy's"},
    flops=flops,
    traffic_factor=16,  # a pixel is read for k columns; strips of few rows read as many again above and below them
    workloads=WORKLOADS,
    edges=EDGES,
    golden=GOLDEN,
    variants={
        "bytes": Variant(
            "labels of a byte each",
            arguments=arguments("uint8"),
            launch=fused_launch(
                "fused_conv_entropy_segment", "unsigned char", entry_of_tiles="fused_conv_entropy_tile"
            ),
            reference=bytes_reference,
            edges=(*EDGES[4:7], *(edge for edge in EDGES[7:] if edge["form"] == "tiles")),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "entropy_map": Variant(
            "the entropies too",
            arguments=arguments("int32", Out("entropy", "rows cols")),
            launch=fused_launch("fused_conv_entropy_map"),
            reference=with_entropies,
            tolerance={"labels": TOLERANCE, "entropy": absolute(1e-5)},
            edges=EDGES[4:7],
            golden=GOLDEN[1:],
            only_labels=("S0", "S1"),
        ),
    },
    replaces=("conv2d", "pixel_entropy", "image_segmentation"),
)
