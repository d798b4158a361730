"""Document of a claim: its fields, bytes and digest, and the figures that it states.

A claim is one JSON object with sorted keys and no blanks, so equal content is always equal bytes. A file with other
bytes is refused: it may hold a key twice. `records` are run records that hold only the cases of the claim and the
ceiling benchmarks. What a reader looks at first (sentence, ratio, medians, ceilings, versions) is computed from them,
and `checks` compares the two. Each file is kept once, by its SHA-256.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, isfinite, log
from pathlib import Path
from statistics import NormalDist
from typing import Any

import msgspec

from prism_bench.analysis import peers as rivals
from prism_bench.analysis.compare.comparable import device_of, require_comparable, value_settings
from prism_bench.analysis.compare.estimate import Medians, estimate, medians, quantile
from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_text
from prism_bench.measure.plausibility import Limits, measured_limits, peaks_of
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.report.headline import times_text

FORMAT, SCHEMA = "prism-bench claim", 1
LARGEST = 2_000_000  # bytes of a claim
PEER = "peer:"  # begins the subject of a library call; any other side is "kernel"
OWN = "prism-bench"  # as a claim's origin; otherwise it is the tool whose results were imported
HIDDEN = "a replay also verifies both sides on inputs of a seed that it draws, which no author knows"
INPUT_HASHES = "hashes of the inputs"  # begins the entry of `missing` for a claim without them
_CONFIDENCE = 0.95
# Boards and hosts of one kind differ by a share of a time and by seconds of a launch, as standard deviations. Chosen so
# that the intervals of pairs of records of H200s meet as often as they state; the test of boards holds the kept pair.
_BOARD_SHARE, BOARD_SECONDS = 0.004, 0.5e-6
_NORMAL = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)


class ClaimedLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A launch as it was made, or a fill of the buffer `zero` with zeros."""

    entry: str = ""
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    shared: int = 0
    arguments: tuple[str, ...] = ()
    cooperative: bool = False
    constants: dict[str, bool | int | float | str | None] = {}
    zero: str = ""


class ClaimedCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Machine code of a cubin: its file by hash, the hash of its instructions, and its entries by their text.

    An entry has its symbol, registers, bytes spilled, bytes of static shared memory and, if another compiler made it,
    its launch card.
    """

    architecture: str
    compiler: str
    sass: str
    cubin: str
    entries: dict[str, dict[str, Any]]


class ClaimSide(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kernel or baseline of the comparison.

    The sentence calls it `name`. Its times are of `subject` (`kernel`, or `peer:NAME`) of `case` in the record number
    `record`; `seconds` is the median in seconds, `low` to `high` its 95 % interval (None if too few processes measured
    it). `files` are hashes by path below a catalogue's folder, the spec first; `choice` has the tuned values.
    """

    name: str
    record: int
    case: str
    subject: str
    seconds: float
    low: float | None
    high: float | None
    spec: str = ""
    choice: dict[str, bool | int | float | str] = {}
    files: dict[str, str] = {}
    launches: tuple[ClaimedLaunch, ...] = ()
    code: tuple[ClaimedCode, ...] = ()


class ClaimRatio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Time of the baseline over the time of the kernel, with the ends of its interval; None without an interval."""

    value: float
    low: float | None
    high: float | None
    confidence: float = 0.95


class ClaimPeer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another peer of the same run: its median in seconds, and the ratio of this median to the kernel's."""

    name: str
    seconds: float
    ratio: float


class ClaimInputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Inputs: the protocol's seeds, the rule for hidden seeds, and hashes of the inputs of seed 0 by name.

    Large sizes are verified only on the first seed: the records name the seeds of each case.
    """

    seeds: tuple[int, ...] = ()
    hidden: str = ""
    sha256: dict[str, str] = {}


class ClaimProtocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that decide a value, and their hash."""

    settings: dict[str, Any]
    sha256: str


class PackedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a file, as `text` or in `zlib+base64`."""

    encoding: str
    content: str


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Claim as in its file.

    `origin` is `prism-bench`, or the tool whose results were imported; `missing` lists what the claim lacks.
    """

    format: str
    schema: int
    digest: str
    origin: str
    sentence: str
    metric: str
    backend: str
    device: str
    ratio: ClaimRatio
    kernel: ClaimSide
    baseline: ClaimSide
    peers: tuple[ClaimPeer, ...]
    inputs: ClaimInputs
    protocol: ClaimProtocol
    ceilings: dict[str, float]
    software: dict[str, bool | int | float | str | None]
    missing: tuple[str, ...]
    records: tuple[dict[str, Any], ...]
    files: dict[str, PackedFile]

    @property
    def sides(self) -> tuple[ClaimSide, ClaimSide]:
        """The kernel and its baseline."""
        return self.kernel, self.baseline


def canonical(value: object) -> str:
    """Return a value as JSON with sorted keys and no blanks."""
    return json_text(msgspec.to_builtins(value), sort_keys=True)


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _digest_of(claim: Claim) -> str:
    """Return the digest of all fields except the digest."""
    return f"sha256:{sha256(canonical(msgspec.structs.replace(claim, digest='')).encode())}"


def sealed(claim: Claim) -> Claim:
    """Return the claim with its digest."""
    return msgspec.structs.replace(claim, digest=_digest_of(claim))


def encoded(claim: Claim) -> bytes:
    """Return the bytes of a claim's file; raise a ResultsError if they exceed `LARGEST`."""
    content = f"{canonical(claim)}\n".encode()
    if len(content) > LARGEST:
        largest = max(claim.files, key=lambda key: len(claim.files[key].content))
        name = next((path for side in claim.sides for path, key in side.files.items() if key == largest), "a cubin")
        raise ResultsError(
            f"the claim would have {len(content):,} bytes; it has at most {LARGEST:,}: its largest file is {name} with "
            f"{len(claim.files[largest].content):,}"
        )
    return content


def decoded(content: bytes, origin: str) -> Claim:
    """Return the claim in the bytes of a file; raise a ResultsError that names the damage."""
    if len(content) > LARGEST:
        raise ResultsError(f"{origin}: {len(content):,} bytes; a claim has at most {LARGEST:,}")
    try:
        claim = msgspec.json.decode(content, type=Claim)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a claim ({error})") from None
    if (claim.format, claim.schema) != (FORMAT, SCHEMA):
        raise ResultsError(f"{origin}: format {claim.format!r:.60}, schema {claim.schema}; it is {FORMAT!r}, {SCHEMA}")
    if content != encoded(claim):
        raise ResultsError(f"{origin}: not the bytes of a claim: its keys are not sorted, or there twice, or blanks")
    if claim.digest != _digest_of(claim):
        raise ResultsError(f"{origin}: its digest is not that of its content: it was changed after it was made")
    return claim


def read_bytes(path: Path) -> bytes:
    """Return the first `LARGEST` + 1 bytes of a claim's file; raise a ResultsError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror or error}") from error


# Figures that a claim states, computed from its records


@dataclass(frozen=True)
class ClaimContest:
    """Kernel and baseline in their records, each by number of the record, case, and subject of its times.

    Results of another tool (`foreign`) need no verification.
    """

    metric: str
    records: tuple[RunRecord, ...]
    kernel: tuple[int, str, str]
    baseline: tuple[int, str, str]
    foreign: bool = False

    def case(self, side: tuple[int, str, str]) -> CaseResult:
        """Return the result of a side; raise a ResultsError if the case is absent, or its outputs are not right."""
        number, name, _ = side
        result = self.records[number].case(name) if 0 <= number < len(self.records) else None
        if result is None:
            raise ResultsError(f"records[{number}] has no case {name!r:.200}")
        if result.status != "ok":
            raise ResultsError(f"{name}: {result.status}: {result.reason or 'the record gives no reason'}")
        entries = result.verification
        is_right = all(entry.get("passed") for entry in entries)
        if not self.foreign and not (is_right and any(entry.get("compared", 1) for entry in entries)):
            raise ResultsError(f"{name}: its outputs were not verified, or were wrong")
        return result

    def measurement(self, side: tuple[int, str, str]) -> Measurement:
        """Return the times of a side; raise a ResultsError if they are absent or cannot be trusted."""
        case, subject = self.case(side), side[2]
        times = case.measurement(self.metric, subject)
        if times is None or not times.samples or not times.valid:
            why = (times.reason if times else None) or "the record has none"
            raise ResultsError(f"{side[1]}: no {self.metric} of {subject} that can be trusted: {why}")
        if subject.startswith(PEER):
            rival = next((peer for peer in rivals.peers(case) if f"{PEER}{peer.name}" == subject), None)
            if rival and rival.unstable:
                raise ResultsError(f"{side[1]}: {subject} is {rival.unstable_text}; no claim is made of it")
        return times

    def medians(self, side: tuple[int, str, str]) -> Medians:
        """Return the medians of the processes of a side."""
        return medians(self.measurement(side).processes)


@dataclass(frozen=True)
class Derived:
    """Fields of a claim that follow from its records, with the names that they have in the claim."""

    sentence: str
    backend: str
    device: str
    ratio: ClaimRatio
    peers: tuple[ClaimPeer, ...]
    protocol: ClaimProtocol
    ceilings: dict[str, float]
    software: dict[str, Any]
    seeds: tuple[int, ...]


def derived(contest: ClaimContest, baseline: str) -> Derived:
    """Return the fields that follow from the records; `baseline` is its name in the sentence.

    A ResultsError if the records cannot be compared or lack a side.
    """
    number, case, _ = contest.kernel
    if not 0 <= number < len(contest.records):
        raise ResultsError(f"there is no records[{number}]")
    record = contest.records[number]
    for other in contest.records:
        require_comparable(record, other, ("the kernel's record", "the baseline's record"))
    ratio, device = ratio_of(contest), device_of(record)
    settings = value_settings(record.protocol)
    return Derived(
        # such as `softmax[rows=8192,cols=32768] on NVIDIA H200: 1.48x of torch 2.11 compiled, 1.46 to 1.50`
        sentence=f"{case} on {device}: {times_text(ratio.value)} of {baseline}, {interval_text(ratio)}",
        backend=record.backend,
        device=device,
        ratio=ratio,
        peers=tuple(_other_peers(contest)),
        protocol=ClaimProtocol(settings, sha256(canonical(settings).encode())),
        ceilings=ceilings_of(record),
        software=dict(record.software),
        seeds=tuple(record.protocol.get("seeds", ())),
    )


def ratio_of(contest: ClaimContest) -> ClaimRatio:
    """Return the time of the baseline over the time of the kernel, by geometric means of the processes' medians.

    The 95 % interval is that of Student's t with the variance between processes, as in `prism-bench compare`. On GPUs
    it also covers the differences between boards and hosts of one kind, since a replay runs on another board. The
    interval is None if too few processes measured a side.
    """
    kernel, baseline = contest.medians(contest.kernel), contest.medians(contest.baseline)
    estimated = estimate(kernel, baseline)
    ratio = estimated.ratio
    low, high = estimated.interval(_CONFIDENCE)
    if not isfinite(high):
        return ClaimRatio(six(ratio), None, None, _CONFIDENCE)
    between_processes = log(high / low) / 2
    on_device = contest.records[contest.kernel[0]].backend == "cuda"
    between_boards = _NORMAL * hypot(board_error(kernel.typical), board_error(baseline.typical)) if on_device else 0.0
    half = hypot(between_processes, between_boards)
    return ClaimRatio(six(ratio), six(ratio * exp(-half)), six(ratio * exp(half)), _CONFIDENCE)


def board_error(seconds: float) -> float:
    """Return the standard deviation of a time's logarithm between boards and hosts of one kind."""
    return hypot(_BOARD_SHARE, BOARD_SECONDS / seconds)


def timed(side: ClaimSide, times: Medians) -> ClaimSide:
    """Return the side with its median and the median's interval, in seconds."""
    low = high = None
    freedom = len(times.logs) - 1
    if freedom > 0:
        half = quantile((1 + _CONFIDENCE) / 2, freedom) * times.variance**0.5
        low, high = six(exp(times.centre - half)), six(exp(times.centre + half))
    return msgspec.structs.replace(side, seconds=six(times.typical), low=low, high=high)


def six(value: float) -> float:
    """Return a number rounded to six digits: the last bits of a logarithm differ between libraries."""
    return float(f"{value:.6g}")


def interval_text(ratio: ClaimRatio) -> str:
    """Return `1.46 to 1.50`, with more digits if both ends would read the same, or `without an interval`."""
    low, high = ratio.low, ratio.high
    if low is None or high is None:
        return "without an interval"
    texts = [times_text(low)[:-1], times_text(high)[:-1]]
    for digits in (3, 4, 5):
        if texts[0] != texts[1] or low == high:
            break
        texts = [f"{end:,.{digits}f}" for end in (low, high)]
    return " to ".join(texts)


def baseline_name(case: CaseResult, subject: str) -> str:
    """Return the name of a side in the sentence: `torch_compiled (torch 2.11.0, compiled)`, or a kernel's name."""
    if not subject.startswith(PEER):
        return f"{case.kernel}:{case.variant}" if case.variant and ":" not in case.kernel else case.kernel
    name = subject.removeprefix(PEER)
    facts = case.peers.get(name, {})
    library = " ".join(filter(None, [facts.get("library"), facts.get("version")]))
    origin = ", ".join(filter(None, [library, facts.get("kind")]))
    return f"{name} ({origin})" if origin else name


def _other_peers(contest: ClaimContest) -> Iterator[ClaimPeer]:
    """Yield the peers of the kernel's record that are not the baseline, the fastest first."""
    kernel = contest.medians(contest.kernel).typical
    for peer in rivals.peers(contest.case(contest.kernel)):
        if f"{PEER}{peer.name}" != contest.baseline[2]:
            yield ClaimPeer(peer.name, six(peer.seconds), six(peer.seconds / kernel))


def ceilings_of(record: RunRecord) -> dict[str, float]:
    """Return the ceilings that the record measured, per second, and as `launch` the empty kernel's seconds."""
    limits = limits_of(record)
    launch = limits.floors.get("cold_time")
    rates: Mapping[str, float] = {**limits.ceilings, **({"launch": launch} if launch else {})}
    return {name: six(rate) for name, rate in sorted(rates.items())}


def limits_of(record: RunRecord) -> Limits:
    """Return the launch overheads and ceilings that the record measured, and the peaks from its device's facts."""
    cache: Any = record.machine.get("l2_bytes", 0)
    return measured_limits(record.cases, int(cache or 0), peaks_of(record.machine))


def missing_of(contest: ClaimContest, ceilings: Mapping[str, float]) -> Iterator[str]:
    """Yield what the records of a claim lack."""
    for side in (contest.kernel, contest.baseline):
        times, case = contest.measurement(side), contest.case(side)
        title = baseline_name(case, side[2])
        if len([process for process in times.processes if process]) < 2:
            yield f"an interval of {title}: one process measured it"
        if not times.evidence:
            yield f"evidence of the device's state while {title} was timed"
        if not case.verification:
            yield f"a verification of {title}"
        if contest.records[side[0]].backend == "cuda" and side[2] == "kernel" and "sass" not in case.code:
            yield f"a hash of the instructions of {title} that were timed"
    if not ceilings:
        yield "ceilings of the machine"
    for record in contest.records if contest.foreign else ():
        if device_of(record) == "unknown":
            yield "the name of the device"
        if not set(record.software) - {record.backend}:
            yield f"versions of what {record.backend} ran with"


def trimmed(record: RunRecord, names: Sequence[str], metric: str) -> RunRecord:
    """Return the record with only these cases and the ceiling benchmarks, and their times of the metric.

    Folders of the measuring machine, and the time that was spent, are left out.
    """
    cases: list[CaseResult] = []
    for case in record.cases:
        if case.name in names or (case.ceiling and case.measurements):
            # The rate of a ceiling benchmark may be its hot one.
            metrics = {metric, "hot_time"} if case.ceiling else {metric}
            times = tuple(measurement for measurement in case.measurements if measurement.metric in metrics)
            cases.append(replace(case, measurements=times, profile={}, spent={}))
    folder = record.catalogue if record.catalogue == "built-in" else record.catalogue.rstrip("/").rpartition("/")[2]
    return replace(record, cases=tuple(cases), catalogue=folder, monitor=(), spent={}, tuning={})


# The claim inside its page: a script element

LARGEST_PAGE = 10_000_000  # bytes: a page also lists the sources, and JSON in it has longer words for some characters
_HTML = b"<!doctype html>"
_ELEMENT = re.compile(rb'<script type="application/json" id="claim">(.*?)</script>', re.DOTALL)


def written_inside(claim: Claim) -> str:
    """Return the claim's JSON for a script element, with `<` escaped: the element ends at the first `</`."""
    return encoded(claim).decode().strip().replace("<", "\\u003c").replace("\u2028", "\\u2028")


class _Head(msgspec.Struct):
    """The member of a JSON document that names its format."""

    format: str = ""


def has_format(content: bytes) -> bool:
    """Return whether the content of a file is a page, or JSON with the format of a claim."""
    if content.startswith(_HTML):
        return True
    try:
        return msgspec.json.decode(content, type=_Head).format == FORMAT
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False


def claim_title(path: Path) -> str | None:
    """Return what the file is where it is a claim, or a page with a claim inside; else None."""
    content = path.read_bytes()
    if content.startswith(_HTML):
        return "a claim's page" if _ELEMENT.search(content) else None
    return "a claim" if has_format(content) else None


def read_inside(content: bytes, origin: str) -> bytes:
    """Return the bytes of the claim inside a page, or the content if it is no page.

    A ResultsError for a page that holds no claim.
    """
    if not content.startswith(_HTML):
        return content
    if element := _ELEMENT.search(content):
        try:
            return f"{canonical(msgspec.json.decode(element[1]))}\n".encode()
        except (msgspec.MsgspecError, RecursionError, ValueError):
            pass
    raise ResultsError(
        f"{origin}: a page without a claim inside; `prism-bench claim --output claim.html` writes pages with one"
    )
