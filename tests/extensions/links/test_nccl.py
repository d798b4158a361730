"""NCCL without NVLink multicast, also if the environment switches it on."""

import os
from types import SimpleNamespace

from prism_bench.extensions.links import groups


def test_multicast_is_off_before_nccl_is_opened(monkeypatch):
    for name in groups.WITHOUT_MULTICAST:
        monkeypatch.setenv(name, "2")  # NCCL's default
    seen = {}

    def opened():
        seen.update({name: os.environ[name] for name in groups.WITHOUT_MULTICAST})
        communicators = SimpleNamespace(initAll=list)
        return SimpleNamespace(NcclCommunicator=communicators, get_version=lambda: 22707)

    monkeypatch.setattr(groups, "_nccl", opened)
    assert "2.27.7" == groups.Communicators(2).version
    assert {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"} == seen
