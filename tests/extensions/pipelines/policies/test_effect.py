"""The measured batch, and the effect of another window on a result."""

import numpy as np

from prism_bench.extensions.pipelines.policies.measuring import USUAL, entropies, scene, window_row
from prism_bench.workflows.tuning.crossover import Batch, largest_within
from tests.built_in import CATALOGUE


def test_the_measured_batch_is_the_largest_that_keeps_the_target():
    seconds = {8: 1e-3, 32: 4e-3, 64: 7e-3}
    assert [None, 32, 64] == [largest_within(seconds, target) for target in (5e-4, 5e-3, 10e-3)]


def test_a_batch_s_rate_counts_samples():
    assert 2000 == Batch(batch=8, steps=128, seconds=4e-3, error=0.0).rate


def test_the_scene_is_the_same_each_time_and_within_its_range():
    image = scene(40, 60)
    assert (40, 60, "float32") == (*image.shape, image.dtype)
    assert np.array_equal(image, scene(40, 60))
    assert 0 <= image.min() and image.max() < 1


def test_the_usual_window_changes_nothing_and_another_one_does():
    by_window = {w: entropies(CATALOGUE.anywhere(f"pixel_entropy[rows=40,cols=60,window={w}]")) for w in (8, USUAL)}
    usual, other = (window_row(w, 1e-6, by_window) for w in (USUAL, 8))
    assert (0.0, 0.0) == (usual.difference, usual.moved)
    assert other.difference > 0.05 and other.entropy < usual.entropy
    assert 0 < other.moved <= 1
