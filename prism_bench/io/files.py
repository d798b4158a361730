"""Files written whole or not at all, locks, paths, folders, interrupts, and saves of long jobs."""

import errno
import hashlib
import math
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, Generic, Literal, ParamSpec, TypeVar, get_args

from prism_bench.errors import CacheUnavailable, PrismBenchError, ResultsError, UsageError
from prism_bench.extension import header_folders

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_Value = TypeVar("_Value")
_Kept = TypeVar("_Kept")
_P = ParamSpec("_P")
_R = TypeVar("_R")

# Files: written whole or not at all.
#
# A complete file is made from a temporary one. A writer holds a lock on its temporary file, which the system takes back
# when the writer ends, however it ends. So a temporary file without a lock has no writer any more, and a later writer
# removes it. Windows neither moves nor removes an open file: there the writer closes it, and has ended where the file
# is a day old.

ENDING = ".prism-tmp"  # of a temporary file
_LONGEST_PREFIX = 60
_CLOSED = os.name == "nt"  # whether a file is closed before it is moved or removed
_DAY = 86400.0
# What os.link fails with where the file system, or the sandbox, has no hard links.
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EINVAL)
_cleaned: set[Path] = set()  # folders, by this process


def write_atomically(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Put `data`, or its pieces, at `path` so that a reader sees the old file or the new one, never half of it.

    Use `create_file` where the file of another writer must stay.
    """
    with written_beside(path, data) as temporary:
        os.replace(temporary, path)


def create_file(path: Path, data: bytes) -> None:
    """Create the file `path` with `data`, whole or not at all; raise FileExistsError where there is one already."""
    with written_beside(path, data) as temporary:
        if not _moved_to_free(temporary, path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def create_first(paths: Iterable[Path], data: bytes) -> Path:
    """Create the first of `paths` that is free, whole or not at all, and return it.

    However many processes do so at once, each gets another path and no file is replaced.
    """
    temporaries: dict[Path, Path] = {}
    with ExitStack() as stack:
        for path in paths:
            if path.parent not in temporaries:
                temporaries[path.parent] = stack.enter_context(written_beside(path, data))
            if _moved_to_free(temporaries[path.parent], path):
                return path
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), "every path that was offered")


class OwnFile:
    """File that one program writes again and again: it is created under a free name, then replaced.

    `paths` returns the names to try, in order. Where another program replaced or removed the file since, the next
    version gets the first free name again, and the other program's file stays.
    """

    def __init__(self, paths: Callable[[], Iterable[Path]]) -> None:
        self._paths = paths
        self._path: Path | None = None
        self._identity: tuple[int, ...] | None = None

    def write(self, data: bytes) -> Path:
        """Write this version over the previous version and return the path."""
        if self._path and _identity_of(self._path) == self._identity:
            write_atomically(self._path, data)
        else:
            self._path = create_first(self._paths(), data)
        self._identity = _identity_of(self._path)
        return self._path


def _identity_of(path: Path) -> tuple[int, ...] | None:
    """Return what differs between two files of one name; None for a missing file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _moved_to_free(temporary: Path, path: Path) -> bool:
    """Give the complete file the name `path`; return False, and do nothing, where there is a file of that name.

    Where the file system has no hard links the name is claimed with an empty file, which is then replaced.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        return True
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return False
    try:
        os.replace(temporary, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return True


@contextmanager
def written_beside(path: Path, data: bytes | Iterable[bytes]) -> Generator[Path]:
    """Yield a complete temporary file in the folder of `path`; remove it unless it was moved.

    Of `data` in pieces each is written as soon as it is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent not in _cleaned:
        _cleaned.add(path.parent)
        remove_stale(path.parent)
    temporary, file = _locked(path)
    with file:
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)
            file.flush()
            os.chmod(temporary, 0o644)
            if _CLOSED:
                file.close()
            yield temporary
        finally:
            if _CLOSED:
                file.close()
            temporary.unlink(missing_ok=True)


def _locked(path: Path) -> tuple[Path, BinaryIO]:
    """Create a file next to `path` and lock it; create another one if a cleaner took it for stale before that."""
    while True:
        prefix = f".{path.name[:_LONGEST_PREFIX]}."
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=ENDING)
        file = os.fdopen(handle, "wb")
        if _CLOSED:
            return Path(name), file
        with suppress(OSError):  # where the file system has no locks nothing is taken for stale either
            lock_now(handle)
        if os.fstat(handle).st_nlink:
            return Path(name), file
        file.close()


def remove_stale(folder: Path) -> None:
    """Remove the temporary files in `folder` whose writers have ended; what cannot be removed stays."""
    for stale in folder.glob(f".*{ENDING}"):
        with suppress(OSError):
            if not _CLOSED:
                with stale.open("rb") as file:
                    lock_now(file.fileno())
                    stale.unlink()
            elif time.time() - stale.stat().st_mtime > _DAY:
                stale.unlink()


@contextmanager
def temporary_folder(prefix: str, inside: Path | str | None = None) -> Generator[Path]:
    """Yield a new folder `inside` another, by default that of the system; remove it at the end with all that it has.

    A signal waits while the folder is made: only afterwards is it known what to remove.
    """
    made = None
    try:
        with held():
            made = tempfile.TemporaryDirectory(prefix=prefix, dir=inside)
        yield Path(made.name)
    finally:
        if made:
            made.cleanup()


# Locks: `fcntl` has them on POSIX, `msvcrt` on Windows. Nothing else of the package imports one of the two when it is
# loaded, so that it can be imported on any system.

_LOCK_FILE = ".lock"  # in a folder, where folders cannot be opened
_PAUSE = 0.05  # seconds between two attempts to lock


def lock_now(descriptor: int) -> None:
    """Lock the open file; raise a BlockingIOError if its lock is taken, an OSError if the system has no locks."""
    if fcntl:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        _lock_first_byte(descriptor)


def lock(descriptor: int) -> None:
    """Lock the open file; wait while its lock is taken."""
    is_locked = False
    while not is_locked:
        try:
            if fcntl:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            else:
                _lock_first_byte(descriptor)
            is_locked = True
        except BlockingIOError:
            time.sleep(_PAUSE)


def opened_folder(folder: Path) -> int:
    """Return a descriptor whose lock is the folder's: of the folder itself, or of a file in it on Windows."""
    if fcntl:
        return os.open(folder, os.O_RDONLY)
    return os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT)


def _lock_first_byte(descriptor: int) -> None:
    """Lock the first byte of a file in place of the whole: Windows locks ranges, even beyond the end."""
    windows: Any = import_module("msvcrt")
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    except PermissionError as error:  # how Windows reports a taken lock
        raise BlockingIOError(*error.args) from error


# Paths from names that may come out of any file.

_PLAIN_NAME = re.compile(r"(?=.{1,100}\Z)[A-Za-z0-9_][A-Za-z0-9_.+=,@-]*")
_LONGEST_PATH = 1000


def path_part(name: object) -> str:
    """Return `name`, which may come out of any file, as one harmless part of a path.

    A plain name stays as it is. In any other each run of odd characters becomes a dash, and a digest of the name is
    added, so that two names never share a path.
    """
    text = str(name)
    if _PLAIN_NAME.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:_LONGEST_PREFIX]
    return f"{readable}-{digest}" if readable else digest


def confined(root: Path, name: str) -> Path:
    """Return the path that `name`, relative to `root`, leads to; raise a ResultsError where that is outside of it."""
    try:
        path = (root / name).resolve()
        inside = path.is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        raise ResultsError(f"{root}: {name!r:.80} is no path ({error})") from error
    if not inside or path == root.resolve() or len(name) > _LONGEST_PATH:
        raise ResultsError(f"{root}: {name!r:.80} is no path below this folder")
    return path


def first_in(folders: Iterable[Path], name: str) -> Path | None:
    """Return the file of that name in the first of the folders that has one."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


# Folders: caches and catalogues.

CACHE_REFUSED = "cannot write the cache"  # how the reason begins of a case that was skipped for that
GENERATED = "generated"  # kernels/<family>/generated: sources that a program wrote, whose specs are in the family
SharedFolder = Literal["include", "peers"]
SHARED: tuple[SharedFolder, ...] = get_args(SharedFolder)  # folders of a catalogue that are no families
_PACKAGE = Path(__file__).resolve().parents[1]


def cache_folder(name: str) -> Path:
    """Return the folder of one cache: below PRISM_BENCH_CACHE, else below the user's cache."""
    return Path(os.environ.get("PRISM_BENCH_CACHE") or Path.home() / ".cache" / "prism_bench") / name


def writable_cache(name: str) -> Path:
    """Return the folder of one cache, created if missing; raise CacheUnavailable where it takes no file."""
    folder = cache_folder(name)
    with cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 12))  # a full disk still takes an empty file
    return folder


@contextmanager
def cache_errors(folder: Path) -> Generator[None]:
    """Raise CacheUnavailable, which is no fault of a kernel, for any OSError in the block."""
    try:
        yield
    except OSError as error:
        raise CacheUnavailable(
            f"{CACHE_REFUSED} {folder}: {error.strerror or error}; set PRISM_BENCH_CACHE to a folder that can "
            "be written and has free space"
        ) from error


def default_folder() -> Path:
    """Return the catalogue that came with the package: inside it when installed, next to it in a checkout."""
    inside = _PACKAGE / "kernels"
    return inside if inside.is_dir() else _PACKAGE.parent / "kernels"


def is_bundled(catalogue: Path) -> bool:
    """Return whether the folder is the catalogue inside an installed package, which no repository has."""
    return catalogue.resolve() == _PACKAGE / "kernels"


def family_folder(source: Path) -> Path:
    """Return the folder of the family that a kernel's file belongs to."""
    return source.parents[1] if source.parent.name == GENERATED else source.parent


def family_of(source: Path) -> str:
    """Return the name of the family that a kernel's file belongs to."""
    return family_folder(source).name


def spec_file(source: Path) -> Path:
    """Return the spec file of a kernel's source: the Python file of that name in the folder of its family."""
    return family_folder(source) / f"{source.stem}.py"


def shared_folders(catalogue: Path, kind: SharedFolder = "include") -> tuple[Path, ...]:
    """Return the shared folders of a catalogue: its own folder of this kind, then the built-in catalogue's.

    `include` has headers and Python, sorted by subject; `peers` has Python that library peers share.
    """
    folders = (catalogue / kind, default_folder() / kind)
    return tuple(dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()))


def shared_with(source: Path) -> tuple[Path, ...]:
    """Return the folders of headers that the catalogue of a kernel's file shares, and those of extensions."""
    return (*shared_folders(family_folder(source).parent), *header_folders())


_UNDEFINED = re.compile(r"""[‘'"](\w+)[’'"] (?:is undefined|was not declared)|undeclared identifier '(\w+)'""")


def macro_advice(log: str) -> str:
    """Return one line on an unknown macro: the header of an extension that defines it; empty without such a header."""
    names = {name for match in _UNDEFINED.findall(log) for name in match if name}
    for folder in header_folders() if names else ():
        for header in sorted(folder.rglob("*.cuh")):
            defined = re.findall(r"^\s*#\s*define\s+(\w+)", header.read_text("utf-8"), re.MULTILINE)
            if known := names & set(defined):
                return f"{min(known)} is defined by a header: add #include <{header.relative_to(folder).as_posix()}>"
    return ""


def python_shared_with(source: Path) -> tuple[Path, ...]:
    """Return the folders of Python that the catalogue of a kernel's file shares."""
    return tuple(folder for kind in SHARED for folder in shared_folders(family_folder(source).parent, kind))


def hash_of_files(folder: Path, files: Iterable[Path]) -> str:
    """Return a SHA-256 of the paths and contents of the existing files, relative to `folder`."""
    digest = hashlib.sha256()
    for path in sorted(files):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder).as_posix()} {len(content)} ".encode() + content)
    return digest.hexdigest()


# Interrupts: the first SIGINT, SIGTERM or SIGHUP ends a job in order, and no further one cuts short what is kept.
#
# A command runs in `guarded`. The first signal raises Interrupted in it, once; later ones are noted and do nothing
# else. In a `held` block the signal waits for the end of the block, except in an `allowed` block inside of it: a job
# holds signals while it measures, keeps and prints, and allows them while it measures. Without a guard, as in a program
# that imports the package, signals do what that program wants.
#
# Python drops an exception that a signal raises in a finalizer or in a callback of the garbage collector, which Dask
# has: the signal is sent again, then.

_EXIT_CODE = 2  # of every command that a signal ended
AGAIN_SECONDS = 0.05  # after which a signal is sent again that was lost
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """A signal that ends the job; the message is the name of the signal."""


class _Guard:
    """Signals of this process: which came first, whether it was raised, and how deep signals are held."""

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
            os._exit(_EXIT_CODE)
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
    """Run the command under a guard; after a signal it exits with _EXIT_CODE, unless it exits with 0 itself."""

    @wraps(command)
    def run(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with _installed() as guard:
            try:
                return command(*arguments, **options)
            except KeyboardInterrupt:
                _say(f"interrupted by {guard.first or 'SIGINT'}")
                raise SystemExit(_EXIT_CODE) from None
            except SystemExit as end:
                if not guard.raised or end.code in (0, None):
                    raise
                _say(f"interrupted by {guard.first}")
                raise SystemExit(_EXIT_CODE) from None
            except Exception as error:  # Python wraps what is raised while a class is made, as imports do
                if not isinstance(error.__cause__, Interrupted):
                    raise
                _say(f"interrupted by {guard.first}")
                raise SystemExit(_EXIT_CODE) from None

    return run


def starting() -> None:
    """Guard this process from here on: until `guarded` takes over a signal ends it at once, without a traceback."""
    global _guard
    _guard = _Guard()
    _guard.starting = True
    _install(_guard)


def closed() -> None:
    """Ignore signals from here on: the process ends by itself, and its output must still be written.

    The system ignores them, too, since Python gives up its handlers before it has ended.
    """
    if _guard is not None:
        _guard.closed = True
        for number in _handled():
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def held() -> Generator[None]:
    """Let a signal wait until the block has ended; an error that ends the block is raised in place of the signal."""
    with _holds(_guard.holds + 1 if _guard else 0):
        yield
    check()


@contextmanager
def allowed() -> Generator[None]:
    """Let signals interrupt the block, even inside a `held` block; a waiting signal interrupts at once."""
    with _holds(0):
        check()
        yield


def check() -> None:
    """Raise the waiting signal, unless signals are held here."""
    if _guard is not None:
        _guard.raise_pending()


@contextmanager
def _holds(holds: int) -> Generator[None]:
    """Set how deep signals are held in the block."""
    guard = _guard
    if guard is None:
        yield
        return
    before = guard.holds
    try:
        guard.holds = holds
        yield
    finally:
        guard.holds = before


@contextmanager
def _installed() -> Generator[_Guard]:
    """Yield the guard of the process; if it has no guard yet, make it and remove it at the end."""
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
    """Handle every signal that is not ignored, as `nohup` has it; return the handlers before."""
    report_dropped = sys.unraisablehook

    def hook(dropped: "sys.UnraisableHookArgs") -> None:
        if isinstance(dropped.exc_value, Interrupted):
            guard.lost()
        else:
            report_dropped(dropped)

    sys.unraisablehook = hook
    return {number: signal.signal(number, guard.take) for number in _handled()}


def _handled() -> list[int]:
    """Return the signals that this thread may handle and the process does not ignore."""
    if threading.current_thread() is not threading.main_thread():
        return []
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def _say(text: str) -> None:
    """Write a line on standard error, even in a signal handler; ignore a closed standard error."""
    try:
        os.write(2, f"prism-bench: {text}\n".encode())
    except OSError:
        return


# Saves of a long job: one that fails is reported, ends nothing, and is tried again at the next time.

INTERVAL = "PRISM_BENCH_SAVE_SECONDS"
SECONDS = 60.0
_NOT_KEPT = 2  # the exit code of a job whose results could not be kept


def warn(text: str) -> None:
    """Write a line on standard error."""
    print(f"prism-bench: {text}", file=sys.stderr, flush=True)


def number_variable(name: str, default: float, meaning: str, least: float = 0.0) -> float:
    """Return the number in an environment variable, the default where it is unset or empty.

    Raise a UsageError with the meaning for any text but a finite number that is at least `least`.
    """
    written = os.environ.get(name)
    try:
        number = float(written) if written else default
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        raise UsageError(f"{name}={written}: it is {meaning}")
    return number


class Due:
    """Clock of the saves."""

    def __init__(self) -> None:
        meaning = "a number of seconds, 0 for a save after every case"
        self._seconds, self._last = number_variable(INTERVAL, SECONDS, meaning), time.monotonic()

    def __call__(self) -> bool:
        """Return True once in every interval."""
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True


class Saver(Generic[_Value, _Kept]):
    """Saves of a job's results so far by `write`: call it with every version, and `finish` with the last.

    No signal cuts a save short. `kept` is what `write` returned last, `problem` why the latest version is not kept.
    """

    def __init__(self, write: Callable[[_Value], _Kept], report: Callable[[str], object] = warn) -> None:
        self._write, self._report = write, report
        self.kept: _Kept | None = None
        self.problem: str | None = None

    def __call__(self, value: _Value) -> None:
        """Keep a version of a job that goes on; a failure is reported, once for each reason."""
        before = self.problem
        self.finish(value)
        if self.problem and self.problem != before:
            self._report(f"{self.problem}; the job goes on, and the next save is tried")
        if before and not self.problem:
            self._report(f"saved again: {self.kept}")

    def finish(self, value: _Value) -> _Kept | None:
        """Keep the last version; return what `write` does, or None where it failed, which `exit_code` reports."""
        with held():
            try:
                self.kept = self._write(value)
                self.problem = None
            except Exception as error:  # no way in which a save fails is worth the measurements
                reason = str(error) or type(error).__name__
                is_expected = isinstance(error, PrismBenchError | OSError)
                self.problem = reason if is_expected else f"cannot save: {reason}"
            return None if self.problem else self.kept

    def exit_code(self, code: int = 0) -> int:
        """Return the exit code of the job: `code`, or _NOT_KEPT with a warning where the results are not kept.

        Call it when the results have been printed.
        """
        if self.problem is None:
            return code
        older = f", but {self.kept} has an earlier version" if self.kept else ""
        self._report(f"{self.problem}; the results above are not kept{older}")
        return _NOT_KEPT
