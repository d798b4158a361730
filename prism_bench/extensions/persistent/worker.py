"""The worker: the process in which the queue is served, so that a hang or a crash can be ended with it.

Started as `python -m prism_bench.extensions.persistent.worker BACKEND CHANNEL BOARD SLOTS`, with the inherited
descriptors of a connection and of the board. It reports its device, receives the programs and the form in which to
serve them, and then answers questions: `write`, `read`. It ends with the stop request, or when the other side of
the connection closes.
"""

import os
import sys
from multiprocessing.connection import Connection

from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.extensions.persistent.board import Board
from prism_bench.extensions.persistent.layout import (
    NO_SUCH_PROGRAM,
    STOP_PROGRAM,
    message,
    number_of,
    slot_of,
    ticket_of,
)
from prism_bench.extensions.persistent.machine import Machine, open_machine
from prism_bench.extensions.persistent.program import Served, served
from prism_bench.extensions.persistent.settings import LAUNCHES, PERSISTENT
from prism_bench.workers.child import end_with

LOOK_SECONDS = 0.01  # how long the worker waits for a question before it looks at the queue kernel


class LaunchingServer:
    """Serves the board from the host: the program's kernels are launched for every item."""

    def __init__(self, machine: Machine, order: Served, board: Board):
        self._board, self._ticket = board, 1
        self._launchers = [machine.launcher(order, program) for program in order.programs]

    def step(self) -> bool:
        """Serve the next item, if there is one; False once the stop has been served."""
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
    """One machine, one order, one board."""

    def __init__(self, channel: Connection, machine: Machine, board: Board):
        self._channel, self._machine, self._board = channel, machine, board

    def start(self) -> None:
        """Take the order, settle in and begin to serve; tells the form, and why it is not the one asked for."""
        programs, source, form = self._channel.recv()
        self._order, self._server, reason = served(programs, source), None, None
        self._machine.settle_in(self._order)
        if form == PERSISTENT:
            try:
                self._machine.serve(self._order, self._board)
            except BackendUnavailable as error:
                form, reason = LAUNCHES, str(error)
        if form == LAUNCHES:
            self._server = LaunchingServer(self._machine, self._order, self._board)
        self._channel.send((form, reason))

    def run(self) -> None:
        """Until the stop is served."""
        while self._server.step() if self._server else self._machine.serving():
            if self._channel.poll(0 if self._server else LOOK_SECONDS):
                method, arguments = self._channel.recv()
                self._channel.send(getattr(self, method)(*arguments))

    def write(self, program: str, array: str, values) -> None:
        """Copy the values to where the array lies."""
        self._machine.write(self._order.offsets[program, array], values)

    def read(self, program: str, array: str, nbytes: int) -> bytes:
        """The bytes of the array."""
        return self._machine.read(self._order.offsets[program, array], nbytes)


def main(backend: str, channel: str, board: str, slots: str) -> None:
    """Serve until told to stop. The process ends at once then: a device's tidy end would wait for what never ends."""
    end_with(int(channel))
    connection = Connection(int(channel))
    try:
        machine = open_machine(backend)
        connection.send(machine.device)
        worker = Worker(connection, machine, Board(int(slots), int(board)))
        worker.start()
        worker.run()
    except (EOFError, BrokenPipeError):
        os._exit(0)
    except PrismBenchError as error:
        print(error, file=sys.stderr, flush=True)
        connection.send(error)
        os._exit(error.exit_code)
    except Exception as error:  # a device's own errors have no common type; the last line on standard error is told
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
