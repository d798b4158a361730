"""Launches heard through a CUPTI that is played: parameters as C lays them out, in; operations, out."""

import ctypes

import pytest

from prism_bench.backends.cuda import inspection
from prism_bench.backends.cuda.inspection import Operation, listening
from prism_bench.errors import BackendUnavailable

STREAM, EVENT = 0x7F00AA, 0x7F00EE


class Cupti:
    """It subscribes one listener, and calls it with what is played."""

    def __init__(self, status=0):
        self.status, self.enabled = status, {}
        self.heard = None

    def cuptiSubscribe(self, handle, callback, user):  # noqa: N802 - CUPTI's own names
        self.heard = callback
        return self.status

    def cuptiEnableDomain(self, on, handle, domain):  # noqa: N802
        self.enabled[domain] = on

    def cuptiUnsubscribe(self, handle):  # noqa: N802
        self.heard = None

    def call(self, name, packed, site=0):
        """The driver or runtime is asked for something with these parameters."""
        memory = ctypes.create_string_buffer(packed)
        data = inspection._Data(site=site, function=name.encode(), parameters=ctypes.addressof(memory))
        self.heard(None, 1, 0, ctypes.pointer(data))


def struct(**fields):
    """Parameters as a C compiler lays them out."""
    kinds = [(name, type(value)) for name, value in fields.items()]
    return bytes(type("Parameters", (ctypes.Structure,), {"_fields_": kinds})(*fields.values()))


WORD, NUMBER = ctypes.c_uint64, ctypes.c_uint
DIM = {f"extent{i}": NUMBER(1) for i in range(6)}
SET = {"target": WORD(1), "value": NUMBER(0), "count": ctypes.c_size_t(8), "stream": WORD(STREAM)}
CALLS = {
    "cuLaunchKernel": struct(f=WORD(1), **DIM, shared=NUMBER(0), stream=WORD(STREAM), arguments=WORD(0)),
    "cudaLaunchKernel_v7000": struct(f=WORD(1), **DIM, arguments=WORD(0), shared=WORD(0), stream=WORD(STREAM)),
    "cuGraphLaunch_ptsz": struct(graph=WORD(1), stream=WORD(STREAM)),
    "cuMemcpyHtoDAsync_v2": struct(to=WORD(1), source=WORD(1), count=WORD(8), stream=WORD(STREAM)),
    "cudaMemcpyAsync_v3020": struct(to=WORD(1), source=WORD(1), count=WORD(8), kind=NUMBER(1), stream=WORD(STREAM)),
    "cudaMemsetAsync": struct(**SET),
    "cuMemsetD32Async": struct(**SET),
    "cuMemsetD2D8Async": struct(to=WORD(1), pitch=WORD(1), value=NUMBER(0), width=WORD(1), height=WORD(1),
                                stream=WORD(STREAM)),
}  # fmt: skip


def heard(name, packed, **more):
    cupti = Cupti()
    with listening(cupti) as operations:
        assert {1: 1, 2: 1} == cupti.enabled
        cupti.call(name, packed, **more)
    assert ({1: 0, 2: 0}, None) == (cupti.enabled, cupti.heard)
    return operations


@pytest.mark.parametrize("name", CALLS)
def test_work_is_heard_with_its_stream(name):
    (one,) = heard(name, CALLS[name])
    assert ("work", STREAM) == (one.kind, one.stream)
    assert name.startswith(one.name)


@pytest.mark.parametrize(
    ("name", "before"),
    [("cuLaunchKernelEx", {**DIM, "shared": NUMBER(0)}), ("cudaLaunchKernelExC", {**DIM, "shared": WORD(0)})],
)
def test_a_launch_by_its_configuration_is_heard(name, before):
    configuration = ctypes.create_string_buffer(struct(**before, stream=WORD(STREAM)))
    (one,) = heard(name, struct(config=WORD(ctypes.addressof(configuration)), f=WORD(1)))
    assert STREAM == one.stream


def test_events_tie_streams_together():
    recorded = heard("cudaEventRecordWithFlags", struct(event=WORD(EVENT), stream=WORD(STREAM), flags=NUMBER(0)))
    waited = heard("cuStreamWaitEvent", struct(stream=WORD(STREAM), event=WORD(EVENT), flags=NUMBER(0)))
    assert [Operation("record", "cudaEventRecordWithFlags", STREAM, EVENT)] == recorded
    assert [Operation("wait", "cuStreamWaitEvent", STREAM, EVENT)] == waited


@pytest.mark.parametrize(
    ("name", "packed", "pins"),
    [
        ("cuCtxSetLimit", struct(limit=NUMBER(6), value=WORD(1 << 20)), True),
        ("cuCtxSetLimit", struct(limit=NUMBER(0), value=WORD(1 << 20)), False),
        ("cudaStreamSetAttribute", struct(stream=WORD(STREAM), attribute=NUMBER(1), value=WORD(0)), True),
        ("cudaStreamSetAttribute", struct(stream=WORD(STREAM), attribute=NUMBER(3), value=WORD(0)), False),
        ("cuMemAlloc_v2", struct(pointer=WORD(0), count=WORD(8)), False),
    ],
)
def test_only_what_sets_cache_aside_is_heard_of_other_calls(name, packed, pins):
    assert pins == bool(heard(name, packed))


def test_a_call_is_heard_once_and_not_at_its_end_again():
    assert [] == heard("cuLaunchKernel", CALLS["cuLaunchKernel"], site=1)


def test_where_another_tool_listens_nobody_else_can():
    with pytest.raises(BackendUnavailable, match="error 39"), listening(Cupti(status=39)):
        pytest.fail("it must not begin")


def test_without_the_library_there_is_a_reason(monkeypatch):
    monkeypatch.setattr(inspection, "_loaded", list)
    monkeypatch.setattr(inspection, "_installed", lambda: iter(["/nowhere/libcupti.so.99"]))
    with pytest.raises(BackendUnavailable, match="CUPTI's library is not there"), listening():
        pytest.fail("it must not begin")
