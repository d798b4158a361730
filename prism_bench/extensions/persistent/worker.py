"""The worker: the process that serves the queue, so that a hang or a crash ends with it.

Started as `python -m prism_bench.extensions.persistent.worker CHANNEL BACKEND BOARD SLOTS`, with the inherited
descriptors of a socket and of the board. It reports its device, receives the programs and the form in which to serve
them, and then writes and reads arrays. It ends with the stop request, or when the other end of the socket closes.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.extensions.persistent.executor import LAUNCHES, PERSISTENT
from prism_bench.extensions.persistent.process import (
    HOST_MESSAGES,
    ArrayContent,
    ArrayWritten,
    DeviceMessage,
    HostMessage,
    ReadArray,
    ServeOrder,
    ServingMessage,
    WorkerMessage,
    WriteArray,
    unpack_programs,
)
from prism_bench.extensions.persistent.queue import (
    NO_SUCH_PROGRAM,
    STOP_PROGRAM,
    Board,
    Machine,
    Served,
    message,
    number_of,
    open_machine,
    served,
    slot_of,
    ticket_of,
)
from prism_bench.io.channels import Frame, FrameChannel, FrameError
from prism_bench.io.workers import Refusal, end_with

_LOOK_SECONDS = 0.01  # wait for a message before each look at the queue kernel


class LaunchingServer:
    """Server of the board on the host, which launches the program's kernels for every item."""

    def __init__(self, machine: Machine, order: Served, board: Board) -> None:
        self._board, self._ticket = board, 1
        self._launchers = [machine.launcher(order, program) for program in order.programs]

    def step(self) -> bool:
        """Serve the next item, if any; return False once the stop has been served."""
        slot = slot_of(self._ticket, self._board.slots)
        request = self._board.requests[slot]
        self._board.pulse[0] += 1
        if ticket_of(request) != self._ticket:
            return True
        number = number_of(request)
        known = number < len(self._launchers)
        if known:
            self._launchers[number]()
        self._board.answers[slot] = message(self._ticket, 0 if known or number == STOP_PROGRAM else NO_SUCH_PROGRAM)
        self._ticket += 1
        return number != STOP_PROGRAM


class Worker:
    """Server of an order on a machine and a board."""

    def __init__(self, channel: FrameChannel, machine: Machine, board: Board) -> None:
        self._channel, self._machine, self._board = channel, machine, board
        self._server: LaunchingServer | None = None

    def start(self) -> None:
        """Receive the order, allocate its arrays and begin to serve; report the form, and a reason if it differs."""
        frame = self._channel.receive(HOST_MESSAGES)
        if not isinstance(frame.message, ServeOrder):
            raise FrameError(f"the first message is {type(frame.message).__name__}, not ServeOrder")
        form, reason = frame.message.form, None
        self._order = served(unpack_programs(frame.message, frame.arrays), Path(frame.message.source))
        self._machine.allocate(self._order)
        if form == PERSISTENT:
            try:
                self._machine.serve(self._order, self._board)
            except BackendUnavailable as error:
                form, reason = LAUNCHES, str(error)
        if form == LAUNCHES:
            self._server = LaunchingServer(self._machine, self._order, self._board)
        self._channel.send(ServingMessage(form, reason))

    def run(self) -> None:
        """Serve until the stop, and answer messages in between."""
        while self._server.step() if self._server else self._machine.serving():
            if self._channel.has_data(0.0 if self._server else _LOOK_SECONDS):
                self._channel.send(*self._reply(self._channel.receive(HOST_MESSAGES)))

    def _reply(self, frame: Frame[HostMessage]) -> tuple[WorkerMessage, Sequence[np.ndarray]]:
        """Return the answer to a message, and its arrays."""
        match frame.message:
            case WriteArray(program=program, array=array):
                self._machine.write(self._order.offsets[program, array], frame.arrays[0])
                return ArrayWritten(), ()
            case ReadArray(program=program, array=array, nbytes=nbytes):
                content = self._machine.read(self._order.offsets[program, array], nbytes)
                return ArrayContent(), (np.frombuffer(content, np.uint8),)
            case ServeOrder():
                raise FrameError("an order comes once")


def main(descriptor: str, backend: str, board: str, slots: str) -> None:
    """Serve until the stop, then end at once: the orderly end of a device would wait for an endless kernel."""
    end_with(int(descriptor))
    channel = FrameChannel.inherited(int(descriptor))
    try:
        machine = open_machine(backend)
        channel.send(DeviceMessage.of(machine.device))
        worker = Worker(channel, machine, Board(int(slots), int(board)))
        worker.start()
        worker.run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)
    except PrismBenchError as error:
        print(error, file=sys.stderr, flush=True)
        channel.send(Refusal.of(error))
        os._exit(error.exit_code)
    except Exception as error:  # a device's own errors have no common type; the host reports the last line
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
