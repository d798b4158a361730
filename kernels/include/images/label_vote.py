"""The labels of label_vote.cuh in float64, and how image_segmentation.cu gives them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import Launch
from prism_bench.spec import AnyArray, ArrayModule

HEIGHT = 8  # rows of a thread


def launch_of(label: str) -> Callable[..., Any]:
    """Four columns a thread; rows beyond the grid are reached by striding."""

    def launch(rows: int, cols: int, rule: str) -> Launch:
        block = min(128, max(1, -(-cols // 128)) * 32)
        flags = f"{str(rule == 'ge').lower()}, {str(cols % 4 == 0).lower()}"
        grid = (-(-cols // (4 * block)), min(-(-rows // HEIGHT), 65_535))
        return Launch(grid=grid, block=block, entry=f"image_segmentation<{flags}, {label}>")

    return launch


def labels_of(x: AnyArray, threshold: float, rule: str, where: Any) -> AnyArray:
    """The labels before the vote; the cuts are float32, as the pixels are."""
    t = np.float32(threshold)
    high, middle, low = (float(np.float32(share) * t) for share in (1.5, 1.0, 0.5))
    above = (lambda cut: x >= cut) if rule == "ge" else (lambda cut: x > cut)
    return where(above(high), 1, where(above(middle), 2, where(above(low), 3, 0)))


def neighbours(member: AnyArray, count: AnyArray) -> AnyArray:
    """Adds to `count` how many of the in-image 8 neighbours are members."""
    rows, cols = member.shape
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            if down or right:
                to = slice(max(0, -down), rows - max(0, down)), slice(max(0, -right), cols - max(0, right))
                near = slice(max(0, down), rows + min(0, down)), slice(max(0, right), cols + min(0, right))
                count[to] += member[near]
    return count


def vote(first: AnyArray, majority: int, module: ArrayModule) -> AnyArray:
    """For NumPy, CuPy and PyTorch alike. More than half of 8 neighbours cannot share two labels."""
    result = first
    for label in range(4):
        count = neighbours(first == label, module.zeros_like(first))
        result = module.where(count > majority, label, result)
    return result
