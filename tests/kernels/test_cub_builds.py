"""Builds of CUB's algorithms on disk: loaded by later processes, and made anew for other code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels import test_scientific_peers
from tests.kernels.test_scientific_peers import Algorithm, included, standing_cub

cupy = test_scientific_peers.cupy


def test_a_build_is_kept_for_later_processes_by_all_that_its_code_depends_on(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    peers, log = included("cub_peers"), list[str]()
    monkeypatch.setattr(peers, "_circumstances", lambda: ("1.2", "13.0", "sm_90"))
    cub = standing_cub(log)
    cub.serialize, cub.deserialize = lambda algorithm: b"code", lambda code: (log.append("load"), Algorithm(log))[1]
    x, y = np.arange(5, dtype="float32"), np.arange(7, dtype="float32")
    assert [[10.0], [21.0], [6.0]] == [peers.sums(cub, (one,))().tolist() for one in (x, y, y[:4])]
    assert ["build", "size", "run", "load", "size", "run", "load", "size", "run"] == log
    for made in (lambda: peers.largest(cub, x), lambda: peers.sums(cub, (x.astype("float64"),))):
        log.clear()
        made()
        assert ["build", "size"] == log
    monkeypatch.setattr(peers, "_circumstances", lambda: ("1.3", "13.0", "sm_90"))
    log.clear()
    peers.sums(cub, (x,))
    assert ["build", "size"] == log


@pytest.mark.parametrize("broken", ["serialize", "deserialize"])
def test_an_algorithm_that_cannot_be_written_or_read_is_built_in_each_process(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broken: str
) -> None:
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    peers, log = included("cub_peers"), list[str]()
    monkeypatch.setattr(peers, "_circumstances", lambda: ("1.2", "13.0", "sm_90"))

    def fail(given: object) -> object:
        raise RuntimeError("no such code")

    cub = standing_cub(log)
    cub.serialize, cub.deserialize = lambda algorithm: b"code", lambda code: Algorithm(log)
    setattr(cub, broken, fail)
    x = np.arange(5, dtype="float32")
    assert [[10.0], [10.0]] == [peers.sums(cub, (x,))().tolist() for _ in range(2)]
    assert 2 == log.count("build")
