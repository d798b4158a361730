"""A catalogue kernel as a Python callable."""

from pathlib import Path

import numpy as np
import pytest

import prism_bench
from prism_bench.errors import UsageError

TOYS = Path(__file__).parent.parent / "toys"


def prepared(*words, **more):
    return prism_bench.prepare(*words, backend="numpy_reference", catalogue=TOYS, **more)


@pytest.mark.parametrize("name", ["double", "twice"])
def test_called_it_computes(name):
    with prepared(name) as runnable:
        runnable()
        arrays = runnable.arrays(["x", "y"])
    assert np.array_equal(2 * arrays["x"], arrays["y"])


def test_label_variant_and_seed_choose():
    with prepared("double", "S1", variant="by_adding", seed=3) as runnable:
        assert "double:by_adding[n=100000]" == runnable.case.name
        assert runnable.case.inputs(3)["x"].on(np).tobytes() == runnable.arrays(["x"])["x"].tobytes()


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        (["tripel"], {}, "unknown kernel 'tripel'; did you mean triple"),
        (["triple", "S1"], {}, "unknown label of triple 'S1'; did you mean S0"),
        (["double", "S7"], {}, "unknown label 'S7'; did you mean S"),
        (["double"], {"variant": "by_ading"}, "unknown variant of double 'by_ading'; did you mean by_adding"),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest(words, more, message):
    with pytest.raises(UsageError, match=message):
        prepared(*words, **more)
