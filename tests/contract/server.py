"""A process that has imported the command line, and forks a child for each command: a tenth of the time of a start.

A request is a line of JSON with descriptors: standard output, standard error, and a pipe for the exit status. A child
reports the modules that it imported, and later children have them from the start. Started by its path, with the
interpreter that the product is installed for; it uses the standard library and the entry point of the command line.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
from contextlib import suppress

from prism_bench.__main__ import main

LIBRARIES = ("prism_bench", "numpy", "scipy", "msgspec", "pandas", "rich", "typer", "click", "jinja2", "markupsafe")


def serve(ours):
    """Answer requests until the other side closes; return a request in its child."""
    while True:
        text, descriptors, *_ = socket.recv_fds(ours, 1 << 20, 3)
        if not text:
            os._exit(0)
        reading, writing = os.pipe()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            ours.close()
            os.close(reading)
            return json.loads(text), descriptors, writing
        os.close(writing)
        with os.fdopen(reading) as modules:
            imported = modules.read().split()
        _, status = os.waitpid(pid, 0)
        os.write(descriptors[2], str(os.waitstatus_to_exitcode(status)).encode())
        for descriptor in descriptors:
            os.close(descriptor)
        for name in imported:
            with suppress(ImportError):
                importlib.import_module(name)


def become(request, descriptors):
    """Make this process what a start of the executable would have made."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv[:] = ["prism-bench", *request["words"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def report_imports(before, pipe):
    """Report the libraries' modules that this child imported, in the order of import."""
    modules = [
        name for name in [*sys.modules]
        if name not in before and name.partition(".")[0] in LIBRARIES and "__main__" not in name
    ]  # fmt: skip
    os.write(pipe, "\n".join(modules).encode())
    os.close(pipe)


def finish(code):
    """End as the interpreter does, except that memory is not given back object by object."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    (request, descriptors, pipe), before = serve(socket.socket(fileno=int(sys.argv[1]))), {*sys.modules}
    become(request, descriptors[:2])
    os.close(descriptors[2])
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    report_imports(before, pipe)
    finish(code)
