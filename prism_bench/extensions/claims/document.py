"""The document of a claim: its form, its bytes, its digest, and what it states."""

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

# The document of a claim: its form, its bytes, and the digest by which it is named.
#
# A claim is one JSON object with sorted keys and no blanks. The same content is always the same bytes, and a file whose
# bytes are others is refused: it may hold a key twice. `records` are run records that hold nothing but the cases of the
# claim and the ceiling benchmarks; what a reader looks at first (the sentence, the ratio, medians, ceilings, versions)
# is computed from them and held to them by `checks`. Files are kept once each, by their SHA-256.

FORMAT, SCHEMA = "prism-bench claim", 1
LARGEST = 2_000_000  # bytes of a claim
PEER = "peer:"  # begins the subject of a library call; any other side is "kernel"


class ClaimedLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch as it was made, or with `zero` the buffer that is filled with zeros instead."""

    entry: str = ""
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    shared: int = 0
    arguments: tuple[str, ...] = ()
    cooperative: bool = False
    constants: dict[str, bool | int | float | str | None] = {}
    zero: str = ""


class ClaimedCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Machine code of one cubin: its file by hash, the hash of its instructions, and its entries by their text.

    An entry has its symbol, registers, bytes spilled, bytes of static shared memory and, where another compiler made
    it, its launch card.
    """

    architecture: str
    compiler: str
    sass: str
    cubin: str
    entries: dict[str, dict[str, Any]]


class ClaimSide(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the two that are compared.

    `name` is what the sentence calls it. Its times are those of `subject` (`kernel`, or `peer:NAME`) of `case` in the
    record number `record`; `seconds` is the median in seconds, `low` to `high` its 95 % interval (None where too few
    processes know one). `files` are hashes by path below a catalogue's folder, the spec first; `choice` is what was
    tuned.
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
    """Time of the baseline over that of the kernel, with the ends of its interval; None where there is none."""

    value: float
    low: float | None
    high: float | None
    confidence: float = 0.95


class ClaimPeer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another peer of the same run: its median in seconds, and that over the kernel's."""

    name: str
    seconds: float
    ratio: float


class ClaimInputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Inputs: the protocol's seeds, the rule for those that nobody knows before, hashes of seed 0 by name.

    Large sizes are verified on the first seed alone: the records name those of each case.
    """

    seeds: tuple[int, ...] = ()
    hidden: str = ""
    sha256: dict[str, str] = {}


class ClaimProtocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that decide a value, and their hash."""

    settings: dict[str, Any]
    sha256: str


class PackedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file, as `text` or in `zlib+base64`."""

    encoding: str
    content: str


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See the module. `origin` is `prism-bench`, or the tool whose results were imported; `missing` what it lacks."""

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
    """Return the digest of everything but the digest itself."""
    return f"sha256:{sha256(canonical(msgspec.structs.replace(claim, digest='')).encode())}"


def sealed(claim: Claim) -> Claim:
    """Return the claim with its digest."""
    return msgspec.structs.replace(claim, digest=_digest_of(claim))


def encoded(claim: Claim) -> bytes:
    """Return the bytes of a claim's file; a ResultsError where they are more than a claim may have."""
    content = f"{canonical(claim)}\n".encode()
    if len(content) > LARGEST:
        large = max(claim.files.items(), key=lambda one: len(one[1].content))
        name = next((path for side in claim.sides for path, key in side.files.items() if key == large[0]), "a cubin")
        raise ResultsError(
            f"the claim would have {len(content):,} bytes; it has at most {LARGEST:,}: its largest file is {name} with "
            f"{len(large[1].content):,}"
        )
    return content


def decoded(content: bytes, origin: str) -> Claim:
    """Return the claim in the bytes of a file; a ResultsError names what is damaged, or not what the digest is of."""
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
    """Return the bytes of a claim's file, no more than a claim may have and one; a ResultsError names the file."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror or error}") from error


# What a claim states, computed from its records: medians, ratio, sentence, ceilings, other peers.
#
# The ratio is that of the geometric means of the processes' medians. Its 95 % interval is that of Student's t with the
# variance between processes, as `prism-bench compare` has it, and on GPUs also covers what boards and hosts of one kind
# differ by: whoever replays has another one.

_CONFIDENCE = 0.95
# Boards and hosts of one kind differ by a share of a time and by seconds of a launch, as standard deviations. Chosen so
# that the intervals of pairs of records of H200s meet as often as they state; the test of boards holds the kept pair.
_BOARD_SHARE, BOARD_SECONDS = 0.004, 0.5e-6
_NORMAL = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
OWN = "prism-bench"  # as a claim's origin; otherwise it is the tool whose results were imported
HIDDEN = "a replay also verifies both sides on inputs of a seed that it draws, which no author knows"

INPUT_HASHES = "hashes of the inputs"  # begins what is missing where a claim has none


@dataclass(frozen=True)
class ClaimContest:
    """The two sides of a claim in their records; `subject` is what the baseline's times are of."""

    metric: str
    records: tuple[RunRecord, ...]
    kernel: tuple[int, str, str]
    baseline: tuple[int, str, str]
    foreign: bool = False

    def case(self, side: tuple[int, str, str]) -> CaseResult:
        """Return the result of a side; a ResultsError where its record has no such case, or did not find it right."""
        number, name, _ = side
        found = self.records[number].case(name) if 0 <= number < len(self.records) else None
        if found is None:
            raise ResultsError(f"records[{number}] has no case {name!r:.200}")
        if found.status != "ok":
            raise ResultsError(f"{name}: {found.status}: {found.reason or 'the record gives no reason'}")
        if not self.foreign and not _is_verified(found):
            raise ResultsError(f"{name}: its outputs were not verified, or were wrong")
        return found

    def measurement(self, side: tuple[int, str, str]) -> Measurement:
        """Return the times of a side; a ResultsError where there are none that can be trusted."""
        case, subject = self.case(side), side[2]
        found = case.measurement(self.metric, subject)
        if found is None or not found.samples or not found.valid:
            why = (found.reason if found else None) or "the record has none"
            raise ResultsError(f"{side[1]}: no {self.metric} of {subject} that can be trusted: {why}")
        if subject.startswith(PEER):
            rival = next((one for one in rivals.peers(case) if f"{PEER}{one.name}" == subject), None)
            if rival and rival.unstable:
                raise ResultsError(f"{side[1]}: {subject} is {rival.unstable_text}; no claim is made of it")
        return found

    def medians(self, side: tuple[int, str, str]) -> Medians:
        """Return the medians of the processes of a side."""
        return medians(self.measurement(side).processes)


@dataclass(frozen=True)
class Derived:
    """What follows from the records of a claim, under the names that the document has."""

    sentence: str
    backend: str
    device: str
    ratio: ClaimRatio
    peers: tuple[ClaimPeer, ...]
    protocol: ClaimProtocol
    ceilings: dict[str, float]
    software: dict[str, Any]
    seeds: tuple[int, ...]


def _is_verified(result: CaseResult) -> bool:
    """Return whether outputs were compared, and all were right."""
    compared = any(one.get("compared", 1) for one in result.verification)
    return compared and all(one.get("passed") for one in result.verification)


def six(value: float) -> float:
    """Return a number with six digits: the last bits of a logarithm differ from one library to another."""
    return float(f"{value:.6g}")


def ratio_of(contest: ClaimContest) -> ClaimRatio:
    """Return the time of the baseline over the kernel's; without an interval where too few processes know one."""
    kernel, baseline = contest.medians(contest.kernel), contest.medians(contest.baseline)
    found = estimate(kernel, baseline)
    low, high = found.interval(_CONFIDENCE)
    if not isfinite(high):
        return ClaimRatio(six(found.ratio), None, None, _CONFIDENCE)
    own = log(high / low) / 2
    on_device = contest.records[contest.kernel[0]].backend == "cuda"
    between = _NORMAL * hypot(board_error(kernel.typical), board_error(baseline.typical)) if on_device else 0.0
    half = hypot(own, between)
    return ClaimRatio(six(found.ratio), six(found.ratio * exp(-half)), six(found.ratio * exp(half)), _CONFIDENCE)


def board_error(seconds: float) -> float:
    """Return the standard deviation of a time's logarithm between boards and hosts of one kind."""
    return hypot(_BOARD_SHARE, BOARD_SECONDS / seconds)


def timed(side: ClaimSide, found: Medians) -> ClaimSide:
    """Return the side with its median and the median's interval, in seconds."""
    freedom, half = len(found.logs) - 1, None
    if freedom > 0:
        half = quantile((1 + _CONFIDENCE) / 2, freedom) * found.variance**0.5
    low, high = (None, None) if half is None else (six(exp(found.centre - half)), six(exp(found.centre + half)))
    return msgspec.structs.replace(side, seconds=six(found.typical), low=low, high=high)


def derived(contest: ClaimContest, baseline: str) -> Derived:
    """Return what the records give; `baseline` is its name in the sentence. A ResultsError where they give nothing."""
    record = contest.records[contest.kernel[0]] if 0 <= contest.kernel[0] < len(contest.records) else None
    if record is None:
        raise ResultsError(f"there is no records[{contest.kernel[0]}]")
    for other in contest.records:
        require_comparable(record, other, ("the kernel's record", "the baseline's record"))
    found = ratio_of(contest)
    settings = value_settings(record.protocol)
    return Derived(
        _sentence_of(contest.kernel[1], device_of(record), found, baseline),
        record.backend,
        device_of(record),
        found,
        tuple(_peers(contest)),
        ClaimProtocol(settings, sha256(canonical(settings).encode())),
        ceilings_of(record),
        dict(record.software),
        tuple(record.protocol.get("seeds", ())),
    )


def _sentence_of(case: str, device: str, ratio: ClaimRatio, baseline: str) -> str:
    """Return `softmax[rows=8192,cols=32768] on NVIDIA H200: 1.48x of torch 2.11 compiled, 1.46 to 1.50`."""
    return f"{case} on {device}: {times_text(ratio.value)} of {baseline}, {interval_text(ratio)}"


def interval_text(ratio: ClaimRatio) -> str:
    """Return `1.46 to 1.50`, with more digits where the ends would read the same, or `without an interval`."""
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
    """Return what the sentence calls a side: `torch_compiled (torch 2.11.0, compiled)`, or a kernel's name."""
    if not subject.startswith(PEER):
        return f"{case.kernel}:{case.variant}" if case.variant and ":" not in case.kernel else case.kernel
    name = subject.removeprefix(PEER)
    facts = case.peers.get(name, {})
    library = " ".join(filter(None, [facts.get("library"), facts.get("version")]))
    words = ", ".join(filter(None, [library, facts.get("kind")]))
    return f"{name} ({words})" if words else name


def _peers(contest: ClaimContest) -> Sequence[ClaimPeer]:
    """Return the other peers of the kernel's record, the fastest first."""
    case, taken = contest.case(contest.kernel), contest.baseline[2]
    own = contest.medians(contest.kernel).typical
    others = [one for one in rivals.peers(case) if f"{PEER}{one.name}" != taken]
    return [ClaimPeer(one.name, six(one.seconds), six(one.seconds / own)) for one in others]


def ceilings_of(record: RunRecord) -> dict[str, float]:
    """Return the ceilings that the record measured, per second, and as `launch` the empty kernel's seconds."""
    found = limits_of(record)
    launch = found.floors.get("cold_time")
    rates: Mapping[str, float] = {**found.ceilings, **({"launch": launch} if launch else {})}
    return {name: six(rate) for name, rate in sorted(rates.items())}


def limits_of(record: RunRecord) -> Limits:
    """Return the launch overheads and ceilings that the record measured, and the peaks that its device's facts give."""
    cache: Any = record.machine.get("l2_bytes", 0)
    return measured_limits(record.cases, int(cache or 0), peaks_of(record.machine))


def missing_of(contest: ClaimContest, ceilings: Mapping[str, float]) -> Iterator[str]:
    """Yield what the records of a claim do not have."""
    for side in (contest.kernel, contest.baseline):
        found, case = contest.measurement(side), contest.case(side)
        title = baseline_name(case, side[2])
        if len([process for process in found.processes if process]) < 2:
            yield f"an interval of {title}: one process measured it"
        if not found.evidence:
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
    """Return the record with nothing but these cases and the ceiling benchmarks, and of them the times of the metric.

    Folders of the machine that measured, and what it spent, are left out.
    """
    kept = [case for case in record.cases if case.name in names or (case.ceiling and case.measurements)]
    cases = tuple(replace(case, measurements=_of(case, metric), profile={}, spent={}) for case in kept)
    folder = record.catalogue if record.catalogue == "built-in" else record.catalogue.rstrip("/").rpartition("/")[2]
    return replace(record, cases=cases, catalogue=folder, monitor=(), spent={}, tuning={})


def _of(case: CaseResult, metric: str) -> tuple[Measurement, ...]:
    """Return the measurements of the metric; those of a ceiling's kernel, whose rate may be its hot one, as well."""
    wanted = {metric, "hot_time"} if case.ceiling else {metric}
    return tuple(one for one in case.measurements if one.metric in wanted)


# The claim inside its page: written into a script element, and read back from it.

LARGEST_PAGE = 10_000_000  # bytes: a page also lists the sources, and JSON in it has longer words for some characters
_HTML = b"<!doctype html>"
_ELEMENT = re.compile(rb'<script type="application/json" id="claim">(.*?)</script>', re.DOTALL)


def written_inside(claim: Claim) -> str:
    """Return the claim's JSON for a script element, which ends at the first `</`; JSON has other words for `<`."""
    return encoded(claim).decode().strip().replace("<", "\\u003c").replace("\u2028", "\\u2028")


def read_inside(content: bytes, origin: str) -> bytes:
    """Return the bytes of the claim inside a page; the content itself where it is none.

    A ResultsError where a page holds no claim.
    """
    if not content.startswith(_HTML):
        return content
    element = _ELEMENT.search(content)
    try:
        return f"{canonical(msgspec.json.decode(element[1]))}\n".encode() if element else _no_claim(origin)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _no_claim(origin)


def _no_claim(origin: str) -> bytes:
    raise ResultsError(f"{origin}: a page without a claim inside; `prism-bench claim --html` writes pages with one")
