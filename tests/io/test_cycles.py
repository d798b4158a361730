"""The cycle collector is paused in a block, and is afterwards as it was, whatever the block raised."""

import gc

import pytest

from prism_bench.io.documents import no_collection


def test_it_is_paused_and_resumed():
    assert gc.isenabled()
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError), no_collection():
        raise ValueError
    assert gc.isenabled()
