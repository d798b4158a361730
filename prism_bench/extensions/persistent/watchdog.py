"""A thread that looks at the executor now and then, whether anybody waits for a result or not."""

import time
from collections.abc import Callable
from threading import Event, Thread


class Watchdog:
    """Calls `check` with the monotonic clock's time every `interval` seconds until it is stopped."""

    def __init__(self, check: Callable[[float], None], interval: float):
        self._check, self._interval, self._stopped = check, interval, Event()
        self._thread = Thread(target=self._run, name="persistent watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No call is under way when it returns, and none follows."""
        self._stopped.set()
        self._thread.join()

    def _run(self):
        while not self._stopped.wait(self._interval):
            self._check(time.monotonic())
