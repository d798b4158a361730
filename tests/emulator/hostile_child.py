"""A child process that answers the emulator's questions with what is no answer; `BEHAVIOUR` says how."""

import os
import pickle
import socket
import sys
import time
from pathlib import Path

import numpy as np

from prism_bench.emulator.isolation import QUESTIONS, DoneAnswer, EntriesAnswer, LaunchAnswer, LaunchQuestion
from prism_bench.emulator.report import LaunchReport
from prism_bench.io.channels import FrameChannel, frame_parts
from prism_bench.io.workers import Refusal


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path(os.environ["BOMB"]),)


def launched(arrays, returned):
    return b"".join(frame_parts(LaunchAnswer(LaunchReport("one"), tuple(returned)), arrays))


ANSWERS = {
    "pickle": lambda arrays: pickle.dumps(Bomb()),
    "noise": lambda arrays: os.urandom(1000),
    "half": lambda arrays: launched(arrays, [0])[:-1],
    "stalls": lambda arrays: launched(arrays, [0])[:-1],
    "other type": lambda arrays: b"".join(frame_parts(EntriesAnswer(("one",)))),
    "other shape": lambda arrays: launched([arrays[0][:1]], [0]),
    "larger": lambda arrays: launched([np.zeros(1000, "f4")], [0]),
    "no such array": lambda arrays: launched(arrays[:1], [7]),
    "error of another tree": lambda arrays: b"".join(frame_parts(Refusal("SystemExit", "good bye"))),
}


def main(descriptor: str, _kind: str) -> None:
    """Answer to loading as a child does, and to the launch as the behaviour says."""
    connected, behaviour = socket.socket(fileno=int(descriptor)), os.environ["BEHAVIOUR"]
    channel = FrameChannel(connected)
    while True:
        frame = channel.receive(QUESTIONS)
        if not isinstance(frame.message, LaunchQuestion):
            channel.send(DoneAnswer())
            continue
        connected.setblocking(True)
        connected.sendall(ANSWERS[behaviour](frame.arrays))
        if behaviour == "half":
            return
        time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
