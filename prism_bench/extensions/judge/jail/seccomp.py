"""Seccomp filter of jailed processes, which refuses system calls that no compiler needs and that reach beyond a jail.

The numbers are those of the kernel's system call tables (`arch/x86/entry/syscalls/syscall_64.tbl` and
`include/uapi/asm-generic/unistd.h` of Linux), the layout of the filter that of `struct sock_filter`.
"""

import ctypes
import errno
import platform
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prism_bench.errors import BackendUnavailable

# Name: number on x86-64, number on 64-bit Arm; None if the system has no such call.
REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280), "chroot": (161, 51),
    "clock_adjtime": (305, 266), "clock_settime": (227, 112), "delete_module": (176, 106),
    "finit_module": (313, 273), "fsconfig": (431, 431), "fsmount": (432, 432), "fsopen": (430, 430),
    "fspick": (433, 433), "init_module": (175, 105), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219), "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238), "mknod": (133, None), "mknodat": (259, 33), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438), "pivot_root": (155, 41),
    "process_madvise": (440, 440), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "ptrace": (101, 117), "quotactl": (179, 60), "reboot": (169, 142), "request_key": (249, 218),
    "setdomainname": (171, 162), "sethostname": (170, 161), "setns": (308, 268), "settimeofday": (164, 170),
    "shmget": (29, 194),
    "socket": (41, 198), "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "umount2": (166, 39),
    "unshare": (272, 97), "userfaultfd": (323, 282), "vhangup": (153, 58),
}  # fmt: skip
# The limit of a process's memory does not count shared memory without a file, or memory that grows like a stack.
_MAP = (9, 222)  # mmap, of the columns above
_SHARED, _ANONYMOUS, _GROWS_DOWN = 0x01, 0x20, 0x100  # MAP_SHARED_VALIDATE has the bit of MAP_SHARED, too
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # AUDIT_ARCH, and the column above
_OTHER_CALLS = 0x40000000  # x86-64's bit of the calls of its 32-bit pointers
_NUMBER, _ARCHITECTURE, _FLAGS = 0, 4, 40  # offsets in struct seccomp_data; of the fourth argument its lower half
# BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_JMP|JSET|K, BPF_RET|K
_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER_MODE = 22, 38, 2


@dataclass(frozen=True)
class _Step:
    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    @property
    def packed(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.value)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def refused_numbers(machine: str) -> dict[str, int]:
    """Return the numbers of the refused calls on a kind of processor, as `platform.machine` names it."""
    if machine not in _ARCHITECTURES:
        raise BackendUnavailable(f"a jail's filter is known for {' and '.join(_ARCHITECTURES)}; this is a {machine}")
    column = _ARCHITECTURES[machine][1]
    return {name: number for name, numbers in REFUSED.items() if (number := numbers[column]) is not None}


def refuse_system_calls() -> None:
    """Install the filter for this process and its children, for good; raise an OSError if that fails."""
    steps = b"".join(step.packed for step in _steps(platform.machine()))
    program = _Program(len(steps) // 8, steps)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "the system refuses a seccomp filter")


def _steps(machine: str) -> Iterator[_Step]:
    numbers = sorted(refused_numbers(machine).values())
    yield _Step(_LOAD, _ARCHITECTURE)
    yield _Step(_EQUAL, _ARCHITECTURES[machine][0], if_true=1)
    yield _Step(_RETURN, _KILL)
    yield _Step(_LOAD, _NUMBER)
    yield _Step(_AT_LEAST, _OTHER_CALLS, if_false=1)
    yield _Step(_RETURN, _KILL)
    yield _Step(_EQUAL, _MAP[_ARCHITECTURES[machine][1]], if_false=6)
    yield _Step(_LOAD, _FLAGS)
    yield _Step(_HAS, _GROWS_DOWN, if_true=2)
    yield _Step(_HAS, _SHARED, if_false=2)
    yield _Step(_HAS, _ANONYMOUS, if_false=1)
    yield _Step(_RETURN, _ERROR | errno.EPERM)
    yield _Step(_LOAD, _NUMBER)
    for index, number in enumerate(numbers):
        yield _Step(_EQUAL, number, if_true=len(numbers) - index)
    yield _Step(_RETURN, _ALLOW)
    yield _Step(_RETURN, _ERROR | errno.EPERM)
