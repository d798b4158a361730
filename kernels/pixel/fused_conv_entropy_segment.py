"""Labels of an image by the entropy of its convolution in windows: three kernels in one launch.

Zeros surround the image for the convolution; windows and votes are clipped to it. The cuts are 0.5, 1 and 1.5 times
`threshold`, in bits; lo and hi bound the levels, as a range taken from the data would need a pass of its own.
"""

from prism_bench import KernelSpec, Out, Scalar, Size, Variant, absolute

from ..include.image_segments import (
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

# Floors of S1 on an H200: 537 MB / 4.28 TB/s = 125 us; 31 shared-memory words a pixel for the windows (2 w table reads,
# w + 3 counters, 4 for codes and levels) and 4 loads for the convolution at 32 a clock and SM = 281 us, with the 1.48
# wavefronts a request that `traffic` counts 400; 700 instructions of a warp for a row of 128 windows, 376 us. It took
# 1.09 ms, issue slots 51 %, L1 and shared memory 50 %, and takes 676 us now, S2 2.65 ms: L1 and shared memory 76 %,
# issue slots 63 %, DRAM 16 %, at 24 % of an SM's warps (128 registers, and what counters leave of shared memory). S0
# waits, as of the 13 rows that enter a warp's windows 4 have labels.


def arguments(label, *more):
    levels = (Scalar("lo"), Scalar("hi"), Scalar("threshold"), Size("bins"), Size("majority"))
    return (*INPUTS, Out("labels", "rows cols", label), *more, *levels, Size("rows"), Size("cols"))


def with_entropies(x, taps, k, window, bins, lo, hi, threshold, rule, majority, xp):
    entropy = entropy_map(x, taps, k, window, bins, lo, hi, xp)
    return segments(entropy, threshold, rule, majority, xp), entropy


def bytes_reference(x, taps, k, window, bins, lo, hi, threshold, rule, majority, xp):
    return reference(x, taps, k, window, bins, lo, hi, threshold, rule, majority, xp).astype("uint8")


spec = KernelSpec(
    entry="fused_conv_entropy_segment<3, 8, false, int>",
    arguments=arguments("int32"),
    parameters=PARAMETERS,
    rules=RULES,
    launch=fused_launch("fused_conv_entropy_segment"),
    reference=reference,
    tolerance=TOLERANCE,
    flops=flops,
    traffic_factor=16,  # a pixel is read for k columns; strips of few rows read as many again above and below them
    workloads=WORKLOADS,
    edges=EDGES,
    golden=GOLDEN,
    variants={
        "bytes": Variant(
            "labels of a byte each",
            arguments=arguments("uint8"),
            launch=fused_launch("fused_conv_entropy_segment", "unsigned char"),
            reference=bytes_reference,
            edges=EDGES[4:7],
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
