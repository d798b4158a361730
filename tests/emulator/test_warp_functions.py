"""Shuffles, votes, matches, reductions and groups against what CUDA's guide says of them, under each thread order."""

import re
from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import ORDERS
from tests.emulator.on_device import ON_DEVICE, build, is_device

SOURCE = Path(__file__).parent / "kernels" / "warp_functions.cu"
_TEXT = SOURCE.read_text()
ENTRIES = [
    *re.findall(r"^LANES\((\w+)", _TEXT, re.MULTILINE),
    *(name for name in re.findall(r"void (\w+)\(const", _TEXT) if name not in ("name", "tile_sum", "tile_scans")),
    *(f"{name}<{size}>" for name in ("tile_sum", "tile_scans") for size in (1, 4, 16, 32)),
]
DEVICE_ENTRIES = [name for name in ENTRIES if name != "shfl_vector"]
X = np.random.default_rng(0).integers(0, 60, 32).astype(np.int32)
LANE = np.arange(32)


@pytest.fixture(scope="module", params=["fast", ON_DEVICE])
def module(request):
    return build(SOURCE, DEVICE_ENTRIES if request.param == "device" else ENTRIES, request.param)


def run(module, entry, x=X, p=0, width=32, dtype=None, threads=32):
    outputs = []
    for order in ORDERS:
        y = np.zeros(threads, dtype or x.dtype)
        report = module.launch(entry, 1, threads, [x, y, np.int32(p), np.int32(width)], order=order, seed=4)
        assert report.is_clean, str(report)
        outputs.append(y)
    assert all(np.array_equal(outputs[0], other) for other in outputs[1:])
    return outputs[0]


@pytest.mark.parametrize("width", [1, 4, 16, 32])
@pytest.mark.parametrize("p", [0, 1, 3, 5, 17])
def test_shuffles_move_values_within_their_segment(module, width, p):
    first = LANE - LANE % width
    last = first + width - 1
    np.testing.assert_array_equal(run(module, "shfl", p=p, width=width), X[first + p % width])
    np.testing.assert_array_equal(run(module, "shfl_rotated", p=p, width=width), X[first + (LANE + p) % width])
    np.testing.assert_array_equal(
        run(module, "shfl_up", p=p, width=width), X[np.where(LANE - p >= first, LANE - p, LANE)]
    )
    np.testing.assert_array_equal(
        run(module, "shfl_down", p=p, width=width), X[np.where(LANE + p <= last, (LANE + p) % 32, LANE)]
    )
    np.testing.assert_array_equal(
        run(module, "shfl_xor", p=p, width=width), X[np.where(LANE ^ p <= last, LANE ^ p, LANE)]
    )


def test_shuffles_move_wide_values(module):
    x = np.random.default_rng(1).normal(size=32)
    np.testing.assert_array_equal(run(module, "shfl_double", x, p=9), x[LANE ^ 9])
    if is_device(module):
        return  # it shuffles no vectors
    vectors = np.random.default_rng(2).normal(size=(32, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(module, "shfl_vector", vectors, p=3), vectors[LANE ^ 3, 3])


@pytest.mark.parametrize("p", [-1, 30, 1000])
def test_votes(module, p):
    told = X > p
    mask = int(sum(1 << int(lane) for lane in LANE[told]))
    assert set(run(module, "ballot_of", p=p, dtype=np.uint32)) == {mask}
    assert set(run(module, "all_of", p=p)) == {int(told.all())}
    assert set(run(module, "any_of", p=p)) == {int(told.any())}


def test_matches(module):
    expected = [sum(1 << int(other) for other in LANE if X[other] & 3 == X[lane] & 3) for lane in LANE]
    np.testing.assert_array_equal(run(module, "match_any", dtype=np.uint32), np.array(expected, np.uint32))
    assert set(run(module, "match_all", p=1, dtype=np.uint32)) == {0}
    assert set(run(module, "match_all", p=1000, dtype=np.uint32)) == {
        0
    }  # all lanes, plus the 1 of "equal", wraps round


def test_reductions(module):
    assert set(run(module, "reduce_add")) == {X.sum()}
    assert set(run(module, "reduce_min")) == {X.min()}
    assert set(run(module, "reduce_max")) == {X.max()}
    bits = X.view(np.uint32) | np.uint32(64)
    for name, operation in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        assert set(run(module, f"reduce_{name}", bits)) == {operation.reduce(bits)}


def test_masks_keep_halves_of_a_warp_apart(module):
    y = run(module, "two_masks")
    assert set(y[:16]) == {X[:16].sum()}
    assert set(y[16:]) == {X[16:].max()}


@pytest.mark.parametrize("p", [-1, 30, 1000])
def test_block_votes(module, p):
    x = np.random.default_rng(5).integers(0, 60, 96).astype(np.int32)
    told = x > p
    expected = told.sum() * 100 + told.all() * 10 + told.any()
    assert set(run(module, "block_votes", x, p=p, threads=96)) == {expected}


@pytest.mark.parametrize("size", [1, 4, 16, 32])
def test_tiles_reduce_and_scan(module, size):
    x = np.random.default_rng(6).integers(0, 9, 64).astype(np.int32)
    tiles = x.reshape(-1, size)
    ranks = np.arange(64 // size)
    np.testing.assert_array_equal(
        run(module, f"tile_sum<{size}>", x, threads=64), np.repeat(tiles.sum(axis=1) + 100000 * ranks, size)
    )
    through = tiles.cumsum(axis=1)
    np.testing.assert_array_equal(
        run(module, f"tile_scans<{size}>", x, threads=64), (through * 1000 + through - tiles).reshape(-1)
    )


def test_tiles_shuffle_and_vote_by_rank(module):
    tiles = X.reshape(-1, 8)
    down = np.concatenate([tiles[:, 1:], tiles[:, -1:]], axis=1)
    votes = ((tiles > 30) << np.arange(8)).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(
        run(module, "tile_shuffles", p=30), (tiles[:, 2:3] + 100 * down + 10000 * votes).reshape(-1)
    )


def test_partition_by_predicate(module):
    expected = np.where(LANE % 2 == 1, X[1::2].max(), X[::2].max()) * 100 + LANE // 2
    np.testing.assert_array_equal(run(module, "odd_lanes"), expected)


@pytest.mark.parametrize("p", [-1, 30, 1000])
def test_lanes_of_one_branch_share_an_atomic(module, p):
    larger = p < X
    odd = ~larger & (X % 2 == 1)
    places = np.where(larger, larger.cumsum() - 1, np.where(odd, 100 * odd.sum() + odd.cumsum() - 1, -1))
    counts = 10000 * larger.sum() + 1000000 * odd.sum()
    np.testing.assert_array_equal(run(module, "places", p=p), places + counts)
