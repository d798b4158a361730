"""The image pipeline as a chain: convolution, entropy in windows, labels.

The kernel itself is the baseline: three kernels in four launches, as the entropy takes its levels in a separate one.
`full` is `fused_conv_entropy_segment`, one launch.
"""

from dataclasses import replace

from prism_bench import Chain, KernelSpec, Launch, Out, Scalar, Scratch, Size, Variant
from prism_bench.spec import Device

from ..include.convolution.convolution import launch_one
from ..include.images.image_segments import (
    EDGES,
    GOLDEN,
    INPUTS,
    PARAMETERS,
    RULES,
    TOLERANCE,
    WORKLOADS,
    flops,
    fused_launch,
    reference,
)
from ..include.images.label_vote import launch_of
from ..include.images.window_entropy import slide

# Separate launches move 28 bytes a pixel, the fused one 8. Separate ones are latency-bound in part; fused, L1 and
# shared memory are the bottleneck.
BETWEEN = ("filtered", "codes", "entropy")


def baseline(rows: int, cols: int, k: int, window: int, pitch: int, rule: str, device: Device) -> tuple[Launch, ...]:
    """Every kernel in its own launches."""
    convolution = launch_one("conv2d")(k, 1, cols, k // 2, rows, cols, device)
    passed = ("x", "taps", "filtered", "rows", "cols", "rows", "cols", "k", "stride", "padding")
    labels = launch_of("int")(rows, cols, rule)
    return (
        replace(convolution, arguments=passed),
        *slide(  # pyright: ignore[reportGeneralTypeIssues] - the chain's windows are narrow enough for strips
            rows, cols, window, pitch, "float", device, image="filtered"
        ),
        replace(labels, arguments=("entropy", "labels", "threshold", "majority", "rows", "cols")),
    )


def full(rows: int, cols: int, k: int, window: int, bins: int, rule: str, form: str, device: Device) -> Launch:
    """One launch."""
    passed = ("x", "taps", "labels", "lo", "hi", "threshold", "bins", "majority", "rows", "cols")
    launch = fused_launch("fused_conv_entropy_segment", "int", passed, "fused_conv_entropy_tile")
    return launch(rows, cols, k, window, bins, rule, form, device)


spec = KernelSpec(
    entry="fused_conv_entropy_segment<3, 8, false, int>",
    arguments=(
        *INPUTS, Out("labels", "rows cols", "int32"), Scratch("filtered", "rows cols"),
        Scratch("codes", "padded_rows pitch", "uint16"), Scratch("table", "counts", "uint32"),
        Scratch("entropy", "rows cols"), *(Scalar(name) for name in ("lo", "hi", "threshold", "unit")), Size("bins"),
        Size("window"), Size("majority"), Size("rows"), Size("cols"), Size("pitch"), Size("k"), Size("stride"),
        Size("padding"),
    ),
    parameters=PARAMETERS,
    derived={
        "padded_rows": lambda rows, window: rows + window - 1,
        "pitch": lambda cols, window: (cols + window + 9) // 4 * 4,
        "counts": lambda window: window**2 + 1,
        "unit": lambda: 1.0,
        "stride": lambda: 1,
        "padding": lambda k: k // 2,
    },
    rules=RULES,
    launch=baseline,
    reference=reference,
    tolerance=TOLERANCE,
    looked_at={"cucim": "has the entropy of windows; the convolution and the vote would be CuPy's"},
    flops=flops,
    before="image_chain:full",
    traffic_factor=12,  # every code enters and leaves the windows of its row
    workloads=WORKLOADS,
    edges=EDGES,
    golden=GOLDEN,
    variants={"full": Variant("one launch", launch=full)},
    chains=(Chain("image", {"baseline": None, "full": "full", "persistent": "full"}, BETWEEN),),
)  # fmt: skip
