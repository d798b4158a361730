"""Making of a claim: what its records give, with the files, launches, machine code and inputs of both sides."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from prism_bench.compilation import sass_hash
from prism_bench.compilation.languages import BuiltCode, build, build_request
from prism_bench.compilation.languages.code_facts import source_identity
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extensions.claims.derived import (
    HIDDEN,
    INPUT_HASHES,
    OWN,
    ClaimContest,
    baseline_name,
    derived,
    missing_of,
    timed,
    trimmed,
)
from prism_bench.extensions.claims.document import (
    FORMAT,
    PEER,
    SCHEMA,
    Claim,
    ClaimedCode,
    ClaimedLaunch,
    ClaimInputs,
    ClaimSide,
    PackedFile,
    sealed,
    sha256,
)
from prism_bench.extensions.claims.packing import files_of, hashes, packed
from prism_bench.record.run_record import CaseResult, RunRecord, decode, encode
from prism_bench.spec.case import Case, Device
from prism_bench.spec.launch import Launch, LaunchCard, Zero

LARGEST_INPUTS = 64 << 20  # bytes; what is larger is known by its spec and its seed
_COMPILED_ON = ("cuda", "null")  # backends whose code is known from the compiler; `null` plays the device
# The largest dynamic shared memory of a block by compute capability: CUDA C++ Programming Guide, 16.2.
_SHARED_KB = {70: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99, 121: 99}


@dataclass(frozen=True)
class SideSource:
    """Where the code of a side is: its case in a catalogue's `folder`, and `where` as the sentence adds it."""

    case: Case
    folder: Path
    where: str = ""


@dataclass(frozen=True)
class NoSource:
    """A side whose code is not known, with `where` its results are from as the sentence adds it."""

    where: str = ""


@dataclass
class _Parts:
    """The claim in the making: packed files by hash, and what is missing."""

    files: dict[str, PackedFile] = field(default_factory=dict[str, PackedFile])
    missing: list[str] = field(default_factory=list[str])

    def keep(self, content: bytes) -> str:
        key = sha256(content)
        self.files[key] = packed(content)
        return key


def claim_of(contest: ClaimContest, sources: Sequence[SideSource | NoSource], origin: str = OWN) -> Claim:
    """Return the claim that the kernel of a contest is as much faster than its baseline as their records say.

    `sources` are those of the kernel and of the baseline. A ResultsError where the records cannot carry a claim, or
    measured other code.
    """
    parts = _Parts()
    names = [side[1] for side in (contest.kernel, contest.baseline)]
    records = tuple(encode(trimmed(record, names, contest.metric)) for record in contest.records)
    # Files of records keep four digits of a sample: the figures are those of what the claim keeps.
    kept = tuple(decode(plain, f"records[{number}]") for number, plain in enumerate(records))
    contest = replace(contest, records=kept)
    kernel, baseline = (
        _side(contest, side, source, parts)
        for side, source in zip((contest.kernel, contest.baseline), sources, strict=True)
    )
    found = derived(contest, baseline.name)
    own = sources[0] if isinstance(sources[0], SideSource) else None
    inputs = ClaimInputs(found.seeds, HIDDEN, _input_hashes(own, parts)) if own else ClaimInputs()
    parts.missing += missing_of(contest, found.ceilings)
    if any(isinstance(one, NoSource) for one in sources):
        parts.missing += ["machine code, launches, the reference and inputs", "the protocol of the measurement"]
    return sealed(Claim(
        FORMAT, SCHEMA, "", origin, found.sentence, contest.metric, found.backend, found.device, found.ratio, kernel,
        baseline, found.peers, msgspec.structs.replace(inputs, seeds=found.seeds), found.protocol, found.ceilings,
        found.software, tuple(dict.fromkeys(parts.missing)), records, parts.files,
    ))  # fmt: skip


def device_in(record: RunRecord) -> Device:
    """Return what launches may ask of the device of a record; the usual one where it has no facts."""
    facts = record.machine
    capability = facts.get("compute_capability")
    if not isinstance(capability, int) or capability not in _SHARED_KB:
        return Device()
    return Device(int(facts.get("sm_count", 4)), _SHARED_KB[capability] << 10, capability)


def _side(contest: ClaimContest, side: tuple[int, str, str], source: SideSource | NoSource, parts: _Parts) -> ClaimSide:
    number, name, subject = side
    result, record = contest.case(side), contest.records[number]
    title = baseline_name(result, subject) + (f" at {source.where}" if source.where else "")
    made = timed(ClaimSide(title, number, name, subject, 0.0, None, None), contest.medians(side))
    if isinstance(source, NoSource):
        parts.missing.append(f"the sources of {title}")
        return made
    contents = files_of(source.case, source.folder)
    made = msgspec.structs.replace(
        made, spec=next(iter(contents)), files=hashes(contents), choice=dict(source.case.choice)
    )
    for content in contents.values():
        parts.keep(content)
    if subject.startswith(PEER):
        return made
    device = device_in(record)
    code = _code(source.case, device, record, parts)
    _require_same_code(source, result, record, code)
    if len(code) == 1 and record.backend == "cuda" and code[0].sass != result.code.get("sass", code[0].sass):
        parts.missing.append(f"the machine code of {title}: {code[0].compiler} here makes other than what was timed")
        del parts.files[code[0].cubin]
        code = ()
    return msgspec.structs.replace(made, launches=launches_of(source.case, device), code=code)


def launches_of(case: Case, device: Device) -> tuple[ClaimedLaunch, ...]:
    """Return the launches and zero fills of a case on a device."""
    return tuple(_launch(step) for step in case.plan.steps(device)) if case.spec.source else ()


def _launch(step: Launch | Zero) -> ClaimedLaunch:
    if isinstance(step, Zero):
        return ClaimedLaunch(zero=step.name)
    grid, block = (
        tuple(int(one) for one in (extents if isinstance(extents, tuple) else (extents,)))
        for extents in (step.grid, step.block)
    )
    return ClaimedLaunch(
        step.entry or "", grid, block, int(step.shared), step.arguments or (), step.cooperative, dict(step.constants)
    )


def built_for(case: Case, device: Device) -> BuiltCode | None:
    """Return the machine code of a case for a device; None where it launches nothing."""
    request = build_request(case, device) if case.spec.source and case.spec.callable is None else None
    return build(request) if request else None


def _code(case: Case, device: Device, record: RunRecord, parts: _Parts) -> tuple[ClaimedCode, ...]:
    why = f"none runs on the backend {record.backend}"
    if record.backend in _COMPILED_ON:
        try:
            if made := built_for(case, device):
                return tuple(_codes(made, str(device.compute_capability), parts))
            why = "it is made where it is called"
        except PrismBenchError as error:
            why = str(error)
    parts.missing.append(f"the machine code of {case.name}: {why}")
    return ()


def _codes(made: BuiltCode, architecture: str, parts: _Parts) -> Iterator[ClaimedCode]:
    """Yield the machine code of each cubin."""
    for path in dict.fromkeys(kernel.path for kernel in made.kernels.values()):
        cubin = path.read_bytes()
        entries: dict[str, dict[str, Any]] = {
            str(instance): {
                "symbol": kernel.symbol, "registers": kernel.resources.registers,
                "spilled": kernel.resources.spill_stores + kernel.resources.spill_loads,
                "shared": kernel.resources.shared_bytes,
                **({"card": _plain_card(kernel.card)} if kernel.card else {}),
            }
            for instance, kernel in made.kernels.items() if kernel.path == path
        }  # fmt: skip
        yield ClaimedCode(architecture, made.compiler, sass_hash(cubin), parts.keep(cubin), entries)


def _plain_card(card: LaunchCard) -> dict[str, Any]:
    """Return a launch card as plain values, without the place of its cubin."""
    return {key: msgspec.to_builtins(value) for key, value in vars(card).items() if key != "cubin"}


def _require_same_code(source: SideSource, result: CaseResult, record: RunRecord, code: Sequence[ClaimedCode]) -> None:
    """Raise a ResultsError unless the files are what the record measured: by its hashes, or by its commit."""
    if record.backend != "cuda":
        return
    request = build_request(source.case, device_in(record)) if source.case.spec.source else None
    known = result.code.get("source")
    if known and request and known == source_identity(request):
        return
    if any(one.sass == result.code.get("sass") for one in code) or _is_unchanged(source, record):
        return
    raise ResultsError(
        f"{result.name}: the files of {source.folder} are not what this record measured; check out commit "
        f"{(record.commit or 'unknown')[:12]}, or measure both sides now"
    )


def _is_unchanged(source: SideSource, record: RunRecord) -> bool:
    """Return whether the files are those of the record's commit, which it measured without changes."""
    if not record.commit or record.dirty:
        return False
    paths = [name for name in files_of(source.case, source.folder) if (source.folder / name).is_file()]
    words = ["git", "-C", str(source.folder), "diff", "--quiet", record.commit, "--", *paths]
    try:
        return subprocess.run(words, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _input_hashes(source: SideSource, parts: _Parts) -> dict[str, str]:
    hashed = hashes_of_inputs(source.case)
    if not hashed:
        why = "they are too large, and known by spec and seed" if _inputs(source.case) else "it reads none"
        parts.missing.append(f"{INPUT_HASHES}: {why}")
    return hashed


def _inputs(case: Case) -> list[str]:
    return [array.name for array in case.spec.arrays if array.reads]


def hashes_of_inputs(case: Case) -> dict[str, str]:
    """Return by name the SHA-256 of each input of seed 0 with its type and shape; none where they are too large."""
    if sum(map(case.sizes.nbytes, _inputs(case))) > LARGEST_INPUTS:
        return {}
    arrays = {name: np.ascontiguousarray(array.on(np)) for name, array in case.inputs(0).items()}
    return {name: sha256(f"{one.dtype}{one.shape}".encode() + one.tobytes()) for name, one in sorted(arrays.items())}
