"""Code that peers built, which all processes share, and choices, which are those of one GPU."""

import pytest

from prism_bench.backends.base import forget_kept_choices, kept_build, kept_choice
from prism_bench.monitor.nvml import VISIBLE


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    monkeypatch.delenv(VISIBLE, raising=False)


def never():
    pytest.fail("it is kept already")


def test_a_choice_is_kept_until_it_is_forgotten():
    assert kept_choice(["product", 3], lambda: b"first") == b"first"
    assert kept_choice(["product", 3], never) == b"first"
    assert (1, 0) == (forget_kept_choices(), forget_kept_choices())
    assert kept_choice(["product", 3], lambda: b"second") == b"second"


def test_boards_of_one_host_choose_for_themselves_and_share_what_was_built(monkeypatch):
    monkeypatch.setenv(VISIBLE, "GPU-1")
    kept_choice(["product"], lambda: b"of the first")
    kept_build(["product"], lambda: b"code")
    monkeypatch.setenv(VISIBLE, "GPU-2")
    assert kept_choice(["product"], lambda: b"of the second") == b"of the second"
    assert kept_build(["product"], never) == b"code"
    assert forget_kept_choices() == 1
    monkeypatch.setenv(VISIBLE, "GPU-1")
    assert kept_choice(["product"], never) == b"of the first"
