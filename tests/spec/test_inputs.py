"""Inputs: seeded, the same bits by whatever path they are laid out, whatever their size."""

import numpy as np
import pytest

from prism_bench.spec import inputs
from prism_bench.spec.inputs import BLOCK, MOST_BLOCKS, Fill, constant, draw, input_of, integers, normal, uniform

SIZES = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7)


def drawn(count, fill=None, seed=0, dtype="float32", axes=None):
    return draw(fill or normal(), (count,), dtype, np.random.default_rng(seed), axes or {})


class OtherModule:
    """An array module that is not NumPy, as CuPy is not: it shares nothing but the calls that inputs make."""

    empty = staticmethod(np.empty)

    @staticmethod
    def asarray(array):
        return np.array(array, copy=True)


@pytest.mark.parametrize("count", SIZES)
def test_every_size_is_filled_to_its_last_element(count):
    array = drawn(count, constant(3)).on(np)
    assert (count,) == array.shape
    assert np.dtype("float32") == array.dtype
    assert bool((array == 3).all())


@pytest.mark.parametrize("count", SIZES)
def test_the_same_seed_gives_the_same_bits_each_time_and_by_another_module(count):
    first, again, other = drawn(count).on(np), drawn(count).on(np), drawn(count).on(OtherModule)
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() == other.tobytes()


def test_laying_out_gives_a_fresh_copy_each_time():
    source = drawn(10)
    first = source.on(np)
    first[:] = 0
    assert not bool((source.on(np) == 0).any())


@pytest.mark.parametrize("count", [size for size in SIZES if size])
def test_different_seeds_differ(count):
    assert drawn(count, seed=0).on(np).tobytes() != drawn(count, seed=1).on(np).tobytes()


def test_each_repeated_block_is_the_first_one_rotated():
    source = drawn(3 * BLOCK + 7)
    array = source.on(np)
    assert 4 == len(source.rotations)
    assert 0 == source.rotations[0]
    for index, rotation in enumerate(source.rotations):
        part = array[index * BLOCK : (index + 1) * BLOCK]
        assert np.array_equal(np.roll(source.block, -rotation)[: part.size], part)


def test_no_two_blocks_are_alike():
    source = drawn(3 * BLOCK + 7)
    assert len(set(source.rotations)) == len(source.rotations)


def test_the_host_never_holds_more_than_a_block():
    assert BLOCK == drawn(3 * BLOCK + 7).block.size


def test_a_shape_of_several_dimensions_holds_the_same_values_in_row_order():
    rng = np.random.default_rng(0)
    matrix = draw(normal(), (3, 5), "float32", rng, {})
    assert (3, 5) == matrix.on(np).shape
    assert drawn(15).on(np).tobytes() == matrix.on(np).tobytes()
    assert 60 == matrix.nbytes


def test_integer_bounds_may_be_named_by_an_axis():
    array = drawn(1000, integers(0, "cols"), dtype="int32", axes={"cols": 3}).on(np)
    assert {0, 1, 2} == set(array.tolist())
    lower = drawn(1000, integers("low", 5), dtype="int32", axes={"low": 4}).on(np)
    assert {4} == set(lower.tolist())


def test_uniform_values_keep_their_bounds():
    array = drawn(1000, uniform(2, 3), dtype="float64").on(np)
    assert bool(((array >= 2) & (array < 3)).all())


def test_normal_values_have_their_mean_and_deviation():
    array = drawn(BLOCK, normal(5, 2), dtype="float64").on(np)
    assert 5 == pytest.approx(array.mean(), abs=0.02)
    assert 2 == pytest.approx(array.std(), rel=0.01)


def test_given_data_come_back_as_they_are():
    assert [[1, 2], [3, 4]] == input_of([[1, 2], [3, 4]], "float32").on(np).tolist()


def test_given_data_may_be_empty():
    assert (0, 3) == input_of(np.empty((0, 3)), "float32").on(np).shape


def test_given_data_larger_than_a_block_are_refused():
    with pytest.raises(ValueError, match="1048576 values at most"):
        input_of(np.zeros(BLOCK + 1), "float32")


@pytest.mark.parametrize("count", [BLOCK, 3 * BLOCK + 7])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_kept_block_gives_the_bits_that_drawing_gives(monkeypatch, count, dtype):
    own = Fill(normal().draw, "another meaning")
    monkeypatch.setattr(inputs, "_KEPT", type(inputs._KEPT)())
    first, again = drawn(count, dtype=dtype), drawn(count, dtype=dtype)
    assert first.block is again.block
    assert drawn(count, own, dtype=dtype).block is not first.block
    assert drawn(count, own, dtype=dtype).on(np).tobytes() == again.on(np).tobytes()
    with pytest.raises(ValueError, match="read-only"):
        first.block[0] = 0


def test_another_seed_meaning_or_type_has_another_block(monkeypatch):
    monkeypatch.setattr(inputs, "_KEPT", type(inputs._KEPT)())
    others = [drawn(BLOCK), drawn(BLOCK, seed=1), drawn(BLOCK, normal(1.0)), drawn(BLOCK, dtype="float64")]
    assert 4 == len({one.block.tobytes() for one in others}) == len(inputs._KEPT)


def test_few_blocks_are_kept(monkeypatch):
    monkeypatch.setattr(inputs, "_KEPT", type(inputs._KEPT)())
    blocks = [drawn(BLOCK, uniform(0, 1), seed=seed, dtype="float16").block for seed in range(MOST_BLOCKS + 2)]
    assert MOST_BLOCKS == len(inputs._KEPT)
    assert drawn(BLOCK, uniform(0, 1), seed=MOST_BLOCKS + 1, dtype="float16").block is blocks[-1]
    assert drawn(BLOCK, uniform(0, 1), seed=0, dtype="float16").block is not blocks[0]
