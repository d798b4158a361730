"""Checks of a claim before anything of it runs: bytes, hashes, signatures and machine code."""

import http.client
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from prism_bench.compilation import sass_hash as compilation_sass_hash
from prism_bench.compilation.cubin import sass_hash, toolchain
from prism_bench.compilation.prebuilt import cubin_architecture, cubin_resources
from prism_bench.compilation.program import compiler_of
from prism_bench.errors import BackendUnavailable, PrismBenchError, ResultsError, UsageError
from prism_bench.extensions.claims.document import (
    HIDDEN,
    INPUT_HASHES,
    LARGEST_PAGE,
    OWN,
    Claim,
    ClaimContest,
    ClaimedCode,
    ClaimSide,
    Derived,
    baseline_name,
    decoded,
    derived,
    limits_of,
    missing_of,
    read_inside,
    sha256,
    timed,
)
from prism_bench.extensions.claims.making import MOST_FILES, built_for, device_in, packed, require_path, unpacked
from prism_bench.io.files import temporary_folder
from prism_bench.measure.plausibility import LaunchWork, is_fp32
from prism_bench.measure.plausibility import judge as plausible
from prism_bench.record.run_record import CaseResult, RunRecord, decode
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA
from prism_bench.units import count_text, time_text

if TYPE_CHECKING:
    from prism_bench.extensions.judge.jail_client import JailCell


# Checks of a claim's machine code: its cubins, their hashes and entries, and what its records say ran.

# NVRTC has the ptxas of the same release, which leaves its number in the cubin.
_RELEASE, _NVRTC = re.compile(rb"release (\d+\.\d+)"), re.compile(r"NVRTC (\d+\.\d+)")
_ENTRY, _OPTIONAL = {"symbol": str, "registers": int, "spilled": int, "shared": int}, {"card"}


def _check_code(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Hold cubins to the hashes of their instructions, and those to what ran."""
    for side in claim.sides:
        for code in side.code:
            cubin = unpacked(claim.files[code.cubin], f"{side.name}: cubin")
            try:
                found = sass_hash(cubin)
            except Exception as error:  # whatever a reader of ELF raises for bytes that are none
                raise ResultsError(f"{side.name}: its cubin cannot be read ({type(error).__name__})") from None
            if found != code.sass:
                raise ResultsError(f"{side.name}: the instructions of its cubin have the hash {found}, not {code.sass}")
            _check_entries(side.name, code, cubin)
            capability = device_in(records[side.record]).compute_capability
            if code.architecture != str(capability):
                raise ResultsError(f"{side.name}: a cubin for sm_{code.architecture}, measured on sm_{capability}")
        ran = records[side.record].case(side.case)
        recorded = ran.code.get("sass") if ran and claim.backend == "cuda" else None
        if len(side.code) == 1 and recorded and recorded != side.code[0].sass:
            raise ResultsError(f"{side.name}: its cubin is not what was timed: {side.code[0].sass}, not {recorded}")


def _check_entries(name: str, code: ClaimedCode, cubin: bytes) -> None:
    """Hold what a claim states of its entries to the cubin: symbols, registers, shared memory, and spills."""
    if code.architecture != str(cubin_architecture(cubin)):
        raise ResultsError(f"{name}: its cubin is for sm_{cubin_architecture(cubin)}, not sm_{code.architecture:.20}")
    release, compiler = _RELEASE.search(toolchain(cubin)), _NVRTC.fullmatch(code.compiler)
    if release and compiler and release[1].decode() != compiler[1]:
        raise ResultsError(f"{name}: its cubin is of release {release[1].decode()}, not of {code.compiler:.40}")
    found = cubin_resources(cubin)
    symbols = [str(stated.get("symbol")) for stated in code.entries.values()]
    if not symbols or len(set(symbols)) < len(symbols):
        raise ResultsError(f"{name}: code.entries is empty, or names one symbol of its cubin twice")
    for text, stated in code.entries.items():
        if set(stated) - _OPTIONAL != set(_ENTRY) or any(type(stated[key]) is not kind for key, kind in _ENTRY.items()):
            raise ResultsError(f"{name}: {text:.80} has other fields than {', '.join(_ENTRY)}")
        known = found.get(str(stated.get("symbol")))
        if known is None:
            raise ResultsError(f"{name}: its cubin has no {stated.get('symbol')!r:.80}, which {text:.80} names")
        if (stated.get("registers"), stated.get("shared")) != (known.registers, known.shared_bytes):
            raise ResultsError(
                f"{name}: {text:.80} takes {count_text(known.registers, 'register')} and {known.shared_bytes} B of "
                "shared memory"
            )
        if stated.get("spilled") and not known.stack_bytes:
            raise ResultsError(f"{name}: {text:.80} cannot spill, since its cubin gives it no stack")


# Checks of a claim before anything of it runs: its bytes, its hashes, and what it states against its own records.

_CLOSE = 1e-5  # relative: six digits are kept


def checked(content: bytes, origin: str) -> tuple[Claim, tuple[RunRecord, ...]]:
    """Return the claim in a file's bytes with its records; a ResultsError names the first thing that is wrong."""
    claim = decoded(content, origin)
    try:
        records = tuple(decode(plain, f"records[{number}]") for number, plain in enumerate(claim.records))
        _check_files(claim)
        _check_figures(claim, records)
        _check_records(claim, records)
        _check_times(claim, records)
        _check_code(claim, records)
    except PrismBenchError as error:
        raise ResultsError(f"{origin}: {error}") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # records of right types may be nonsense
        raise ResultsError(f"{origin}: what it states does not follow from its records ({error})") from None
    return claim, records


def _contest_of(claim: Claim, records: tuple[RunRecord, ...]) -> ClaimContest:
    """Return the two sides of a claim in its records."""
    kernel, baseline = ((side.record, side.case, side.subject) for side in claim.sides)
    return ClaimContest(claim.metric, records, kernel, baseline, foreign=claim.origin != OWN)


def _check_files(claim: Claim) -> None:
    if len(claim.files) > MOST_FILES:
        raise ResultsError(f"{count_text(len(claim.files), 'file')}; a claim has at most {MOST_FILES}")
    for key, file in claim.files.items():
        content = unpacked(file, f"files: {key[:16]}")
        if sha256(content) != key:
            raise ResultsError(f"files: {key[:16]}: its content has another hash")
        if packed(content).encoding != file.encoding:
            raise ResultsError(f"files: {key[:16]}: its encoding is {file.encoding!r:.40}, where text needs none")
    used = set(_used(claim))
    if missing := sorted(used - set(claim.files)):
        raise ResultsError(f"files: {missing[0][:16]} is named and not there")
    if unused := sorted(set(claim.files) - used):
        raise ResultsError(f"files: {unused[0][:16]} is not named anywhere")
    for side in claim.sides:
        for path in side.files:
            require_path(path, side.name)
        if side.files and side.spec not in side.files:
            raise ResultsError(f"{side.name}: its spec {side.spec!r:.80} is none of its files")


def _used(claim: Claim) -> Iterator[str]:
    for side in claim.sides:
        yield from side.files.values()
        yield from (code.cubin for code in side.code)


def _check_records(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Hold the records to the claim: they have its sides and ceiling benchmarks alone, from the tool that it names."""
    tools = {record.backend if record.imported else OWN for record in records}
    if tools != {claim.origin}:
        raise ResultsError(f"origin is {claim.origin!r:.40}; its records are from {', '.join(sorted(tools)) or 'none'}")
    if unused := sorted(set(range(len(records))) - {side.record for side in claim.sides}):
        raise ResultsError(f"records[{unused[0]}] is of neither side")
    names = {side.case for side in claim.sides}
    for number, record in enumerate(records):
        for case in record.cases:
            if case.name not in names and not case.ceiling:
                raise ResultsError(f"records[{number}] has {case.name!r:.80}, which is of neither side")
            if claim.origin == OWN and case.name in names:
                _require_own_case(f"records[{number}]", case, set(record.protocol.get("seeds", ())))


def _check_times(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Refuse a time that is impossible by the limits in its record, also where the record calls it valid."""
    for place, side in (("kernel", claim.kernel), ("baseline", claim.baseline)):
        case = records[side.record].case(side.case)
        if case is None:
            continue
        work = LaunchWork(case.bytes or None, case.flops if side.subject == "kernel" and is_fp32(case) else None)
        if refusal := plausible(claim.metric, side.seconds, work, limits_of(records[side.record])).refusal:
            raise ResultsError(f"{place}: {side.name:.80} cannot take {time_text(side.seconds)}: {refusal}")


def _require_own_case(place: str, case: CaseResult, seeds: set[int]) -> None:
    """Refuse a result whose name is another case's, or that was verified on other inputs than its protocol's."""
    kernel, _, workload = case.name.removesuffix("]").partition("[")
    if kernel != baseline_name(case, "kernel") or set(workload.split(",")) != set(case.workload_text.split(",")):
        raise ResultsError(f"{place}: {case.name!r:.80} is of {baseline_name(case, 'kernel')}[{case.workload_text}]")
    for entry in case.verification:
        if entry.get("seed") not in seeds:
            raise ResultsError(f"{place}: {case.name!r:.80}: its protocol has no seed {entry.get('seed')} to verify")


def _check_figures(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Hold everything that the claim states to what its records give."""
    contest = _contest_of(claim, records)
    if contest.kernel == contest.baseline:
        raise ResultsError("both sides are the same measurement")
    found = derived(contest, claim.baseline.name)
    _check_missing(claim, contest)
    for one in fields(Derived):
        stated = claim.inputs.seeds if one.name == "seeds" else getattr(claim, one.name)
        _require_same(one.name, stated, getattr(found, one.name))
    for place, side in (("kernel", contest.kernel), ("baseline", contest.baseline)):
        own: ClaimSide = getattr(claim, place)
        _require_same(place, own, timed(own, contest.medians(side)))
        _require_name(place, own, contest, side)


def _check_missing(claim: Claim, contest: ClaimContest) -> None:
    """Refuse a claim that keeps silent about what it lacks, and an imported one that has what it cannot have."""
    silent = [one for one in missing_of(contest, claim.ceilings) if one not in claim.missing]
    silent += _unlisted(claim) if claim.origin == OWN else ()
    if silent:
        raise ResultsError(f"missing: it does not say that it lacks {silent[0]}")
    if claim.origin != OWN and (claim.files or any(side.files or side.code for side in claim.sides)):
        raise ResultsError(f"origin: results of {claim.origin!r:.40} come without code")
    if claim.inputs.hidden != (HIDDEN if claim.kernel.files else ""):
        raise ResultsError("inputs.hidden: not the rule for inputs that a replay draws")


def _unlisted(claim: Claim) -> Iterator[str]:
    """Yield what an own claim does not have and does not list as missing."""
    for side in claim.sides:
        code = f"the machine code of {side.name}", f"the machine code of {side.case}"
        if not side.files and f"the sources of {side.name}" not in claim.missing:
            yield f"the sources of {side.name}"
        elif side.files and not side.code and side.subject == "kernel" and not _lists(claim, *code):
            yield code[0]
    if claim.kernel.files and not claim.inputs.sha256 and not _lists(claim, INPUT_HASHES):
        yield INPUT_HASHES


def _lists(claim: Claim, *beginnings: str) -> bool:
    return any(one.startswith(beginnings) for one in claim.missing)


def _require_name(place: str, side: ClaimSide, contest: ClaimContest, found: tuple[int, str, str]) -> None:
    """Refuse a name that is not the kernel's or the peer's in the record; a build may add where it comes from."""
    name = baseline_name(contest.case(found), found[2])
    if side.name != name and not side.name.startswith(f"{name} at "):
        raise ResultsError(f"{place}.name is {side.name!r:.80}; its record has {name!r:.80}")


def _require_same(place: str, stated: Any, found: Any) -> None:
    """Raise a ResultsError with the first place where the two differ by more than rounding."""
    stated, found = (msgspec.to_builtins(one) for one in (stated, found))
    if isinstance(stated, dict) and isinstance(found, dict):
        for key in {**stated, **found}:
            _require_same(f"{place}.{key}", stated.get(key), found.get(key))
    elif isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        for number, (one, other) in enumerate(zip(stated, found, strict=True)):
            _require_same(f"{place}[{number}]", one, other)
    elif isinstance(stated, float) and isinstance(found, float):
        if not isclose(stated, found, rel_tol=_CLOSE):
            raise ResultsError(f"{place} is {stated!r}; its records give {found!r}")
    elif stated != found:
        raise ResultsError(f"{place} is {stated!r:.80}; its records give {found!r:.80}")


# Machine code that the sources of a claim's side give here: by the compiler of this process, or by one in a jail.


@dataclass(frozen=True)
class RecompiledCode:
    """Cubins, the compiler that made them, and the symbols of their entries by the entries' texts."""

    compiler: str
    symbols: dict[str, str]
    cubins: tuple[bytes, ...]

    @property
    def hashes(self) -> set[str]:
        """The hashes of the instructions of each cubin."""
        return {compilation_sass_hash(cubin) for cubin in self.cubins}

    @property
    def toolchains(self) -> set[bytes]:
        """The notes that ptxas leaves of itself in each cubin."""
        return {toolchain(cubin) for cubin in self.cubins}


def compiled_here(case: Case, device: Device) -> RecompiledCode | None:
    """Return the machine code of a case whose source is trusted; None where it launches nothing."""
    made = built_for(case, device)
    if made is None:
        return None
    symbols = {str(instance): kernel.symbol for instance, kernel in made.kernels.items()}
    return RecompiledCode(made.compiler, symbols, tuple(kernel.path.read_bytes() for kernel in made.kernels.values()))


def compiled_in_jail(case: Case, device: Device, cell: "JailCell") -> RecompiledCode | None:
    """Return the machine code of a case in CUDA C++ by the compiler in a jail; None for another language."""
    spec = case.spec
    if spec.language != CUDA or not spec.source:
        return None
    entries = sorted(case.plan.entries(device))
    made, cubin = cell.machine_code(spec.source_file, entries, str(device.compute_capability), spec.options)
    return RecompiledCode(compiler_of(spec.source_file, spec.options), dict(made.symbols), (cubin,))


# Fetching of a claim and its signature from a file or an address.

SECONDS = 30.0
_LOCAL = ("localhost", "127.0.0.1", "::1")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_address(place: str) -> bool:
    """Return whether a place is an address of the web, and no file."""
    return bool(_ADDRESS.match(place))


def fetched(place: str) -> bytes:
    """Return the bytes of a claim, or of the one inside a page.

    A ResultsError where there are none, a UsageError for an unsafe address.
    """
    return read_inside(_content(place), place)


def fetched_next_to(place: str, suffix: str) -> bytes | None:
    """Return the bytes of the file next to a claim that has another suffix added; None where there is none."""
    try:
        return _content(f"{place}{suffix}")
    except ResultsError:
        return None


def _content(place: str) -> bytes:
    if is_address(place):
        return _downloaded(place)
    try:
        with Path(place).open("rb") as file:
            return file.read(LARGEST_PAGE + 1)
    except OSError as error:
        raise ResultsError(f"{place}: {error.strerror or error}") from error


class _LocalHandler(urllib.request.HTTPHandler):
    """Opens http:// on this machine alone, also where an address redirects to it."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Return the answer of a safe address."""
        _require_safe(req.full_url)
        return super().http_open(req)


def _require_safe(address: str) -> None:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise UsageError(f"{address}: no address ({error})") from None
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in _LOCAL):
        raise UsageError(f"{address}: a claim is fetched by https:// alone")


def _downloaded(address: str) -> bytes:
    _require_safe(address)
    try:
        with urllib.request.build_opener(_LocalHandler).open(address, timeout=SECONDS) as answer:
            return answer.read(LARGEST_PAGE + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ResultsError(f"{address}: {getattr(error, 'reason', None) or error}") from None


# Signatures of claims, detached and next to the file, by minisign or sigstore where they are installed.
#
# A digest shows that a claim was not changed by accident. Who made it, only a signature shows.

MINISIGN, _SIGSTORE = "minisign", "sigstore"
_SUFFIXES = {MINISIGN: ".minisig", _SIGSTORE: ".sigstore.json"}
_SECONDS = 300  # sigstore may ask a person to log in


def require_signer(how: str) -> None:
    """Raise an error unless `how` is `minisign:KEY_FILE` or `sigstore`, and its program is installed."""
    tool, _, key = how.partition(":")
    if how != _SIGSTORE and not (tool == MINISIGN and key):
        raise UsageError(f"--sign {how}: write minisign:KEY_FILE, or sigstore")
    _require_program(tool)


def sign(path: Path, how: str) -> Path:
    """Sign the file; `how` is `minisign:KEY_FILE` or `sigstore`. Returns the signature's path."""
    require_signer(how)
    tool, _, key = how.partition(":")
    words: list[str] = [MINISIGN, "-S", "-s", key, "-m", str(path), "-x", f"{path}{_SUFFIXES[MINISIGN]}"]
    if tool == _SIGSTORE:
        words = [_SIGSTORE, "sign", "--overwrite", "--bundle", f"{path}{_SUFFIXES[_SIGSTORE]}", str(path)]
    done = _run(words)
    if done.returncode:
        raise ResultsError(f"{path}: {tool} did not sign it: {_last_line(done)}")
    return Path(f"{path}{_SUFFIXES[tool]}")


def require_signature(place: str, content: bytes, by: str | None) -> str:
    """Return in words who signed a claim; `by` is `minisign:PUBLIC_KEY` or `sigstore:IDENTITY,ISSUER`.

    A ResultsError where a signature is wanted and is not there, or is another one's.
    """
    if by is None:
        there = [tool for tool, suffix in _SUFFIXES.items() if fetched_next_to(place, suffix) is not None]
        return f"signed by {there[0]}, unchecked: --signed-by checks it" if there else "not signed"
    tool, _, signer = by.partition(":")
    identity, _, issuer = signer.partition(",")
    if tool not in _SUFFIXES or not identity or (tool == _SIGSTORE) != bool(issuer):
        raise UsageError(f"--signed-by {by}: write minisign:PUBLIC_KEY or sigstore:IDENTITY,ISSUER")
    signature = fetched_next_to(place, _SUFFIXES[tool])
    if signature is None:
        raise ResultsError(f"{place}: no signature {_SUFFIXES[tool]} next to it")
    with temporary_folder("prism-claim-") as folder:
        file, signed = folder / "claim.json", folder / f"claim.json{_SUFFIXES[tool]}"
        file.write_bytes(content)
        signed.write_bytes(signature)
        words = [MINISIGN, "-V", "-q", "-P", identity, "-m", str(file), "-x", str(signed)]
        if tool == _SIGSTORE:
            words = [_SIGSTORE, "verify", "identity", "--bundle", str(signed), "--cert-identity", identity]
            words += ["--cert-oidc-issuer", issuer, str(file)]
        done = _run(words)
    if done.returncode:
        raise ResultsError(f"{place}: its signature is not by {identity}: {_last_line(done)}")
    return f"signed by {identity}"


def _require_program(name: str) -> None:
    if shutil.which(name) is None:
        raise BackendUnavailable(f"{name} is not installed; a claim can be made and replayed without a signature")


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    _require_program(words[0])
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, stdin=None)
    except subprocess.TimeoutExpired:
        raise ResultsError(f"{words[0]} has not ended in {_SECONDS} s") from None


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode}"
