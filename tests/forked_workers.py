"""Workers of this process's runs, forked from a process that has imported what they need: a tenth of a start's time.

Hundreds of tests measure on the null backend, and each measuring process would import NumPy and the package anew. Only
where nothing of the start differs is a worker forked: the same package, interpreter and libraries. Tests that run
`prism-bench` as a process start real workers, and so do all tests with a GPU and with `--thorough`.
"""

import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from threading import Lock

from prism_bench.io import workers

HOUSE = Path(__file__).resolve().parent.parent
PROGRAMS = {"prism_bench.run.worker"}
START = [sys.executable, "-m"]  # a test may replace the interpreter, by one that does not start
# Variables that a worker reads when it works, not when it starts; of a number of threads, NumPy reads OpenBLAS's.
_LATER = re.compile(r"PYTHONPATH$|PRISM_BENCH_|PYTEST_|FAKE_NVML$|(?!OPENBLAS)[A-Z]+_NUM_THREADS$")
_NUMBER = struct.calcsize("i")


class Server:
    """The process that forks, started at the first request."""

    def __init__(self):
        self._socket = self._process = None
        self._environment = {}
        self._lock = Lock()

    def fits(self, command, environment, folder):
        """Whether a process of this command would start as the server did."""
        plain = command[:2] == START and len(command) > 2 and command[2] in PROGRAMS
        return plain and folder is None and _kept(environment) == _kept(os.environ) and _finds_ours(environment)

    def fork(self, request, files):
        """Send a request and return its worker's number and the pipe that its exit status comes through."""
        kept = _kept(os.environ)
        with self._lock:
            if self._process is None or kept != self._environment:
                self._start(kept)
            reading, writing = os.pipe()
            socket.send_fds(self._socket, [json.dumps(request).encode()], [*files, writing])
        os.close(writing)
        return struct.unpack("i", os.read(reading, _NUMBER))[0], reading

    def _start(self, kept):
        self.end()
        self._environment = kept
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [START[0], "-P", str(HOUSE / "tests" / "worker_server.py"), str(theirs.fileno())]
        self._process = subprocess.Popen(words, env=kept, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()

    def end(self):
        """Close the server, which ends."""
        if self._process is not None:
            self._socket.close()
            self._process.wait()
            self._process = None


def _kept(environment):
    """The variables that an interpreter or a library reads when it is loaded."""
    return {name: value for name, value in environment.items() if not _LATER.match(name)}


def _finds_ours(environment):
    """Whether a process with this environment, in this folder, imports the package of this checkout."""
    places = [os.getcwd(), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    first = next((place for place in places if os.path.isdir(os.path.join(place, "prism_bench"))), None)
    return first is not None and os.path.realpath(first) == str(HOUSE)


class ForkedWorker:
    """What `subprocess.Popen` would be of the same process."""

    def __init__(self, server, command, **how):
        self.args, self.returncode = command, None
        self.stdin, theirs_in = _ends(how.get("stdin"), writes=True)
        self.stdout, theirs_out = _ends(how.get("stdout"), writes=False)
        inherited = [*how.get("pass_fds", ())]
        files = [theirs_in, theirs_out, how["stderr"].fileno(), *inherited]
        os.umask(umask := os.umask(0o77))
        request = {
            "program": command[2], "arguments": command[3:], "environment": dict(how["env"]), "folder": os.getcwd(),
            "umask": umask, "files": [0, 1, 2, *inherited],
        }  # fmt: skip
        self.pid, self._status = server.fork(request, files)
        self._lock = Lock()
        weakref.finalize(self, os.close, self._status)
        for own, one in ((how.get("stdin"), theirs_in), (how.get("stdout"), theirs_out)):
            if own in (subprocess.PIPE, subprocess.DEVNULL, None):
                os.close(one)

    def poll(self):
        return self._ended(0)

    def wait(self, timeout=None):
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _ended(self, seconds):
        """The exit status, after waiting so long; None of one that runs."""
        if self.returncode is None:
            ready, _, _ = select.select([self._status], [], [], seconds)
            with self._lock:  # several threads may wait
                if ready and self.returncode is None:
                    word = os.read(self._status, _NUMBER)
                    self.returncode = struct.unpack("i", word)[0] if word else -signal.SIGKILL
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            with suppress(ProcessLookupError):  # its end is known to the system before it is here
                os.kill(self.pid, number)

    def kill(self):
        """End the process; that it has ended comes from the server, a moment after what the system itself would say."""
        self.send_signal(signal.SIGKILL)
        self._ended(1.0)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


def _ends(wanted, *, writes):
    """Our side of a stream, where there is one, and the worker's descriptor."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        ours, theirs = (writing, reading) if writes else (reading, writing)
        return os.fdopen(ours, "wb" if writes else "rb"), theirs
    if wanted in (subprocess.DEVNULL, None):
        return None, os.open(os.devnull, os.O_RDWR)
    return None, wanted


class Starting:
    """The module `subprocess`, whose Popen forks where that makes no difference."""

    def __init__(self, server):
        self._server = server

    def __getattr__(self, name):
        return getattr(subprocess, name)

    def Popen(self, command, **how):  # noqa: N802
        if self._server.fits(command, how.get("env", {}), how.get("cwd")):
            return ForkedWorker(self._server, command, **how)
        return subprocess.Popen(command, **how)


def forked(patch):
    """Let this process's measuring workers be forked; return the server, to be ended."""
    server = Server()
    patch.setattr(workers, "subprocess", Starting(server))
    return server
