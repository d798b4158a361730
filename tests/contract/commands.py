"""Commands of the product: run in children of one process, or with the executable that PRISM_BENCH_COMMAND names."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
EXECUTABLE = "PRISM_BENCH_COMMAND"
KEPT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")  # of the variables of this process
SECONDS = 300


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


class Product:
    """The installed product; `executable` is None to fork instead of starting processes."""

    def __init__(self, home: Path, cache: Path, executable: str | None):
        self._executable = executable or str(Path(sys.executable).with_name("prism-bench"))
        self._forks = executable is None
        self.python = str(Path(self._executable).with_name("python"))
        self._socket = self._process = None
        self._package = None
        self.environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "HOME": str(home), "PRISM_BENCH_CACHE": str(cache), "COLUMNS": "80", "LANG": "C.UTF-8", "TZ": "UTC",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PRISM_BENCH_MACHINE": "contract",
            "CUDA_VISIBLE_DEVICES": "",
            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
            "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL": os.devnull,
        }  # fmt: skip
        self.environment["PATH"] = os.pathsep.join([str(Path(self.python).parent), self.environment.get("PATH", "")])

    @property
    def package(self) -> Path:
        """The folder of the installed package."""
        if self._package is None:
            code = "import prism_bench; print(prism_bench.__path__[0])"
            self._package = Path(self.run(Path("/"), ["python", "-c", code]).out.strip())
        return self._package

    def run(self, folder: Path, words: list[str], **variables: str) -> Outcome:
        """Run a command in the folder; `prism-bench` and `python` are those of the product."""
        environment = self.environment | variables
        program, *rest = words
        if program == "prism-bench" and self._forks and "LD_LIBRARY_PATH" not in variables:
            return self._fork(folder, rest, environment)
        if program in ("prism-bench", "python"):
            words = [self._executable if program == "prism-bench" else self.python, *rest]
        ended = subprocess.run(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
        return Outcome(ended.returncode, ended.stdout, ended.stderr)

    def _fork(self, folder, words, environment):
        if self._process is None:
            self._start()
        home = Path(environment["HOME"])
        files = [home / f"{os.getpid()}.{name}" for name in ("out", "err")]
        reading, writing = os.pipe()
        request = {"folder": str(folder), "words": words, "environment": environment}
        with files[0].open("wb") as out, files[1].open("wb") as err:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [out.fileno(), err.fileno(), writing])
            os.close(writing)
        with os.fdopen(reading) as status:
            code = int(status.read())
        return Outcome(code, *(file.read_text(encoding="utf-8") for file in files))

    def _start(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [self.python, str(HERE / "server.py"), str(theirs.fileno())]
        self._process = subprocess.Popen(command, env=self.environment, cwd="/", pass_fds=[theirs.fileno()])
        theirs.close()

    def close(self) -> None:
        """End the process that forks."""
        if self._process is not None:
            self._socket.close()
            self._process.wait()
            self._process = None
