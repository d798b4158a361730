"""The wheel of this checkout, built once for all tests of a run, and a command line that uses nothing else."""

import fcntl
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class InstalledWheel:
    """The wheel at `path`, unpacked in `site` as pip would install it."""

    path: Path
    site: Path

    def environment(self, **more):
        """Return an environment in which Python finds the wheel, and not the checkout."""
        return {**os.environ, "PYTHONPATH": str(self.site), **more}

    def command(self, folder, *words, **more):
        """Run `prism-bench` with these words in the folder; what it ended with."""
        command = [sys.executable, "-m", "prism_bench", *map(str, words)]
        environment = self.environment(**more)
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)


def installed_wheel(tmp_path_factory):
    """Build and unpack the wheel; the processes of one run of pytest-xdist share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
            subprocess.run(command, cwd=HOUSE, check=True, capture_output=True)
            zipfile.ZipFile(next(folder.glob("*.whl"))).extractall(folder / "site")
            (folder / "done").touch()
    return InstalledWheel(next(folder.glob("*.whl")), folder / "site")
