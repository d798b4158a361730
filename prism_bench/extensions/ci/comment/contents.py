"""Comparison as a comment reads it from JSON; the file may come from a stranger, and is data alone."""

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

from msgspec import Meta

from prism_bench.errors import ResultsError
from prism_bench.io.documents import as_kind, json_of

LARGEST = 20_000_000  # bytes of a comparison's file: one of 100,000 cases is smaller
MOST_CASES = 100_000

_Text = Annotated[str, Meta(max_length=20_000)]
_Label = Annotated[str, Meta(pattern=r"^S\d$")]
_Metric = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
_Both = tuple[int | None, int | None]
_Seconds = tuple[Annotated[float, Meta(ge=0)] | None, Annotated[float, Meta(ge=0)] | None]
_NEITHER: _Both = (None, None)


@dataclass(frozen=True)
class ComparedEntry:
    """Difference of one entry's machine code: `kinds` are instructions by kind, before and after."""

    entry: _Text
    state: _Text = "changed"
    registers: _Both = _NEITHER
    spill_bytes: _Both = _NEITHER
    instructions: _Both = _NEITHER
    kinds: dict[_Text, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True)
class CommentedCase:
    """One case; fields are those of `prism-bench compare --json`, absent ones are unknown."""

    case: _Text
    verdict: _Text
    metric: _Text | None = None
    reason: _Text | None = None
    identical: bool = False
    seconds: _Seconds = (None, None)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    shift: float | None = None
    registers: _Both = _NEITHER
    spill_bytes: _Both = _NEITHER
    plan: tuple[list[_Text] | None, list[_Text] | None] = (None, None)
    changed: list[_Text] = field(default_factory=list[str])
    code_difference: list[ComparedEntry] = field(default_factory=list[ComparedEntry])
    code_note: _Text | None = None


@dataclass(frozen=True)
class ComparedFinding:
    """One finding about the comparison or a case."""

    gravity: _Text
    kind: _Text
    message: _Text
    case: _Text | None = None


@dataclass(frozen=True)
class ComparedOptions:
    """Options of the command that compared, as far as they decide what is measured; absent ones had their defaults."""

    catalogue: Annotated[str, Meta(max_length=1_000)] | None = None
    labels: Annotated[list[_Label], Meta(max_length=10)] = field(default_factory=list[str])
    metric: _Metric | None = None

    @property
    def are_repeatable(self) -> bool:
        """Whether the catalogue is in the repository: a file must not name another folder of a reader's machine."""
        path = PurePosixPath(self.catalogue or "")
        return not path.is_absolute() and ".." not in path.parts and "\\" not in str(path)

    @property
    def words(self) -> list[str]:
        """The options as a command line has them."""
        catalogue = ["--catalogue", self.catalogue] if self.catalogue else []
        labels = [word for label in self.labels for word in ("--label", label)]
        return [*catalogue, *labels, *(["--metric", self.metric] if self.metric else [])]


@dataclass(frozen=True)
class ComparedFile:
    """A comparison of two sides, `a` the old one, at `commits` of the sources."""

    a: _Text
    b: _Text
    cases: Annotated[list[CommentedCase], Meta(max_length=MOST_CASES)]
    findings: list[ComparedFinding] = field(default_factory=list[ComparedFinding])
    notes: list[_Text] = field(default_factory=list[str])
    backend: _Text = ""
    device: _Text = ""
    commits: tuple[_Text | None, _Text | None] = (None, None)
    complete: bool = True
    options: ComparedOptions = field(default_factory=ComparedOptions)

    def of(self, *verdicts: str) -> list[CommentedCase]:
        """Return the cases with one of these verdicts."""
        return [row for row in self.cases if row.verdict in verdicts]


def read_comparison(path: Path) -> ComparedFile:
    """Return the comparison in a file; a ResultsError where it is none, or too large."""
    what = "a comparison; 'prism-bench compare --json' prints one"
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror}); it is the output of compare --json") from None
    if size > LARGEST:
        raise ResultsError(f"{path}: {size / 1e6:.0f} MB; a comparison has at most {LARGEST / 1e6:.0f} MB")
    try:
        return as_kind(json_of(path, what), ComparedFile)
    except ValueError as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error
