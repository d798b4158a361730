"""Unexpected messages of a worker are errors, and nothing is unpickled."""

import pytest

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.persistent import process
from prism_bench.extensions.persistent.process import DeviceMessage, ServingMessage, ServingProcess
from prism_bench.io.workers import WorkerEnvironment

SENDS = """
import socket, sys, time
from prism_bench.extensions.persistent.process import ArrayContent, DeviceMessage
from prism_bench.io.channels import FrameChannel
import numpy as np
connected = socket.socket(fileno=int(sys.argv[1]))
{}
time.sleep(600)
"""


@pytest.fixture
def sending(tmp_path, monkeypatch):
    """A function that starts a worker with the code of a text."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(process, "_WORKER", WorkerEnvironment("sending_worker"))
    started = []

    def start(text):
        (tmp_path / "sending_worker.py").write_text(SENDS.format(text))
        started.append(ServingProcess("emulator", 4))
        return started[0]

    yield start
    for worker in started:
        worker.end()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import pickle; connected.sendall(pickle.dumps((1, 2, 3)) * 10)", "sent no answer: a frame begins with"),
        ("FrameChannel(connected).send(DeviceMessage(1, 2, 3))", "sent DeviceMessage, not ServingMessage"),
        ("FrameChannel(connected).send(ArrayContent(), [np.zeros(4)])", "the arrays have 32 bytes; the limit is 0"),
        ("print('no memory', file=sys.stderr); sys.exit(3)", r"the worker process ended \(exit status 3\): no memory"),
    ],
)
def test_unexpected_message_is_an_error(sending, text, reason):
    with pytest.raises(BackendUnavailable, match=reason):
        sending(text).receive(ServingMessage)


def test_silent_worker_times_out(sending):
    with pytest.raises(BackendUnavailable, match=r"the worker does not answer within 0.1 s"):
        sending("").receive(DeviceMessage, 0.1)


def test_a_workers_own_error_is_raised():
    worker = ServingProcess("null", 4)
    try:
        with pytest.raises(UsageError, match="backend 'null' serves no queue"):
            worker.receive(DeviceMessage)
    finally:
        worker.end()
