"""Worker processes: start them, exchange messages and events with them, stop them."""

import json
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, BinaryIO, NoReturn, Protocol, TypedDict, Unpack

import msgspec

from prism_bench import errors
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.io.channels import FrameChannel
from prism_bench.io.documents import json_line
from prism_bench.record.schema import Status

# Child processes: what they import, how they ended, and that none outlives its parent.
#
# A child is started with `process_group=0`: a terminal's Ctrl-C reaches only the parent, which decides what to do with
# its children. A child calls `end_with`, so that it ends with its parent however that ends, also by SIGKILL.

_ORPHANED = 2  # the exit status of a child whose parent is gone
MOST_STDERR = 1 << 20  # bytes read from the end of standard error: a stranger's code may write any number
_ASSEMBLERS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
_GRACE_SECONDS = 1.0  # for a child that notices by itself, and ends in order


def environment(root: Path | None = None) -> dict[str, str]:
    """Return the environment in which a process imports what this one does, even if `sys.path` was edited.

    What is at `root` is imported first. What PyTorch's compiler has set for itself is left out.
    """
    paths = [str(root)] if root else []
    paths += [path for path in sys.path if path]
    inherited = {name: value for name, value in os.environ.items() if name not in torch_assemblers(os.environ)}
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths)}


def torch_assemblers(variables: Mapping[str, str]) -> list[str]:
    """Return the names of the variables by which PyTorch's compiler points Triton to the `ptxas` in its own folder.

    It sets them for its process, whose children would compile everybody's Triton kernels with that assembler.
    """
    return [name for name in _ASSEMBLERS if Path(variables.get(name, "")).parts[-3:-1] == ("torch", "bin")]


def usable_cores() -> int:
    """Return how many cores this process may use: a job of a fleet has a share of its host's."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def ending(code: int | None, stderr: BinaryIO) -> str:
    """Return how a process ended, from its exit status, which is None while it runs.

    The last line of its standard error follows: `ended (exit status 1): no memory`.
    """
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - MOST_STDERR))
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    how = "still runs" if code is None else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
    return f"ended ({how})" + (f": {lines[-1][:300]}" if lines else "")


def children_of(pid: int) -> set[int]:
    """Return the children of all threads of a process that were not waited for; an empty set without /proc."""
    children: set[int] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended
            children |= set(map(int, thread.read_text().split()))
    return children


def end_tree(pid: int) -> None:
    """Kill a process that was not waited for, and all that it started: a compiler starts others, which go on."""
    started = children_of(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    for child in started:
        end_tree(child)


def run_program(
    command: Sequence[str], *, variables: Mapping[str, str] | None = None, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output; an error or a signal kills it with all that it started."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            end_tree(process.pid)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def end_with(descriptor: int) -> None:
    """End this process, whatever it is doing, soon after the other end of the pipe or socket `descriptor` closes.

    Nothing is read from it.
    """
    end = select.poll()
    end.register(descriptor, 0)  # a hang-up is reported without being selected

    def wait() -> None:
        end.poll()
        time.sleep(_GRACE_SECONDS)
        end_group()

    Thread(target=wait, daemon=True).start()


def end_with_parent() -> None:
    """Initialize a pool's process that `multiprocessing` started: it ends with its parent and leaves Ctrl-C to it.

    It leads a group, which its compilers belong to. SIGTERM raises Ended, so that it can remove its files.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        if hasattr(os, "setpgid"):
            os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, _leave)
        end_with(parent.sentinel)


def _leave(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # another one would interrupt what removes the files
    raise Ended(_ORPHANED)


class Ended(SystemExit):
    """SIGTERM, in a pool's process."""


def end_group() -> NoReturn:
    """End this process, with its compilers and whatever else it started if it leads a group."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(_ORPHANED)


# Handles of worker processes: start them, exchange messages, end them, and read their last words.

START_SECONDS = 180.0  # until a worker's first message


class Confinement(Protocol):
    """A jail that a worker starts in."""

    def variables(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return all environment variables in the jail, from those that the worker needs."""
        ...

    def command(self, module: str, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs a Python module in the jail."""
        ...


@dataclass(frozen=True)
class WorkerEnvironment:
    """What a worker runs and where: its module, the checkout it is imported from, and environment variables.

    Without a `root` the worker imports what this process does. Python looks into the current folder first, so the
    worker of another checkout runs in that folder. `explain` finds the cause of a death in the text of standard error.
    In a `jail` it has the variables that are given here, and none of this process. A `starter` is the command of a
    program that starts the worker and watches it, as profilers do; it ends with all processes that it started.
    """

    program: str
    root: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    explain: Callable[[str], object | None] = lambda text: None
    jail: Confinement | None = None
    starter: tuple[str, ...] = ()

    def view(self) -> dict[str, str]:
        """Return all environment variables of the worker."""
        inherited = environment(self.root)
        if self.jail:
            return self.jail.variables({"PYTHONPATH": inherited["PYTHONPATH"], **self.variables})
        return {**inherited, **self.variables}

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts the worker with `arguments`."""
        if self.jail:
            return self.jail.command(self.program, arguments)
        return [*self.starter, sys.executable, "-m", self.program, *arguments]


class WorkerStreams(TypedDict, total=False):
    """What a worker's standard input and output are connected to, and the descriptors that it inherits.

    As `stdout`, `subprocess.STDOUT` is the file of standard error.
    """

    stdin: int
    stdout: int
    pass_fds: Collection[int]


class WorkerProcess:
    """A running worker in its own process group, so that a terminal's Ctrl-C reaches only its parent.

    What it writes to standard error is kept in a file until the handle is released. A jailed one has no other output:
    on this process's own, a stranger's code would write what looks like this program's words.
    """

    def __init__(
        self, where: WorkerEnvironment, arguments: Sequence[str] = (), **streams: Unpack[WorkerStreams]
    ) -> None:
        self._stderr, self._explain = tempfile.TemporaryFile(), where.explain
        self._is_jailed = where.jail is not None
        if streams.get("stdout", subprocess.STDOUT if where.jail else None) == subprocess.STDOUT:
            streams["stdout"] = self._stderr.fileno()
        self._process = subprocess.Popen(
            where.command(arguments), stderr=self._stderr, env=where.view(), cwd=where.root, process_group=0, **streams
        )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status, minus the signal's number where a signal ended it; None after `timeout` seconds."""
        try:
            status = self._process.wait(timeout)
            return 128 - status if self._is_jailed and status > 128 else status  # as bubblewrap reports a signal
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the process, whatever it is doing, with its group, such as a compiler that it runs; returns at once."""
        if self._process.returncode is None:  # else the group's number may be another's
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:  # it does not lead the group yet
                self._process.kill()

    def end(self) -> None:
        """Kill the process, whatever it is doing, and close this side's files."""
        self.kill()
        self.wait()
        self.release()

    def stderr_text(self) -> str:
        """Return the end of the process's standard error so far, at most MOST_STDERR bytes."""
        begin = max(0, os.fstat(self._stderr.fileno()).st_size - MOST_STDERR)
        return os.pread(self._stderr.fileno(), MOST_STDERR, begin).decode(errors="replace")

    def ending(self, timeout: float | None = None) -> str:
        """Return how the process ended, with its last line of standard error, after waiting `timeout` seconds."""
        return ending(self.wait(timeout), self._stderr)

    def last_words(self) -> str:
        """Return why the process ended, after waiting for that: the cause that `explain` finds, or its last line."""
        self.wait()
        cause = self._explain(self.stderr_text())
        return str(cause) if cause else f"the process {self.ending()}"

    def release(self) -> None:
        """Close this side's files; the process has ended or is of no more interest."""
        self._stderr.close()


class FrameWorker(WorkerProcess):
    """A worker that exchanges frames: its module is started with the descriptor of its channel and `arguments`.

    Behind a starter, which may close what it does not know, the channel is standard input.
    """

    def __init__(
        self, where: WorkerEnvironment, arguments: Sequence[str] = (), **streams: Unpack[WorkerStreams]
    ) -> None:
        ours, theirs = socket.socketpair()
        descriptor = theirs.fileno()
        number = 0 if where.starter else descriptor
        if where.starter:
            streams["stdin"] = descriptor
        else:
            inherited = (descriptor, *streams.get("pass_fds", ()))
            streams = {"stdin": subprocess.DEVNULL, **streams, "pass_fds": inherited}
        with theirs:
            super().__init__(where, [str(number), *arguments], **streams)
        self.channel = FrameChannel(ours)

    def finish(self, seconds: float) -> None:
        """Close the channel, which ends a worker that waits for a message; kill it if it does not end in time."""
        self.channel.close()
        self.wait(seconds)
        self.end()

    def release(self) -> None:
        """Close the channel, which ends a worker that waits for a message."""
        self.channel.close()
        super().release()


# What a measuring worker reports: one event a line, as JSON, in which infinities and NaN are allowed.

JsonObject = dict[str, Any]


class WorkerEvent(TypedDict, total=False):
    """One event; its keys say what happened, and keys of other versions are ignored.

    In the order in which they come: `imported`, how many libraries were named before the order, `facts` and `protocol`
    once the backend is open, with `device`, what launches may ask of it, `compiled` for each library that was compiled
    ahead, for each task `begin`, a `case` for each edge where the task is a kernel's edges, then `results` or
    `recorded`, and at the end `end` with `monitor` or `allocator`. `task` is added where several workers report.
    `peer` is the peer that the worker is at from here on, empty after the last one; `within` is in how many seconds
    the next event will come; `spoiled` is why the worker ends because of that peer.
    """

    imported: int
    facts: JsonObject
    protocol: JsonObject
    device: dict[str, int]
    compiled: int
    begin: str
    case: str
    peer: str
    within: float
    spoiled: str
    results: list[JsonObject]
    recorded: str
    task: str
    end: bool
    monitor: JsonObject
    allocator: JsonObject


class NoEvent(Exception):
    """A worker wrote a line that is no event."""


def decode_event(line: bytes) -> WorkerEvent:
    """Return the event of a line; NoEvent where a key has a value of another type, or the line is no JSON object."""
    try:
        return msgspec.convert(json.loads(line), WorkerEvent)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise NoEvent(f"{error}: {line[:100].decode(errors='replace')}") from error


# Measuring workers: processes that read an order and tasks from standard input, and write events to the output.


class WorkerDied(Exception):
    """The worker ended or was ended: `task` is what it was doing, `status` how it ended, `reason` why.

    `case` is the edge that it was at, where the task is all edges of a kernel; `peer` the peer of a case. A peer that
    made the worker end by its own report has the status `failed`.
    """

    def __init__(self, task: str | None, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.task, self.reason = task, reason
        self.status: Status = status
        self.case: str | None = None
        self.peer: str | None = None

    @property
    def peer_reason(self) -> str:
        """Why the peer that the worker was at has no time."""
        if self.status == "timed out":
            return f"{self.reason}, so its process was ended"
        return self.reason if self.status == "failed" else f"it crashed: {self.reason}"


class _WorkerPlace:
    """What a worker is doing, by the events that came so far, and in how many seconds the next one has to come."""

    def __init__(self, timeout: float) -> None:
        self.task: str | None = None
        self.limit, self._timeout = START_SECONDS, timeout
        self._case: str | None = None
        self._peer: str | None = None

    def follow(self, event: WorkerEvent) -> None:
        """Take an event; WorkerDied where the worker reports that a peer makes it end."""
        if "spoiled" in event:
            raise self.located(WorkerDied(self.task, "failed", event["spoiled"]))
        self.task, self._case = event.get("begin", self.task), event.get("case")
        self._peer = event.get("peer")
        self.limit = min(self._timeout, event.get("within", self._timeout))

    def located(self, death: WorkerDied) -> WorkerDied:
        """Return the death with the edge or the peer that the worker was at."""
        death.case, death.peer = self._case, self._peer or None
        return death


class EventWorker(WorkerProcess):
    """Handle of a measuring worker: send it lines, receive its events, kill it on timeout.

    The worker ends when its standard input closes, and therefore with this process.
    """

    def __init__(self, where: WorkerEnvironment) -> None:
        super().__init__(where, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None, "both are pipes"
        self._stdin, self._lines = stdin, _lines_of(stdout)

    def send(self, line: str) -> None:
        """Write a line. Whether the worker has ended already is noticed when its next event is received."""
        with suppress(BrokenPipeError):
            self._stdin.write(f"{line}\n".encode())
            self._stdin.flush()

    def receive(self, task: str | None, limit: float) -> WorkerEvent:
        """Return the next event of a worker that is at `task`; WorkerDied without an event within `limit` seconds."""
        try:
            line = self._lines.get(timeout=limit)
        except Empty:
            raise WorkerDied(task, "timed out", f"no answer within {limit:.0f} s") from None
        if line is None:
            raise WorkerDied(task, "crashed", self.last_words())
        try:
            return decode_event(line)
        except NoEvent as error:
            raise WorkerDied(task, "crashed", f"the process wrote what is no event: {error}") from error

    def release(self) -> None:
        with suppress(BrokenPipeError):  # of a line that it did not read before it ended
            self._stdin.close()
        super().release()


def _lines_of(stdout: IO[bytes]) -> "SimpleQueue[bytes | None]":
    """Return the lines in a queue, None at their end; a thread reads them so that waiting can have a limit."""
    lines: SimpleQueue[bytes | None] = SimpleQueue()  # a signal that interrupts its `get` leaves no lock behind

    def read() -> None:
        with stdout:
            for line in stdout:
                lines.put(line)
        lines.put(None)

    Thread(target=read, daemon=True).start()
    return lines


def work(
    order: Mapping[str, object], timeout: float, place: WorkerEnvironment, waiting: EventWorker | None = None
) -> Iterator[WorkerEvent]:
    """Start a worker with an order and yield its events; WorkerDied when it crashes or a task takes too long.

    A worker that is `waiting` for an order gets it instead.
    """
    yield from events_of(begun(order, place, waiting), timeout)


def begun(order: Mapping[str, object], place: WorkerEnvironment, waiting: EventWorker | None = None) -> EventWorker:
    """Return a worker that has its order and works; its events wait until `events_of` yields them."""
    worker = waiting or EventWorker(place)
    worker.send(json_line(order))
    return worker


def events_of(worker: EventWorker, timeout: float) -> Iterator[WorkerEvent]:
    """Yield the events of a worker that has an order, and end it; WorkerDied as by `work`."""
    try:
        yield from _events(worker, timeout)
    finally:
        worker.end()


def _events(worker: EventWorker, timeout: float) -> Iterator[WorkerEvent]:
    at = _WorkerPlace(timeout)
    while True:
        try:
            event = worker.receive(at.task, at.limit)
        except WorkerDied as death:
            raise at.located(death) from None
        at.follow(event)
        yield event
        if event.get("end"):
            return


def died_at_start(error: WorkerDied, backend: str) -> BackendUnavailable:
    """Return the error for a worker that ended before its first task."""
    return BackendUnavailable(f"backend {backend} does not start: {error.reason}")


# A measuring worker that receives one task after the other; another one takes its place where it ends.


class Conversation:
    """Tasks for a worker, which starts with the first one; use it in a `with` block.

    `facts` of the device are known after the first answer. Libraries that are named are imported at the start.
    """

    def __init__(self, order: Mapping[str, object], place: WorkerEnvironment, libraries: Sequence[str] = ()) -> None:
        self._order: dict[str, Any] = {**order, "tasks": [], "open": True}
        self._sent: dict[str, Any] = {}
        self._place, self._libraries = place, list(libraries)
        self._process: EventWorker | None = None
        self._interrupted = False
        self.facts: JsonObject = {}

    def ask(self, task: str, timeout: float) -> list[JsonObject]:
        """Return the task's results; WorkerDied where it takes longer than `timeout` seconds or crashes.

        A worker that is lost after its last answer, before it begins this task, is replaced once.
        """
        fresh = self._process is None
        worker = self._process or self._started()
        try:
            if self._sent != self._order:
                worker.send(json_line(self._order))
                self._sent = self._order
            worker.send(task)
            return next(event["results"] for event in self._events(worker, task, timeout) if "results" in event)
        except WorkerDied as death:
            self.end()
            if fresh or death.task is not None or self._interrupted:
                raise
        return self.ask(task, timeout)

    def follow(self, order: Mapping[str, object]) -> None:
        """Take the tasks that come from here on with another order, of the same backend and catalogue."""
        self._order = {**order, "tasks": [], "open": True}

    def avoid(self, death: WorkerDied) -> bool:
        """Let later workers leave out the peer that ended the last one; False where no peer did, or it did so again."""
        avoided: dict[str, dict[str, str]] = self._order.get("avoid", {})
        if not death.task or not death.peer or death.peer in avoided.get(death.task, {}):
            return False
        peers = {**avoided.get(death.task, {}), death.peer: death.peer_reason}
        self._order["avoid"] = {**avoided, death.task: peers}
        return True

    def interrupt(self) -> None:
        """End the worker from another thread than the caller of `ask`, which gets WorkerDied."""
        self._interrupted, process = True, self._process
        if process is not None:
            process.kill()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def _started(self) -> EventWorker:
        """Return a new worker; once it has its order, its first event reports where it runs."""
        worker = self._process = EventWorker(self._place)
        if self._interrupted:  # while it was being started
            worker.kill()
        if self._libraries:
            worker.send(json_line({"libraries": self._libraries}))
        self._sent = {}
        return worker

    def _events(self, worker: EventWorker, task: str, timeout: float) -> Iterator[WorkerEvent]:
        at = _WorkerPlace(timeout)
        while True:
            try:
                event = worker.receive(at.task and task, at.limit)
            except WorkerDied as death:
                raise at.located(death) from None
            self.facts = event.get("facts", self.facts)
            at.follow(event)
            yield event

    def end(self) -> None:
        """End the worker, if one runs; a later task starts another one."""
        if self._process is None:
            return
        self._process.end()
        self._process = None


# Errors of the program on their way from a worker to the process that asked.

_KINDS: dict[str, type[PrismBenchError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, PrismBenchError)
}


class Refusal(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """An expected error as a message: the name of its class in `prism_bench.errors`, and its text."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: PrismBenchError) -> "Refusal":
        """Return the message for an error; one of a class elsewhere becomes its nearest base class in the tree."""
        return cls(next(base.__name__ for base in type(error).__mro__ if _KINDS.get(base.__name__) is base), str(error))

    def error(self) -> PrismBenchError:
        """Return the error, to be raised; an unknown class becomes the base class of all errors."""
        return _KINDS.get(self.kind, PrismBenchError)(self.text)
