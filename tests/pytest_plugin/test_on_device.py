"""The fixture's measuring on a GPU: a real function, its peer, the copy ceiling, and results that are wrong."""

import pytest

from prism_bench.pytest_plugin.journal import PluginSettings
from prism_bench.pytest_plugin.outcome import TimedTest

pytestmark = pytest.mark.gpu
COUNT = 1 << 26


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    from prism_bench.pytest_plugin.journal import Journal

    folder = tmp_path_factory.mktemp("session")
    return Journal(PluginSettings(folder, folder / "runs"))


@pytest.fixture(scope="module")
def arrays():
    import cupy

    return cupy.random.rand(COUNT, dtype=cupy.float32), cupy.empty(COUNT, cupy.float32)


def test_a_copy_reaches_the_copy_ceiling_and_not_a_tenth_of_its_time(journal, arrays):
    import cupy

    x, y = arrays
    test = TimedTest(lambda x: cupy.copyto(y, x), (x,), out=y, reference=lambda x: x, bytes=8 * COUNT, at_least="60 %")
    found = journal.tested("copy", test)
    assert not found.failed, str(found)
    assert "values against the reference" in found.verified
    impossible = TimedTest(lambda x: cupy.copyto(y, x), (x,), at_most=(found.seconds or 0.0) / 10)
    assert journal.tested("impossible", impossible).failed


def test_half_the_work_is_faster_and_twice_the_work_is_slower_than_the_peer(journal, arrays):
    import cupy

    x, y = arrays

    def once(x):
        cupy.multiply(x, 2, out=y)

    def twice(x):
        cupy.multiply(x, 2, out=y)
        cupy.multiply(x, 2, out=y)

    assert not journal.tested("once", TimedTest(once, (x,), out=y, peer=twice, speedup=1.2)).failed
    slow = journal.tested("twice", TimedTest(twice, (x,), out=y, peer=once))
    assert slow.failed and "not at least 1x as fast as once" in str(slow)


def test_a_wrong_result_has_no_time(journal, arrays):
    x, _ = arrays
    found = journal.tested("wrong", TimedTest(lambda x: x + 1, (x,), reference=lambda x: x))
    assert found.failed and found.times is None


def test_a_kernel_of_the_catalogue(journal):
    found = journal.tested("vector_add", TimedTest("vector_add", (), at_most="1 ms", label="S1"))
    assert not found.failed, str(found)
    assert not journal.close()
