"""Hot spots: in separate cells, round, and no more than cells."""

import numpy as np

from prism_bench.extensions.pipelines.definitions import centres, heated


def test_spots_are_in_the_middle_of_cells_spread_over_the_image():
    assert [[5, 5], [5, 25], [15, 15], [25, 5], [25, 25]] == centres(30, 30, 5, 10).tolist()


def test_there_are_no_more_spots_than_cells():
    assert (6, 0, 0) == tuple(len(centres(rows, cols, 9, 10)) for rows, cols in ((25, 35), (9, 40), (40, 9)))


def test_spot_adds_a_disc_of_heat_to_the_image():
    image = np.ones((20, 30))
    warm = heated(image, np.array([[6, 7], [10, 20]]), 3, 2.0)
    down, right = np.indices(image.shape)
    near = ((down - 6) ** 2 + (right - 7) ** 2 <= 9) | ((down - 10) ** 2 + (right - 20) ** 2 <= 9)
    assert np.array_equal(np.where(near, 3.0, 1.0), warm)
    assert 1.0 == image.max()
