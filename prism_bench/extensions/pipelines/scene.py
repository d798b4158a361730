"""Images with hot spots, for kernels that look for them."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def centres(rows: int, cols: int, spots: int, cell: int) -> "NDArray[Any]":
    """Return rows and columns [spots, 2] of spots, each in the middle of another cell of `cell` pixels.

    They are spread over the image and always the same. There are fewer if the image has fewer cells.
    """
    across, down = cols // cell, rows // cell
    cells = np.linspace(0, across * down - 1, min(spots, across * down)).round().astype(int)
    return np.stack([cells // across, cells % across], axis=1) * cell + cell // 2


def heated(image: "NDArray[Any]", places: "NDArray[Any]", radius: int, heat: float) -> "NDArray[Any]":
    """Return the image with a disc of `heat` added at every place, each at least `radius` from the image's border."""
    reach, warm = np.arange(-radius, radius + 1), image.copy()
    disc = heat * (reach[:, None] ** 2 + reach**2 <= radius**2)
    for row, col in places:
        warm[row - radius : row + radius + 1, col - radius : col + radius + 1] += disc
    return warm
