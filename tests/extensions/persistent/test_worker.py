"""The worker with a machine that cannot serve a queue, and its fallback to launches."""

import socket

import pytest

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.persistent.executor import LAUNCHES, PERSISTENT
from prism_bench.extensions.persistent.process import WORKER_MESSAGES, ServingMessage, pack_order
from prism_bench.extensions.persistent.queue import (
    CHAINS,
    NO_SUCH_PROGRAM,
    STOP_PROGRAM,
    Board,
    Machine,
    Program,
    message,
    open_machine,
    served,
)
from prism_bench.extensions.persistent.worker import LaunchingServer, Worker
from prism_bench.io.channels import FrameChannel
from prism_bench.spec.case import Device


class OldMachine(Machine):
    """A device without cooperative launches, which lists the launched programs."""

    device = Device()

    def __init__(self):
        self.launched = []

    def allocate(self, served):
        pass

    def serve(self, served, board):
        raise BackendUnavailable("an old one offers no cooperative launches")

    def serving(self):
        raise AssertionError("nothing is served")

    def launcher(self, served, program):
        return lambda: self.launched.append(program.name)

    def write(self, offset, values):
        pass

    def read(self, offset, nbytes):
        return b""


@pytest.fixture
def channels():
    both = [FrameChannel(end) for end in socket.socketpair()]
    yield both
    for channel in both:
        channel.close()


def test_worker_launches_kernels_without_a_queue_kernel(channels):
    ours, theirs = channels
    ours.send(*pack_order((Program("first"), Program("second")), CHAINS, PERSISTENT))
    board, machine = Board(4), OldMachine()
    worker = Worker(theirs, machine, board)
    worker.start()
    assert (
        ServingMessage(LAUNCHES, "an old one offers no cooperative launches") == ours.receive(WORKER_MESSAGES).message
    )
    for ticket, number in enumerate((1, 0, STOP_PROGRAM), start=1):
        board.requests[ticket] = message(ticket, number)
    worker.run()
    assert ["second", "first"] == machine.launched
    assert [message(ticket, 0) for ticket in (1, 2, 3)] == board.answers[1:4].tolist()
    assert board.pulse[0] > 0


def test_a_request_for_no_program_is_answered_with_its_error():
    board = Board(2)
    server = LaunchingServer(OldMachine(), served([Program("only")]), board)
    board.requests[1] = message(1, 5)
    assert server.step()
    assert message(1, NO_SUCH_PROGRAM) == board.answers[1]


def test_server_waits_for_the_next_request():
    board = Board(2)
    server = LaunchingServer(OldMachine(), served([Program("only")]), board)
    assert server.step()
    assert [0, 0] == board.answers[:2].tolist()


def test_only_some_backends_serve():
    with pytest.raises(UsageError, match="backend 'null' serves no queue; cuda and emulator do"):
        open_machine("null")
