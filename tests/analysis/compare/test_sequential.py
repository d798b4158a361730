"""When processes are judged while more are measured."""

import pytest

from prism_bench.analysis.compare import MOST, START
from prism_bench.analysis.compare.verdict import looks_of


@pytest.mark.parametrize(("start", "most", "looks"), [(START, MOST, (3, 5, 7, 10, 15)), (3, 3, (3,)), (1, 4, (1, 3, 4)),
                                                      (5, 6, (5, 6))])  # fmt: skip
def test_each_look_has_half_as_many_again(start, most, looks):
    assert looks == looks_of(start, most)
