"""A process that has imported what measuring workers import, and forks one for each request, as `python -m` starts it.

A request is a line of JSON with descriptors: the worker's files, and a pipe for its number and its exit status.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
from contextlib import suppress

PLAIN_PATH = list(sys.path)  # without PYTHONPATH, which is a worker's own
_MOST, _FREE = 16, 200  # descriptors of a request, and where there are no others


def serve(ours):
    """Answer requests until the other side closes; return a worker's request in that worker."""
    running, poll = {}, select.poll()
    poll.register(ours, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready != ours.fileno():
                poll.unregister(ready)
                _finish(ready, *running.pop(ready))
                continue
            text, descriptors, *_ = socket.recv_fds(ours, 1 << 20, _MOST)
            if not text:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                for one in (ours.fileno(), *running, *(status for _, status in running.values())):
                    os.close(one)
                ours.detach()
                return json.loads(text), descriptors
            *files, status = descriptors
            for one in files:
                os.close(one)
            os.write(status, struct.pack("i", pid))
            place = os.pidfd_open(pid)
            running[place] = pid, status
            poll.register(place, select.POLLIN)


def _finish(place, pid, status):
    """Hand on how a worker ended."""
    _, code = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(status, struct.pack("i", os.waitstatus_to_exitcode(code)))
    os.close(status)
    os.close(place)


def become(request, descriptors):
    """Make this process what `subprocess.Popen` and `python -m` would have made."""
    os.setpgid(0, 0)
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    *files, _ = high = [_moved(one) for one in descriptors]
    for number, one in zip(request["files"], files, strict=True):
        os.dup2(one, number)
    for one in high:
        os.close(one)
    sys.path[:] = [request["folder"], *request["environment"]["PYTHONPATH"].split(os.pathsep), *PLAIN_PATH]
    sys.argv[:] = [request["program"], *request["arguments"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _moved(descriptor):
    """Return another number of an open file, above those that it is to get."""
    import fcntl

    number = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FREE)
    os.close(descriptor)
    return number


def main():
    """Import, serve, and be a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    import prism_bench.run.session
    import prism_bench.run.worker

    del sys.modules["prism_bench.run.worker"], prism_bench.run.worker  # it runs as `__main__`
    gc.freeze()
    request, descriptors = serve(socket.socket(fileno=int(sys.argv[1])))
    become(request, descriptors)
    runpy.run_module(request["program"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
