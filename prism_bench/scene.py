"""Images with hot spots, for kernels that look for them: where the spots are, and their heat on what was there."""

import numpy as np


def centres(rows: int, cols: int, spots: int, cell: int) -> np.ndarray:
    """Rows and columns [spots, 2] of spots in the middle of cells of their own, spread over the image, the same for
    everybody; fewer where there are not as many cells of `cell` pixels.
    """
    across, down = cols // cell, rows // cell
    cells = np.linspace(0, across * down - 1, min(spots, across * down)).round().astype(int)
    return np.stack([cells // across, cells % across], axis=1) * cell + cell // 2


def heated(image: np.ndarray, places: np.ndarray, radius: int, heat: float) -> np.ndarray:
    """The image with a disc of `heat` more at every place, each at least `radius` away from the image's border."""
    reach, warm = np.arange(-radius, radius + 1), image.copy()
    disc = heat * (reach[:, None] ** 2 + reach**2 <= radius**2)
    for row, col in places:
        warm[row - radius : row + radius + 1, col - radius : col + radius + 1] += disc
    return warm
