"""A judge as public ones were: it runs a submission's Python in the process that has clock, reference and verdict.

`python naive_judge.py FILE[:signed]...` prints a line of JSON for each submission: what its second run got, the first
being the public one, and whether the file `acted` was left. Time is virtual: `Device.clock` advances with its work.
"""

import ctypes
import hashlib
import hmac
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

SIZE, SAMPLES = 64, 3
KEY = os.urandom(16)
RESULT = -1


class Device:
    def __init__(self):
        self.clock, self.rate, self.timing = ctypes.c_double(0.0), 1.0, False
        self.memory, self._other_stream = [], []

    def add(self, a, b):
        self.clock.value += len(a) / self.rate
        return [x + y for x, y in zip(a, b, strict=True)]

    def on_another_stream(self, out, a, b):
        self._other_stream.append((out, a, b))

    def synchronize(self):
        for out, a, b in self._other_stream:
            out[:] = library_add(a, b)

    def differences(self, got, want):
        return sum(abs(x - y) > 1e-2 for x, y in zip(got, want, strict=False))


class Event:
    def __init__(self):
        self.at = 0.0

    def record(self, device):
        self.at = device.clock.value

    def elapsed(self, stop):
        return stop.at - self.at


TABLE = {"elapsed": lambda start, stop: start.elapsed(stop)}


def library_add(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


def close(device, got, want):
    return len(list(got)) == len(want) and device.differences(got, want) == 0


def signed(result, key):
    text = json.dumps(result)
    return json.dumps({"text": text, "by": hmac.new(key, text.encode(), hashlib.sha256).hexdigest()}).encode() + b"\n"


def judge(submission, is_signed):
    device, start, stop = Device(), Event(), Event()
    a, b = ([float(seed + place) for place in range(SIZE)] for seed in (1, 2))
    expected = library_add(a, b)
    device.memory += [a, b, expected]
    samples, out = [], []
    for _ in range(SAMPLES):
        device.timing = True
        start.record(device)
        out = submission.attack(device, a, b)
        stop.record(device)
        samples.append(TABLE["elapsed"](start, stop))
        device.timing = False
    device.synchronize()
    while threading.active_count() > 1:
        time.sleep(0.001)
    result = {"right": close(device, out, expected), "work": statistics.median(samples)}
    os.write(RESULT, signed(result, KEY) if is_signed else json.dumps(result).encode() + b"\n")


def run(path, is_signed):
    """Return what the judge's process reports; a process that ends well without a word counts as right."""
    global RESULT
    reading, RESULT = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        sys.path.insert(0, os.getcwd())
        if Path("submission_settings.py").exists():
            import submission_settings  # noqa: F401 - what a submission may leave for the next run
        spec = importlib.util.spec_from_file_location("submission", path)
        submission = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(submission)
            judge(submission, is_signed)
        except SystemExit as end:
            os._exit(end.code or 0)
        except BaseException as error:
            print(f"{path}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    os.close(RESULT)
    with os.fdopen(reading) as results:
        line = results.readline()
    status = os.waitpid(child, 0)[1]
    if not line:
        return {"right": status == 0, "work": 0.0}
    result = json.loads(line)
    if is_signed:
        by = hmac.new(KEY, result["text"].encode(), hashlib.sha256).hexdigest()
        result = json.loads(result["text"]) if hmac.compare_digest(by, result["by"]) else {"right": False, "work": 0.0}
    return result


def acted():
    """Return whether the submission left its file, if need be a little later."""
    for _ in range(50):
        if Path("acted").exists():
            return True
        time.sleep(0.002)
    return False


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path, _, how = argument.partition(":")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a program may still write there
            os.chdir(folder)
            run(path, how == "signed")
            print(json.dumps({**run(path, how == "signed"), "acted": acted()}), flush=True)
            os.chdir("/")
