"""The scripted NVML of tests/monitor, and a host that looks as a test wants it."""

import pytest

from tests.monitor.conftest import fake_library, gpu, gpus, old_library  # noqa: F401


@pytest.fixture
def driver_loaded(tmp_path, monkeypatch):
    """The kernel driver's device node is there."""
    from prism_bench.doctor import checks

    node = tmp_path / "nvidiactl"
    node.write_text("")
    monkeypatch.setattr(checks, "NODES", node)
