"""Where a nightly run is: one lock for each machine and repository, and folders of logs, the newest of which stay."""

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.errors import UsageError
from prism_bench.extensions.ci.keeping.base import own_folder
from prism_bench.io.files import lock_now, path_part

KEPT_LOGS = 20


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the lock of this machine and repository; raise a UsageError where another nightly run holds it.

    The system takes it back when the process ends, however it ends.
    """
    folder = own_folder(root) / "nightly"
    folder.mkdir(exist_ok=True)
    path = folder / f"{path_part(platform.node() or 'machine')}.lock"
    with path.open("a+") as file:
        try:
            lock_now(file.fileno())
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "its process is unknown"
            raise UsageError(f"another nightly run is measuring here ({holder}); wait for its end, or end it") from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n")
        file.flush()
        yield


def new_logs(root: Path) -> Path:
    """Return a new folder for the logs of one nightly run; only the newest KEPT_LOGS stay."""
    home = own_folder(root) / "nightly" / "logs"
    folder = home / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z"
    folder.mkdir(parents=True)
    for old in sorted(home.iterdir())[:-KEPT_LOGS]:
        shutil.rmtree(old, ignore_errors=True)
    return folder
