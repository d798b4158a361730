"""Outer stage of a jail: new namespaces, a root of read-only folders, no network, the user nobody.

Started as `python -m prism_bench.extensions.judge.jail.namespaces JAIL COMMAND...`. This process stays outside,
waits, and ends as the command ended. Between them is the first process of the process namespace; everything that the
command leaves behind ends with it. The command is not this first process, since the first process of a namespace
ignores its own signals.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from prism_bench.extensions.judge.jail.jail import DEVICES, NOBODY, Jail, be_killed_first

_NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000  # mount, uts, ipc, pid, net
_NEW_USER = 0x10000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECUREBITS = 1, 4, 28
_KEEP_RIGHTS = 1 << 2  # SECBIT_NO_SETUID_FIXUP: a change of user takes no capability away
_LIBC = ctypes.CDLL(None, use_errno=True)


def main(text: str, *command: str) -> None:
    """Enter the jail that `text` describes, and run the command in it."""
    jail = Jail.read(text)
    be_killed_first()
    _enter_namespaces()
    reading, writing = os.pipe()
    first = os.fork()
    if first:
        os.close(writing)
        _end_as(first, reading)
    os.close(reading)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _make_root(jail)
    child = os.fork()
    if not child:
        _count_apart()
    _become_nobody()
    if child:
        os.write(writing, os.waitpid(child, 0)[1].to_bytes(4, "little"))
        os._exit(0)
    os.close(writing)
    os.execv(command[0], command)


def _enter_namespaces() -> None:
    """Leave the namespaces of the host. Without root, only a user namespace gives the right to mount."""
    user, group = os.getuid(), os.getgid()
    if user == 0 and _LIBC.unshare(_NEW_NAMESPACES) == 0:
        return
    _check(_LIBC.unshare(_NEW_USER | _NEW_NAMESPACES), "unshare")
    _name_user(user, group)


def _name_user(user: int | str, group: int | str) -> None:
    """Map the host's user and group to nobody in this process's new user namespace."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{NOBODY} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{NOBODY} {group} 1")


def _end_as(first: int, reading: int) -> None:
    """Wait for the namespace's first process, which reports the command's status, and end as the command ended."""
    for caught in (signal.SIGINT, signal.SIGTERM):
        signal.signal(caught, lambda *_: os.kill(first, signal.SIGKILL))
    report, status_of_first = os.read(reading, 4), os.waitpid(first, 0)[1]
    status = int.from_bytes(report, "little") if report else status_of_first
    if os.WIFSIGNALED(status):
        with suppress(OSError):  # SIGKILL has no other disposition
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _make_root(jail: Jail) -> None:
    """Make a read-only root of the jail's folders, with a private /tmp, and leave the host's root."""
    _mount("none", "/", None, _RECURSIVE | _PRIVATE)
    root = Path("/tmp")  # its content is out of reach from here on
    folders = [Path(folder) for folder in jail.readable]
    held = [(path, os.open(path, os.O_PATH)) for path in folders]
    devices = [(Path("/dev", name), os.open(f"/dev/{name}", os.O_PATH)) for name in DEVICES]
    _mount("jail", str(root), "tmpfs", _NO_SUID | _NO_DEVICES, "size=16m,mode=755")
    for name in ("tmp", "proc", "old"):
        (root / name).mkdir()
    _mount("jail", str(root / "tmp"), "tmpfs", _NO_SUID | _NO_DEVICES, f"size={jail.scratch_bytes},mode=1777")
    for path, descriptor in [*held, *devices]:
        _bind(descriptor, path, root, read_only=path.parts[1] != "dev")
        os.close(descriptor)
    with suppress(OSError):  # some containers refuse it; no compiler needs it
        _mount("proc", str(root / "proc"), "proc", _NO_SUID | _NO_DEVICES)
    _check(_LIBC.pivot_root(bytes(root), bytes(root / "old")), "pivot_root")
    os.chdir("/")
    _check(_LIBC.umount2(b"/old", _DETACH), "umount2")
    os.rmdir("/old")
    _mount("none", "/", None, _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    os.chdir("/tmp")


def _bind(descriptor: int, path: Path, root: Path, read_only: bool) -> None:
    """Bind an opened file or folder of the host to its own path under `root`."""
    source, place = f"/proc/self/fd/{descriptor}", root / path.relative_to("/")
    if os.path.isdir(source):
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    _mount(source, str(place), None, _BIND | (_RECURSIVE if read_only else 0))
    if read_only:
        _mount("none", str(place), None, _BIND | _REMOUNT | _READ_ONLY | _NO_SUID | _kept_flags(place))


def _kept_flags(place: Path) -> int:
    """Return the flags of a mount that a user namespace may not take away."""
    flags, kept = os.statvfs(place).f_flag, 0
    for held, flag in ((os.ST_NODEV, _NO_DEVICES), (os.ST_NOEXEC, 8), (os.ST_NOATIME, 1024), (os.ST_RELATIME, 1 << 21)):
        kept |= flag if flags & held else 0
    return kept


def _count_apart() -> None:
    """Become nobody in a new user namespace, in which the limit of processes counts only this jail's.

    Otherwise the kernel counts the processes of all jails of root together, since all have the same user. Before Linux
    5.14 it does so in any case. The rights of the user namespace end with the command that is executed next.
    """
    if os.getuid() == 0:
        _LIBC.prctl(_PR_SET_SECUREBITS, _KEEP_RIGHTS, 0, 0, 0)  # some systems refuse a user namespace without rights
        _become_nobody()
        if _LIBC.unshare(_NEW_USER) == 0:
            _LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # a change of user gives its files in /proc to root
            with suppress(OSError):  # without /proc: the kernel names the user nobody then, too
                _name_user(NOBODY, NOBODY)


def _become_nobody() -> None:
    if os.getuid() == 0:
        nobody = int(NOBODY)
        os.setgroups([])
        os.setresgid(nobody, nobody, nobody)
        os.setresuid(nobody, nobody, nobody)
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # a change of user takes it off


def _mount(source: str, place: str, kind: str | None, flags: int, options: str = "") -> None:
    _check(
        _LIBC.mount(
            source.encode(), place.encode(), kind and kind.encode(), ctypes.c_ulong(flags), options.encode() or None
        ),
        f"mount of {place}",
    )


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    arguments: Sequence[str] = sys.argv[1:]
    main(*arguments)
