"""The document of a claim: its form, its bytes, and the digest by which it is named.

A claim is one JSON object with sorted keys and no blanks. The same content is always the same bytes, and a file whose
bytes are others is refused: it may hold a key twice. `records` are run records that hold nothing but the cases of the
claim and the ceiling benchmarks; what a reader looks at first (the sentence, the ratio, medians, ceilings, versions) is
computed from them and held to them by `checks`. Files are kept once each, by their SHA-256.
"""

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_text

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


def digest_of(claim: Claim) -> str:
    """Return the digest of everything but the digest itself."""
    return f"sha256:{sha256(canonical(msgspec.structs.replace(claim, digest='')).encode())}"


def sealed(claim: Claim) -> Claim:
    """Return the claim with its digest."""
    return msgspec.structs.replace(claim, digest=digest_of(claim))


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
    if claim.digest != digest_of(claim):
        raise ResultsError(f"{origin}: its digest is not that of its content: it was changed after it was made")
    return claim


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a claim's file, no more than a claim may have and one; a ResultsError names the file."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror or error}") from error
