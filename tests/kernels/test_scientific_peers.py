"""Set-ups of peers by CUB, cuStateVec, cuVS and XLA, with stand-ins for the libraries and for CuPy."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from prism_bench.spec.peer import Peer
from tests.built_in import CATALOGUE

SPECS = {case.kernel: case.spec for case in CATALOGUE.cases()}
PEERS = [(kernel, name, spec.peer(name)) for kernel, spec in SPECS.items() for name in spec.peers]
LONGEST_TEXT = 160
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


def included(name: str) -> Any:
    return importlib.import_module(f"prism_bench_catalogue.peers.{name}")


class Kernel:
    """CuPy's RawKernel, which does nothing here."""

    def __init__(self, source: str, name: str) -> None: ...

    def __call__(self, *launch: object) -> None: ...


class DeviceArray(np.ndarray):
    """An array whose memory has an address by CuPy's name."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


def state(qubits: int) -> Any:
    return np.ones((1 << qubits, 2), "float32").view(DeviceArray)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """NumPy with what the set-ups ask of CuPy; `made` lists the arrays that were allocated."""
    stand_in: Any = ModuleType("cupy")
    made: list[tuple[Any, str]] = []

    def empty(shape: Any, dtype: str) -> Any:
        made.append((shape, dtype))
        return np.empty(shape, dtype).view(DeviceArray)

    stream = SimpleNamespace(ptr=7, synchronize=lambda: None)
    stand_in.made, stand_in.empty, stand_in.empty_like = made, empty, np.empty_like
    stand_in.arange, stand_in.RawKernel, stand_in.from_dlpack = np.arange, Kernel, np.asarray
    device = SimpleNamespace(get_cublas_handle=lambda: 1)
    stand_in.cuda = SimpleNamespace(get_current_stream=lambda: stream, device=device)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    return stand_in


class Algorithm:
    """An algorithm of cuda.compute that adds up what it is given, and notes its calls."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def __call__(self, *, temp_storage: Any, d_in: Any, d_out: Any, **rest: Any) -> int:
        self._log.append("size" if temp_storage is None else "run")
        if temp_storage is not None:
            d_out[...] = np.sum(d_in)
        return 64


def standing_cub(log: list[str]) -> Any:
    def make(**arguments: Any) -> Algorithm:
        log.append("build")
        return Algorithm(log)

    kinds = SimpleNamespace(PLUS="plus", MAXIMUM="maximum")
    return SimpleNamespace(make_reduce_into=make, make_segmented_reduce=make, OpKind=kinds)


def test_cub_is_built_once_and_a_call_enqueues_the_algorithm_alone(cupy: Any) -> None:
    log: list[str] = []
    call = included("cub_peers").sums(standing_cub(log), (np.arange(5, dtype="float32"),))
    allocated = list(cupy.made)
    assert (["build", "size"], [((1), "float32"), (64, "uint8")]) == (log, allocated)
    assert [[10.0], [10.0]] == [call().tolist(), call().tolist()]
    assert (["build", "size", "run", "run"], allocated) == (log, cupy.made)


def test_rows_are_segments_and_one_row_is_a_sum(cupy: Any) -> None:
    peers, log = included("cub_peers"), []
    assert (4,) == peers.row_sums(standing_cub(log), (np.ones((4, 3), "float32"),))().shape
    assert (1,) == peers.row_sums(standing_cub(log), (np.ones((1, 3), "float32"),))().shape


def test_a_scan_of_several_rows_is_refused(cupy: Any) -> None:
    with pytest.raises(ValueError, match="has no scan by segments"):
        included("cub_peers").running_sums(standing_cub([]), np.ones((2, 3), "float32"))


def test_elements_are_made_by_code_that_is_named_after_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    peers, sources = included("cub_peers"), []
    monkeypatch.setattr(peers, "device_code", lambda source: sources.append(source) or b"code")
    operators: Any = ModuleType("cuda.compute.op")
    operators.RawOp = lambda ltoir, name: name
    monkeypatch.setitem(sys.modules, "cuda.compute.op", operators)
    given = [("v[0] * v[0]", "float"), ("v[0] * v[1]", "float"), ("v[0] * v[0]", "int")]
    names = [peers.operator_of(None, expression, "float", result) for expression, result in given]
    assert 3 == len(set(names))
    assert all(f"void {name}(void*" in source for name, source in zip(names, sources, strict=True))
    assert "*static_cast<float*>(result) = v[0] * v[1];" in sources[1]
    assert ("0.1f", "1e-30f", "2.0f") == tuple(map(peers.number, (0.1, np.float64(1e-30), 2)))


class Gates:
    """The C interface of cuStateVec, with the status that every function returns."""

    def __init__(self, status: int = 0) -> None:
        self.calls: list[str] = []
        self._status = status

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: object) -> int:
            self.calls.append(name.removeprefix("custatevec"))
            return self._status

        return function


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch, cupy: ModuleType, tmp_path: Path) -> tuple[Gates, Any]:
    """The library, and a package that holds it."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcustatevec.so.1").touch()
    library, package = Gates(), SimpleNamespace(__path__=[str(tmp_path)])
    monkeypatch.setattr(included("custatevec_peers"), "opened", lambda place: library)
    return library, package


def test_a_gate_is_set_up_once_and_changes_a_copy_of_the_state(gates: tuple[Gates, Any]) -> None:
    (library, package), psi = gates, state(3)
    call = included("custatevec_peers").gate(package, psi, np.eye(2), (1,))
    set_up = ["Create", "SetStream", "ApplyMatrixGetWorkspaceSize"]
    assert set_up == library.calls
    assert call() is call()
    assert call() is not psi
    assert [*set_up, *["ApplyMatrix"] * 3] == library.calls


def test_probabilities_are_one_call_in_double_precision(gates: tuple[Gates, Any]) -> None:
    (library, package), psi = gates, state(3)
    call = included("custatevec_peers").Register(package, psi).probabilities((0, 2))
    assert ((4,), "float64") == ((p := call()).shape, p.dtype)
    assert ["Create", "SetStream", "Abs2SumArray"] == library.calls


def test_a_status_of_custatevec_is_an_error(gates: tuple[Gates, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    peers, (_, package) = included("custatevec_peers"), gates
    monkeypatch.setattr(peers, "opened", lambda place: Gates(status=7))
    with pytest.raises(RuntimeError, match="cuStateVec reports status 7"):
        peers.Register(package, state(1))


def test_a_package_without_the_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no libcustatevec.so.1 in "):
        included("custatevec_peers").folder(SimpleNamespace(__path__=[str(tmp_path)]))


def test_neighbours_are_indexed_once_and_searched_by_every_call(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    brute: Any = ModuleType("cuvs.neighbors.brute_force")
    brute.build = lambda points, metric, resources: log.append(f"build {metric} on {resources}")

    def search(index: Any, points: Any, k: int, neighbors: Any, distances: Any, resources: Any) -> None:
        log.append("search")
        distances[:], neighbors[:] = np.arange(k), np.arange(k)

    brute.search = search
    monkeypatch.setitem(sys.modules, "cuvs.neighbors.brute_force", brute)
    common = SimpleNamespace(Resources=lambda stream: f"stream {stream}")
    monkeypatch.setitem(sys.modules, "cuvs.common", common)  # pyright: ignore[reportArgumentType] - a stand-in
    peer = SPECS["knn_distances_chebyshev:indices"].peer("cuvs")
    call = peer.call(None, np.ones((6, 2), "float32"), 3)
    assert ["build chebyshev on stream 7"] == log
    assert [[3.0] * 6, [[1, 2, 3]] * 6] == [part.tolist() for part in call()]
    assert ["build chebyshev on stream 7", "search"] == log


class Xla:
    """JAX with arrays of NumPy: `ready` says whether results are there while the stream is still busy."""

    def __init__(self, ready: bool) -> None:
        self.log: list[str] = []
        self._ready = ready
        self.devices = lambda: self.log.append(f"devices {os.environ[PREALLOCATE]}")
        self.dlpack = SimpleNamespace(from_dlpack=self._adopted)
        self.tree_util = SimpleNamespace(tree_leaves=lambda tree: [SimpleNamespace(is_ready=lambda: ready)])

    def _adopted(self, array: Any) -> Any:
        self.log.append("wait")
        return array

    def jit(self, function: Callable[..., Any]) -> Any:
        def lower(**arrays: Any) -> Any:
            self.log.append("compile")
            return SimpleNamespace(compile=lambda: function)

        return SimpleNamespace(lower=lower)

    def block_until_ready(self, tree: Any) -> Any:
        return tree


def scaled(jax: Any, x: Any, factor: float) -> Any:
    return factor * x


def test_xla_compiles_once_and_waits_for_the_stream_in_every_call(cupy: Any) -> None:
    jax = Xla(ready=False)
    call = included("xla_peers").by_xla(scaled)(jax, x=np.ones(3), factor=2.0)
    assert 1 == jax.log.count("compile")
    before = jax.log.count("wait")
    assert [[2.0] * 3] * 2 == [call().tolist(), call().tolist()]
    assert (before + 2, 1) == (jax.log.count("wait"), jax.log.count("compile"))


def test_xla_that_does_not_wait_for_the_stream_is_refused(cupy: Any) -> None:
    with pytest.raises(RuntimeError, match="does not wait for the timed stream"):
        included("xla_peers").by_xla(scaled)(Xla(ready=True), x=np.ones(3), factor=2.0)


@pytest.mark.parametrize("before", [None, "true"])
def test_xla_takes_no_memory_ahead_and_leaves_the_environment(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv(PREALLOCATE, raising=False)
    if before:
        monkeypatch.setenv(PREALLOCATE, before)
    jax = Xla(ready=False)
    included("xla_peers").by_xla(scaled)(jax, x=np.ones(3), factor=2.0)
    assert ("devices false", before) == (jax.log[0], os.environ.get(PREALLOCATE))


def test_an_xla_peer_asks_for_what_its_function_asks_for() -> None:
    peer = Peer(included("xla_peers").by_xla(scaled), prepares=True)
    assert "jax" == peer.library.name


@pytest.mark.parametrize(("kernel", "name", "peer"), PEERS, ids=lambda value: value if isinstance(value, str) else "")
def test_texts_of_a_peer_are_short_and_begin_in_lower_case_or_with_a_name(kernel: str, name: str, peer: Peer) -> None:
    for text in filter(None, (peer.poor, peer.work)):
        assert len(text) < LONGEST_TEXT
        assert not text.endswith(".")
        assert "\n" not in text


def test_every_poor_way_has_a_better_peer_in_its_spec() -> None:
    poor = {kernel for kernel, _, peer in PEERS if peer.poor}
    assert poor
    assert [] == [kernel for kernel in sorted(poor)
                  if all(peer.poor for other, _, peer in PEERS if other == kernel)]  # fmt: skip


def test_libraries_that_prepare_allocate_nothing_in_a_spec_s_own_call() -> None:
    direct = {"torch", "cupy", "liger", "flash_attn", "flashinfer", "quack", "nvmath"}
    assert [] == [(kernel, name) for kernel, name, peer in PEERS
                  if peer.library.name not in direct and not peer.prepares]  # fmt: skip


def test_distances_by_cuvs_are_infinite_from_a_point_to_itself(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    distance: Any = ModuleType("cuvs.distance")

    def pairwise_distance(x: Any, y: Any, out: Any, metric: str, resources: Any) -> None:
        out[...] = np.abs(x[:, None] - y[None]).max(axis=2)

    distance.pairwise_distance = pairwise_distance
    cupy.fill_diagonal, cupy.concatenate = np.fill_diagonal, np.concatenate
    monkeypatch.setitem(sys.modules, "cuvs.distance", distance)
    common = SimpleNamespace(Resources=lambda stream: None)
    monkeypatch.setitem(sys.modules, "cuvs.common", common)  # pyright: ignore[reportArgumentType] - a stand-in
    peers = included("cuvs_peers")
    points = peers.joined(np.array([0.0, 1.0]), np.array([[5.0, 0.0], [5.0, 3.0]]))
    assert [[np.inf, 3.0], [3.0, np.inf]] == peers.pairwise_distances(None, points)().tolist()
