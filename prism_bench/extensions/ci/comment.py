"""Comment on a pull request: Markdown from the JSON that `prism-bench compare` prints."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, get_args

from msgspec import Meta

from prism_bench.analysis.compare.comparison import UNMEASURED, CaseRatio, change_sentence
from prism_bench.analysis.compare.verdict import Verdict
from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.documents import as_kind, json_of
from prism_bench.report.gate import plain_text
from prism_bench.report.plain import backend_text
from prism_bench.run.builds import WORKING_TREE
from prism_bench.spec.metric import value_text
from prism_bench.units import change_range_text, change_text

# The comparison, read from JSON; the file may come from a stranger, and is only data.

_LARGEST = 20_000_000  # bytes of a comparison's file: one of 100,000 cases is smaller
_MOST_CASES = 100_000

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
    """Case of a comparison with the fields of `prism-bench compare --json`; an absent field is unknown."""

    case: _Text
    verdict: _Text
    metric: _Text | None = None
    reason: _Text | None = None
    identical: bool = False
    seconds: _Seconds = (None, None)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    shift: float | None = None
    registers: _Both = _NEITHER
    spill_bytes: _Both = _NEITHER
    plan: tuple[list[_Text] | None, list[_Text] | None] = (None, None)
    changed: list[_Text] = field(default_factory=list[str])
    code_difference: list[ComparedEntry] = field(default_factory=list[ComparedEntry])
    code_note: _Text | None = None


@dataclass(frozen=True)
class ComparedFinding:
    """Finding about the comparison or a case."""

    gravity: _Text
    kind: _Text
    message: _Text
    case: _Text | None = None


@dataclass(frozen=True)
class ComparedOptions:
    """Options of the comparing command that decide what is measured; an absent option had its default."""

    catalogue: Annotated[str, Meta(max_length=1_000)] | None = None
    labels: Annotated[list[_Label], Meta(max_length=10)] = field(default_factory=list[str])
    metric: _Metric | None = None

    @property
    def are_repeatable(self) -> bool:
        """Whether the catalogue is in the repository: a file must not name another folder of a reader's machine."""
        path = PurePosixPath(self.catalogue or "")
        return not path.is_absolute() and ".." not in path.parts and "\\" not in str(path)

    @property
    def arguments(self) -> list[str]:
        """The options as command-line arguments."""
        catalogue = ["--catalogue", self.catalogue] if self.catalogue else []
        labels = [word for label in self.labels for word in ("--label", label)]
        return [*catalogue, *labels, *(["--metric", self.metric] if self.metric else [])]


@dataclass(frozen=True)
class ComparedFile:
    """A comparison of two sides, `a` the old one, at `commits` of the sources."""

    a: _Text
    b: _Text
    cases: Annotated[list[CommentedCase], Meta(max_length=_MOST_CASES)]
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
    """Return the comparison in a file; ResultsError if it is invalid or too large."""
    what = "a comparison; 'prism-bench compare --json' prints one"
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror}); it is the output of compare --json") from None
    if size > _LARGEST:
        raise ResultsError(f"{path}: {size / 1e6:.0f} MB; a comparison has at most {_LARGEST / 1e6:.0f} MB")
    try:
        return as_kind(json_of(path, what), ComparedFile)
    except ValueError as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error


# Text of strangers in Markdown of GitHub and GitLab: any name or reason stays text.

_FENCE = re.compile(r"`{3,}")


def text(raw: str) -> str:
    """Return the text escaped into one line without markup, mentions, links and references to issues."""
    escaped = plain_text(_printable(raw)).replace("!", "\\!")
    return escaped.replace("://", ":&#8203;//").replace("www.", "www&#8203;.")


def _printable(raw: str) -> str:
    """Return the text without characters that hide other characters or reverse their order."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "" for letter in raw)


def _shell_block(arguments: Sequence[str]) -> str:
    """Return a command as a fenced block that no argument can close."""
    line = " ".join(_printable(shlex.join(arguments)).split())
    ticks = max((len(run) for run in _FENCE.findall(line)), default=2) + 1
    return f"{'`' * ticks}bash\n{line}\n{'`' * ticks}"


# The comment: first what cannot be trusted, then slower cases, their causes, and the command that repeats them.
#
# The first line is a mark by which `forges` finds the comment again. GitHub takes 65,536 characters: rows that do not
# fit are counted.

MARK = "<!-- prism-bench comment -->"
LONGEST = 65_000  # characters
_NAMED = 8  # cases that the command to repeat names
_FOLDED = 200  # rows of a folded list
_KINDS = 6  # kinds of instructions that a reason names, those that changed most
_ADDRESS = re.compile(r"https?://[\w.-]+(:\d+)?(/[\w./%~?&=#+-]*)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_SPACE = 600  # characters kept for notes of what was cut


def comment(comparison: ComparedFile, page: str | None = None) -> str:
    """Return the comment, ending with a newline; `page` is the address of all numbers, UsageError if it is invalid."""
    if page is not None and not _ADDRESS.fullmatch(page):
        raise UsageError(f"the page {page!r}: give an address such as https://example.org/site/compare.html")
    moved = [*comparison.of("slower"), *comparison.of("faster")]
    alarms = [finding.message for finding in comparison.findings if finding.case is None and finding.gravity != "note"]
    warning = ["> [!WARNING]\n" + "\n".join(f"> {text(alarm)}" for alarm in alarms[:5])] if alarms else []
    fixed = [MARK, f"### {headline(comparison)}", _origin(comparison), *warning]
    notes = [text(note) for note in comparison.notes[:5]]
    small_print = f"<sub>{'. '.join(notes)}.</sub>" if notes else ""
    last = [_repeat(comparison, moved), "" if page is None else f"[All numbers]({page})", small_print]
    available = LONGEST - sum(len(block) + 2 for block in [*fixed, *last])
    blocks: list[str] = []
    for rows, frame in _sections(comparison, moved):
        block = _fitted(rows, frame, available)
        available -= len(block) + 2
        blocks.append(block)
    return "\n\n".join(block for block in [*fixed, *blocks, *last] if block) + "\n"


def headline(comparison: ComparedFile) -> str:
    """Return the sentence on all compared cases, and counts of the others; what cannot be trusted comes first."""
    bad = {finding.case for finding in comparison.findings if finding.gravity == "bad"}
    unmeasured = _unmeasured(comparison)
    broken = [row for row in unmeasured if row.case in bad]
    compared = comparison.of(*get_args(Verdict), UNMEASURED)
    ratios = [CaseRatio(row.verdict, row.ratio, row.low, row.high, row.floor) for row in compared]
    counts = [
        (len(broken), "broken"),
        (len(unmeasured) - len(broken), "not compared"),
        (len(_untrusted(comparison)), "untrusted"),
    ]
    sentence = change_sentence("this change", ratios).rstrip(".")
    pieces = [sentence[0].lower() + sentence[1:]] if ratios else []
    pieces += [f"{count} {word}" for count, word in counts if count]
    parts = "; ".join(pieces) or "nothing was compared"
    if any(finding.gravity == "untrusted" and finding.case is None for finding in comparison.findings):
        return f"Prism Bench: cannot be trusted: {parts}"
    return f"Prism Bench: {parts}"


def _untrusted(comparison: ComparedFile) -> list[CommentedCase]:
    """Return the cases whose times on one side cannot be trusted."""
    return [row for row in comparison.of("not compared") if "not to be trusted" in (row.reason or "")]


def _unmeasured(comparison: ComparedFile) -> list[CommentedCase]:
    return [row for row in comparison.of("not compared") if row not in _untrusted(comparison)]


def _unchanged(comparison: ComparedFile) -> list[CommentedCase]:
    return comparison.of("same", "same machine code")


def _origin(comparison: ComparedFile) -> str:
    old, new = (
        f"{text(name)} ({commit[:8]})" if _COMMIT.fullmatch(commit or "") and commit else text(name)
        for name, commit in zip((comparison.a, comparison.b), comparison.commits, strict=True)
    )
    where = ", ".join(
        text(name) for name in (comparison.device, comparison.backend and backend_text(comparison.backend)) if name
    )
    ended = "" if comparison.complete else " **It was cut short: not everything was measured.**"
    return f"{new} against {old}{f', on {where}' if where else ''}.{ended}"


_Section = tuple[list[str], tuple[str, str]]


def _sections(comparison: ComparedFile, moved: Sequence[CommentedCase]) -> Iterator[_Section]:
    """Yield each section's lines, with the texts before and after them."""
    top = f"| | case | {text(comparison.a)} | {text(comparison.b)} | change | 95 % interval | registers | spills |\n"
    table = top + "|---|---|---:|---:|---:|---|---|---|\n"
    yield [_row(row) for row in moved], (table, "")
    yield [f"- {text(row.case)}: {reason}" for row in moved if (reason := _reason(row))], ("**Why**\n\n", "")
    broken = [*_untrusted(comparison), *_unmeasured(comparison)]
    yield [f"- {text(row.case)}: {text(row.reason or row.verdict)}" for row in broken], ("**Not compared**\n\n", "")
    undecided = comparison.of("inconclusive")
    yield _listed(undecided), _folded(f"{len(undecided)} undecided")
    same = _unchanged(comparison)
    code = sum(row.identical or row.verdict == "same machine code" for row in same)
    yield _listed(same[:_FOLDED]), _folded(f"{len(same)} unchanged, {code} of them with the same machine code")


def _folded(title: str) -> tuple[str, str]:
    return f"<details><summary>{title}</summary>\n\n", "\n\n</details>"


def _listed(rows: Iterable[CommentedCase]) -> list[str]:
    return [f"- {text(row.case)}{f': {text(row.reason)}' if row.reason else ''}" for row in rows]


def _fitted(rows: Sequence[str], frame: tuple[str, str], available: int) -> str:
    """Return the rows that fit, in their frame, with the number of the others."""
    if not rows:
        return ""
    available -= sum(map(len, frame)) + _SPACE
    fitting: list[str] = []
    for row in rows:
        available -= len(row) + 1
        if available < 0:
            break
        fitting.append(row)
    left = len(rows) - len(fitting)
    note = f"\n\n{left} more were cut here: a comment holds {LONGEST} characters." if left else ""
    if not fitting:
        return f"{left} more lines were cut here: a comment holds {LONGEST} characters."
    return frame[0] + "\n".join(fitting) + note + frame[1]


def _row(row: CommentedCase) -> str:
    old, new = (value_text(row.metric or "cold_time", second) for second in row.seconds)
    interval = change_range_text(row.low, row.high) if row.low is not None and row.high is not None else "-"
    machine = f" (machine {change_text(row.shift)})" if row.shift and f"{row.shift:.3f}" != "1.000" else ""
    change = f"{change_text(row.ratio)}{machine}"
    cells = [f"**{row.verdict}**", text(row.case), old, new, change, interval, _both(row.registers)]
    return f"| {' | '.join([*cells, _both(row.spill_bytes, ' B')])} |"


def _both(pair: tuple[int | None, int | None], unit: str = "") -> str:
    old, new = ("?" if number is None else f"{number}{unit}" for number in pair)
    if pair == (None, None):
        return "-"
    return old if pair[0] == pair[1] else f"{old} → {new}"


def _reason(row: CommentedCase) -> str:
    """Return the possible causes of a changed time: machine code by kinds of instructions, and the launch."""
    parts = [change for entry in row.code_difference if (change := _entry(entry))]
    old, new = row.plan
    if old is not None and new is not None and old != new:
        parts.append(f"launch {text('; '.join(old))} → {text('; '.join(new))}")
    known = {"code", "launch"}
    parts += [text(f"{word} changed") for word in row.changed if word not in known or not parts]
    parts += [text(note) for note in (row.code_note, row.reason) if note]
    return "; ".join(parts) or ("same machine code and launch" if row.identical else "")


def _entry(entry: ComparedEntry) -> str:
    """Return what changed in one entry, the kinds of instructions that changed most."""
    moved = sorted(entry.kinds.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
    changes = [f"{text(kind)} {old} → {new}" for kind, (old, new) in moved if old != new]
    more = [f"{len(changes) - _KINDS} more kinds"] if len(changes) > _KINDS else []
    facts = (("registers", entry.registers), ("spilled bytes", entry.spill_bytes), ("instructions", entry.instructions))
    changes = [*(f"{name} {_both(pair)}" for name, pair in facts if pair[0] != pair[1]), *changes[:_KINDS], *more]
    name = f"`{entry.entry}`" if entry.entry.isidentifier() else text(entry.entry)
    listed = f" ({', '.join(changes)})" if changes else ""
    return f"machine code of {name} {text(entry.state)}{listed}"


def _repeat(comparison: ComparedFile, moved: Sequence[CommentedCase]) -> str:
    """Return the command that measures the changed cases again; empty if the catalogue is not in the repository.

    A stranger's file only chooses its commits, cases, labels, metric and a folder of the repository.
    """
    if not comparison.options.are_repeatable:
        return ""
    sides = [name for name in (comparison.a, comparison.b) if name != WORKING_TREE]
    if (
        len(sides) == 2
        and comparison.commits[0] != comparison.commits[1]
        and all(_COMMIT.fullmatch(commit or "") for commit in comparison.commits)
    ):
        sides = [str(commit)[:12] for commit in comparison.commits]
    names = [row.case for row in moved] if len(moved) <= _NAMED else []
    chosen = [word for name in names for word in ("--filter", name)]
    return (
        f"Repeat:\n\n{_shell_block(['prism-bench', 'compare', *comparison.options.arguments, *chosen, '--', *sides])}"
    )
