"""PyTorch's peers of the steps of transfer entropy: slabs of distances, radii, counts, and the sizes they refuse."""

import importlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The peers, with slabs of three rows."""
    importlib.import_module("prism_bench.catalogue").discover()
    module = importlib.import_module("prism_bench_catalogue.peers.te_peers")
    monkeypatch.setattr(module, "SLAB", 3)
    return module


def points() -> tuple[Any, Any, Any]:
    """Seven points of a plane and a series, and their distances in the maximum norm."""
    plane, series = np.random.default_rng(5).normal(size=(2, 7, 2))
    joint = np.concatenate((plane, series[:, :1]), axis=1).astype("float32")
    distances = np.abs(joint[:, None] - joint[None]).max(axis=2)
    return torch.as_tensor(joint[:, :2]), torch.as_tensor(joint[:, 2]), distances


def test_radii_leave_out_the_point_itself(peers: Any) -> None:
    plane, series, distances = points()
    expected = np.sort(distances, axis=1)[:, 2]
    assert expected.tolist() == peers.radii_of(torch, 2, plane, series).tolist()


def test_counts_are_of_points_strictly_nearer(peers: Any) -> None:
    plane, series, distances = points()
    eps = np.sort(distances, axis=1)[:, 3].copy()
    assert [2] * 7 == peers.counts_within(torch, torch.as_tensor(eps), plane, series).tolist()


def test_sizes_that_take_a_second_are_refused(peers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MOST_EAGER", 6)
    plane, series, _ = points()
    with pytest.raises(ValueError, match="about a second a call"):
        peers.radii_of(torch, 2, plane, series)
    with pytest.raises(ValueError, match="eager mode takes about a second"):
        peers.counts_within(torch, series, plane)
