"""The one place where tests that need a GPU, or captures that are not ours to ship, are skipped."""

import gc
import os
import socket
import sys
import threading
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.changed import SINCE, changed_since, unreached, users
from tests.forked_workers import forked
from tests.wheel import installed_wheel

gc.disable()  # until all tests are collected: half a million objects that stay are not looked through again and again

for _size in ("COLUMNS", "LINES"):  # GNU readline, which pytest imports, exports them without any terminal
    os.environ.pop(_size, None)
    os.unsetenv(_size)


def own_gpu(worker: str, named: str, devices: int) -> str | None:
    """Return what CUDA_VISIBLE_DEVICES is to be in a test process: one GPU of several for each; None to leave it."""
    ours = named.split(",") if named else [str(device) for device in range(devices)]
    return ours[int(worker.removeprefix("gw")) % len(ours)] if worker and len(ours) > 1 else None


_gpu = own_gpu(
    os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    len(list(Path("/dev").glob("nvidia[0-9]*"))),
)  # fmt: skip
if _gpu:
    os.environ["CUDA_VISIBLE_DEVICES"] = _gpu

with suppress(ImportError):  # the machines with a GPU lack it
    from hypothesis import settings

    settings.load_profile("ci")  # the same examples in each run, and no limit of time, which busy cores would pass

SAMPLES = "PRISM_BENCH_SAMPLES"  # a folder of other people's profiler captures


@pytest.fixture
def samples():
    """The folder of others' captures; the test is skipped where it is absent."""
    folder = Path(os.environ.get(SAMPLES) or Path(__file__).resolve().parents[2] / "shared" / "samples")
    if not folder.is_dir():
        pytest.skip(f"no captures at {folder}; {SAMPLES} names their folder")
    return folder


@pytest.fixture
def foreign_port():
    """A function that returns a loopback port where a server sends `answer` to each connection, and keeps it open."""
    with ExitStack() as stack:

        def serve(answer):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            stack.callback(server.shutdown, socket.SHUT_RDWR)  # wakes the thread

            def accept():
                with suppress(OSError):  # the test is over
                    while True:
                        connection, _ = server.accept()
                        stack.callback(connection.close)
                        with suppress(OSError):  # nobody reads it any more
                            connection.sendall(answer)

            threading.Thread(target=accept, daemon=True).start()
            return server.getsockname()[1]

        yield serve


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The wheel of this checkout, installed nowhere near it."""
    return installed_wheel(tmp_path_factory)


@pytest.fixture(scope="session", autouse=True)
def workers_are_forked(pytestconfig):
    """Measuring workers are forked, not started, where no GPU would notice the difference."""
    if sys.platform != "linux" or pytestconfig.getoption("--thorough") or list(Path("/dev").glob("nvidia[0-9]*")):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        server = forked(patch)
        yield
        server.end()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Share tests out quickly."""
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.scheduling import Sharing

    return Sharing(config, log)


def pytest_addoption(parser):
    parser.addoption("--thorough", action="store_true", help="run the tests marked thorough, too")


def pytest_collection_modifyitems(config, items):
    """Leave out what is marked `thorough`, and skip what is marked `gpu` where no device answers, with its reason.

    Tests of the whole program come first: a long one at the end would leave the other processes idle.
    """
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)
    if not config.getoption("--thorough"):
        folders = _left_out(Path(__file__).parent / "extensions")
        left = [item for item in items if item.get_closest_marker("thorough") or folders & {*item.path.parents}]
        known = {*left}
        items[:] = [item for item in items if item not in known]
        config.hook.pytest_deselected(items=left)
    needing = [item for item in items if item.get_closest_marker("gpu")]
    missing = _what_is_missing() if needing else None
    if missing:
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=missing))


def _left_out(extensions):
    """The folders of tests of extensions that no change since a commit, which the environment names, can reach."""
    changed = changed_since(os.environ[SINCE]) if os.environ.get(SINCE) else None
    return set() if changed is None else {extensions / name for name in unreached(users(), changed)}


def pytest_collection_finish():
    """Collect garbage again, and pass over what was collected: it stays until the end."""
    gc.freeze()
    gc.enable()


def _what_is_missing():
    from prism_bench.backends.cuda.device import open_cupy
    from prism_bench.errors import BackendUnavailable

    try:
        with warnings.catch_warnings(action="ignore"):  # what a library says of another while it is loaded
            open_cupy()
    except BackendUnavailable as error:
        return str(error)
    return None
