"""Interrupts: the first SIGINT, SIGTERM or SIGHUP ends a job in order, and no further one cuts short what is kept.

A command runs in `guarded`. The first signal raises Interrupted in it, once; later ones are noted and do nothing else.
In a `held` block the signal waits for the end of the block, except in an `allowed` block inside of it: a job holds
signals while it measures, keeps and prints, and allows them while it measures. Without a guard, as in a program that
imports the package, signals do what that program wants.

Python drops an exception that a signal raises in a finalizer or in a callback of the garbage collector, which Dask has:
the signal is sent again, then.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

EXIT_CODE = 2  # of every command that a signal ended
AGAIN_SECONDS = 0.05  # after which a signal is sent again that was lost
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Interrupted(KeyboardInterrupt):
    """A signal asked for an end; the message is the signal's name."""


class _Guard:
    """The signals of one process: which came first, whether it was raised, and how deep they are held."""

    def __init__(self) -> None:
        self.first: str | None = None
        self.raised = False
        self.holds = 0
        self.starting = self.closed = False

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.closed:
            return
        if self.starting:  # nothing was begun: there is nothing to keep
            _say(f"interrupted by {signal.Signals(number).name}")
            os._exit(EXIT_CODE)
        if self.first is not None:
            _say("is ending already, and keeps what it has; only SIGKILL ends it at once")
            return
        self.first = signal.Signals(number).name
        self.raise_pending()

    def raise_pending(self) -> None:
        """Raise the signal that came, unless signals are held or it was raised before."""
        if self.first is not None and not self.raised and self.holds == 0:
            self.raised = True
            raise Interrupted(self.first)

    def lost(self) -> None:
        """Send the signal again: Python dropped what it raised."""
        number, self.first, self.raised = signal.Signals[self.first or "SIGINT"], None, False
        timer = threading.Timer(AGAIN_SECONDS, self._send, (number,))
        timer.daemon = True
        timer.start()

    def _send(self, number: int) -> None:
        if _guard is self:
            os.kill(os.getpid(), number)


_guard: _Guard | None = None


def guarded(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run the command under a guard; one that a signal ended exits with EXIT_CODE, unless it exits with 0 by itself."""

    @wraps(command)
    def run(*words: _P.args, **named: _P.kwargs) -> _R:
        with _installed() as guard:
            try:
                return command(*words, **named)
            except KeyboardInterrupt:
                _say(f"interrupted by {guard.first or 'SIGINT'}")
                raise SystemExit(EXIT_CODE) from None
            except SystemExit as end:
                if not guard.raised or end.code in (0, None):
                    raise
                _say(f"interrupted by {guard.first}")
                raise SystemExit(EXIT_CODE) from None

    return run


def starting() -> None:
    """Guard this process from here on: until `guarded` takes over a signal ends it at once, without a traceback."""
    global _guard
    _guard = _Guard()
    _guard.starting = True
    _install(_guard)


def closed() -> None:
    """Do nothing about signals from here on: the process ends by itself, and its output must still be written.

    Ignored by the system too, since Python gives up its handlers before it has ended.
    """
    if _guard is not None:
        _guard.closed = True
        for number in _handled():
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def held() -> Generator[None]:
    """Let a signal wait until the block has ended; where the block ends with an error, that one is raised instead."""
    with _holds(lambda holds: holds + 1):
        yield
    check()


@contextmanager
def allowed() -> Generator[None]:
    """Let signals interrupt the block, whoever holds them outside of it; one that waits interrupts at once."""
    with _holds(lambda _: 0):
        check()
        yield


def check() -> None:
    """Raise the signal that waits, unless signals are held here."""
    if _guard is not None:
        _guard.raise_pending()


@contextmanager
def _holds(changed: Callable[[int], int]) -> Generator[None]:
    guard = _guard
    if guard is None:
        yield
        return
    before = guard.holds
    try:
        guard.holds = changed(before)
        yield
    finally:
        guard.holds = before


@contextmanager
def _installed() -> Generator[_Guard]:
    """Yield the guard of the process; make one, and remove it at the end, if there is none."""
    global _guard
    if _guard is not None:
        _guard.starting = False
        yield _guard
        return
    _guard = _Guard()
    hook, before = sys.unraisablehook, _install(_guard)
    try:
        yield _guard
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
        _guard = None


def _install(guard: _Guard) -> dict[int, Any]:
    """Handle every signal that is not ignored, as `nohup` has it; returns the handlers before."""
    sys.unraisablehook = _hook(guard, sys.unraisablehook)
    return {number: signal.signal(number, guard.take) for number in _handled()}


def _hook(guard: _Guard, usual: Callable[["sys.UnraisableHookArgs"], Any]) -> Callable[["sys.UnraisableHookArgs"], Any]:
    """Return what Python calls with an exception that it drops."""

    def hook(dropped: "sys.UnraisableHookArgs") -> None:
        if isinstance(dropped.exc_value, Interrupted):
            guard.lost()
        else:
            usual(dropped)

    return hook


def _handled() -> list[int]:
    """Return the signals that this thread may handle, and that nobody ignores."""
    if threading.current_thread() is not threading.main_thread():
        return []
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def _say(words: str) -> None:
    """Write a line on standard error, from a signal handler too; a closed one is no reason to fail."""
    try:
        os.write(2, f"prism-bench: {words}\n".encode())
    except OSError:
        return
