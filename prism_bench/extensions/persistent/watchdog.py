"""A thread that checks the executor at intervals, whether a caller waits for a result or not."""

import time
from collections.abc import Callable
from threading import Event, Thread


class Watchdog:
    """Caller of `check` with the monotonic clock's time every `interval` seconds until it is stopped."""

    def __init__(self, check: Callable[[float], None], interval: float) -> None:
        self._check, self._interval, self._stopped = check, interval, Event()
        self._thread = Thread(target=self._run, name="persistent watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop calling; no call is under way when it returns."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            self._check(time.monotonic())
