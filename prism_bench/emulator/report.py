"""Report of a launch on the emulator: findings, and in race mode the traffic."""

from dataclasses import dataclass
from pathlib import Path

Index = tuple[int, int, int]


@dataclass(frozen=True)
class Access:
    """One side of a finding: a line of the kernel's source, and the thread if known."""

    file: str
    line: int
    block: Index | None = None
    thread: Index | None = None
    is_write: bool = False

    @property
    def place(self) -> str:
        """Return the file's name and the line, `softmax.cu:12`."""
        return f"{Path(self.file).name}:{self.line}" if self.file else "unknown place"

    def __str__(self) -> str:
        return self.place if self.thread is None else f"{self.place} by block {self.block} thread {self.thread}"


@dataclass(frozen=True)
class LaunchFinding:
    """An error of a launch.

    `argument` is the index of the kernel's argument that it concerns, if any, and `offset` the byte in it, negative
    before its beginning.
    """

    kind: str
    message: str
    accesses: tuple[Access, ...] = ()
    argument: int | None = None
    offset: int | None = None

    @property
    def file(self) -> str:
        """Return the source file of the first access, or an empty string."""
        return self.accesses[0].file if self.accesses else ""

    @property
    def line(self) -> int:
        """Return the line of the first access, or 0."""
        return self.accesses[0].line if self.accesses else 0

    def __str__(self) -> str:
        places = " and ".join(str(access) for access in self.accesses)
        return f"{self.kind}: {self.message}" + (f" [{places}]" if places else "")


@dataclass(frozen=True)
class ArgumentTraffic:
    """Bytes of one buffer that all threads accessed, in total and without repetitions (`unique`)."""

    argument: int
    bytes_read: int
    bytes_written: int
    unique_read: int
    unique_written: int


@dataclass(frozen=True)
class Traffic:
    """Memory traffic of a launch, counted per access of the source.

    A request is an access of a warp; a sector is 32 bytes of global memory; a wavefront is a pass over the 32 banks of
    shared memory.
    """

    arguments: tuple[ArgumentTraffic, ...] = ()
    global_requests: int = 0
    global_sectors: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    atomics: int = 0

    @property
    def bytes_read(self) -> int:
        """Return the bytes read from all buffers."""
        return sum(argument.bytes_read for argument in self.arguments)

    @property
    def bytes_written(self) -> int:
        """Return the bytes written to all buffers."""
        return sum(argument.bytes_written for argument in self.arguments)

    @property
    def unique_bytes(self) -> int:
        """Return the different bytes read plus the different bytes written: the traffic with perfect caches."""
        return sum(argument.unique_read + argument.unique_written for argument in self.arguments)

    @property
    def sectors_per_request(self) -> float:
        """Return the mean sectors of a request; 4 if a warp reads 32 neighbouring floats."""
        return self.global_sectors / self.global_requests if self.global_requests else 0.0


@dataclass(frozen=True)
class LaunchReport:
    """Findings of a launch, and in race mode its traffic."""

    entry: str
    findings: tuple[LaunchFinding, ...] = ()
    traffic: Traffic | None = None

    @property
    def is_clean(self) -> bool:
        """Return whether the launch has no findings."""
        return not self.findings

    def __str__(self) -> str:
        return "\n".join([f"{self.entry}: {len(self.findings)} finding(s)", *map(str, self.findings)])
