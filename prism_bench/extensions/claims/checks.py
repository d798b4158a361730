"""Checks of a claim before any of its code runs: bytes, hashes, figures, machine code and signatures."""

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
    Derived,
    baseline_name,
    decoded,
    derived,
    has_format,
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


_CLOSE = 1e-5  # relative: six digits are kept
# NVRTC has the ptxas of the same release, which leaves its number in the cubin.
_RELEASE, _NVRTC = re.compile(rb"release (\d+\.\d+)"), re.compile(r"NVRTC (\d+\.\d+)")
_ENTRY, _OPTIONAL = {"symbol": str, "registers": int, "spilled": int, "shared": int}, {"card"}


def checked(content: bytes, origin: str) -> tuple[Claim, tuple[RunRecord, ...]]:
    """Return the claim in a file's bytes with its records; raise a ResultsError that names the first fault."""
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


def _check_files(claim: Claim) -> None:
    if len(claim.files) > MOST_FILES:
        raise ResultsError(f"{count_text(len(claim.files), 'file')}; a claim has at most {MOST_FILES}")
    for key, file in claim.files.items():
        content = unpacked(file, f"files: {key[:16]}")
        if sha256(content) != key:
            raise ResultsError(f"files: {key[:16]}: its content has another hash")
        if packed(content).encoding != file.encoding:
            raise ResultsError(f"files: {key[:16]}: its encoding is {file.encoding!r:.40}, where text needs none")
    used = {key for side in claim.sides for key in side.files.values()}
    used |= {code.cubin for side in claim.sides for code in side.code}
    if missing := sorted(used - set(claim.files)):
        raise ResultsError(f"files: {missing[0][:16]} is named and not there")
    if unused := sorted(set(claim.files) - used):
        raise ResultsError(f"files: {unused[0][:16]} is not named anywhere")
    for side in claim.sides:
        for path in side.files:
            require_path(path, side.name)
        if side.files and side.spec not in side.files:
            raise ResultsError(f"{side.name}: its spec {side.spec!r:.80} is none of its files")


def _check_figures(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Compare all that the claim states with the figures of its records."""
    kernel, baseline = ((side.record, side.case, side.subject) for side in claim.sides)
    contest = ClaimContest(claim.metric, records, kernel, baseline, foreign=claim.origin != OWN)
    if contest.kernel == contest.baseline:
        raise ResultsError("both sides are the same measurement")
    figures = derived(contest, claim.baseline.name)
    _check_missing(claim, contest)
    for figure in fields(Derived):
        stated = claim.inputs.seeds if figure.name == "seeds" else getattr(claim, figure.name)
        _require_same(figure.name, stated, getattr(figures, figure.name))
    for place, stated, side in (("kernel", claim.kernel, kernel), ("baseline", claim.baseline, baseline)):
        _require_same(place, stated, timed(stated, contest.medians(side)))
        name = baseline_name(contest.case(side), side[2])
        if stated.name != name and not stated.name.startswith(f"{name} at "):  # a build may add its origin
            raise ResultsError(f"{place}.name is {stated.name!r:.80}; its record has {name!r:.80}")


def _check_missing(claim: Claim, contest: ClaimContest) -> None:
    """Refuse a claim that does not list all that it lacks, and an imported claim with code, which it cannot have."""
    unlisted = [entry for entry in missing_of(contest, claim.ceilings) if entry not in claim.missing]
    unlisted += _unlisted_code(claim) if claim.origin == OWN else ()
    if unlisted:
        raise ResultsError(f"missing: it does not say that it lacks {unlisted[0]}")
    if claim.origin != OWN and (claim.files or any(side.files or side.code for side in claim.sides)):
        raise ResultsError(f"origin: results of {claim.origin!r:.40} come without code")
    if claim.inputs.hidden != (HIDDEN if claim.kernel.files else ""):
        raise ResultsError("inputs.hidden: not the rule for inputs that a replay draws")


def _unlisted_code(claim: Claim) -> Iterator[str]:
    """Yield sources, machine code and input hashes that an own claim neither has nor lists as missing."""
    for side in claim.sides:
        code = f"the machine code of {side.name}", f"the machine code of {side.case}"
        if not side.files and f"the sources of {side.name}" not in claim.missing:
            yield f"the sources of {side.name}"
        elif side.files and not side.code and side.subject == "kernel" and not _lists(claim, *code):
            yield code[0]
    if claim.kernel.files and not claim.inputs.sha256 and not _lists(claim, INPUT_HASHES):
        yield INPUT_HASHES


def _lists(claim: Claim, *beginnings: str) -> bool:
    return any(entry.startswith(beginnings) for entry in claim.missing)


def _require_same(place: str, stated: Any, recorded: Any) -> None:
    """Raise a ResultsError with the first place where the two differ by more than rounding."""
    stated, recorded = msgspec.to_builtins(stated), msgspec.to_builtins(recorded)
    if isinstance(stated, dict) and isinstance(recorded, dict):
        for key in {**stated, **recorded}:
            _require_same(f"{place}.{key}", stated.get(key), recorded.get(key))
    elif isinstance(stated, list) and isinstance(recorded, list) and len(stated) == len(recorded):
        for number, pair in enumerate(zip(stated, recorded, strict=True)):
            _require_same(f"{place}[{number}]", *pair)
    elif isinstance(stated, float) and isinstance(recorded, float):
        if not isclose(stated, recorded, rel_tol=_CLOSE):
            raise ResultsError(f"{place} is {stated!r}; its records give {recorded!r}")
    elif stated != recorded:
        raise ResultsError(f"{place} is {stated!r:.80}; its records give {recorded!r:.80}")


def _check_records(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Refuse records of other cases than the sides and ceiling benchmarks, or from another tool than `origin`."""
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


def _require_own_case(place: str, case: CaseResult, seeds: set[int]) -> None:
    """Refuse a result with the name of another case, or with a verification on a seed outside its protocol."""
    kernel, _, workload = case.name.removesuffix("]").partition("[")
    if kernel != baseline_name(case, "kernel") or set(workload.split(",")) != set(case.workload_text.split(",")):
        raise ResultsError(f"{place}: {case.name!r:.80} is of {baseline_name(case, 'kernel')}[{case.workload_text}]")
    for entry in case.verification:
        if entry.get("seed") not in seeds:
            raise ResultsError(f"{place}: {case.name!r:.80}: its protocol has no seed {entry.get('seed')} to verify")


def _check_times(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Refuse a time that is impossible by the limits in its record, even if the record calls it valid."""
    for place, side in (("kernel", claim.kernel), ("baseline", claim.baseline)):
        case = records[side.record].case(side.case)
        if case is None:
            continue
        work = LaunchWork(case.bytes or None, case.flops if side.subject == "kernel" and is_fp32(case) else None)
        if refusal := plausible(claim.metric, side.seconds, work, limits_of(records[side.record])).refusal:
            raise ResultsError(f"{place}: {side.name:.80} cannot take {time_text(side.seconds)}: {refusal}")


def _check_code(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Compare cubins with the hashes of their instructions, and the hashes with those of the timed code."""
    for side in claim.sides:
        for code in side.code:
            cubin = unpacked(claim.files[code.cubin], f"{side.name}: cubin")
            try:
                sass = sass_hash(cubin)
            except Exception as error:  # a reader of ELF may raise anything for other bytes
                raise ResultsError(f"{side.name}: its cubin cannot be read ({type(error).__name__})") from None
            if sass != code.sass:
                raise ResultsError(f"{side.name}: the instructions of its cubin have the hash {sass}, not {code.sass}")
            _check_entries(side.name, code, cubin)
            capability = device_in(records[side.record]).compute_capability
            if code.architecture != str(capability):
                raise ResultsError(f"{side.name}: a cubin for sm_{code.architecture}, measured on sm_{capability}")
        ran = records[side.record].case(side.case)
        recorded = ran.code.get("sass") if ran and claim.backend == "cuda" else None
        if len(side.code) == 1 and recorded and recorded != side.code[0].sass:
            raise ResultsError(f"{side.name}: its cubin is not what was timed: {side.code[0].sass}, not {recorded}")


def _check_entries(name: str, code: ClaimedCode, cubin: bytes) -> None:
    """Compare the stated entries with the cubin: symbols, registers, shared memory and spills."""
    if code.architecture != str(cubin_architecture(cubin)):
        raise ResultsError(f"{name}: its cubin is for sm_{cubin_architecture(cubin)}, not sm_{code.architecture:.20}")
    release, compiler = _RELEASE.search(toolchain(cubin)), _NVRTC.fullmatch(code.compiler)
    if release and compiler and release[1].decode() != compiler[1]:
        raise ResultsError(f"{name}: its cubin is of release {release[1].decode()}, not of {code.compiler:.40}")
    resources = cubin_resources(cubin)
    symbols = [str(stated.get("symbol")) for stated in code.entries.values()]
    if not symbols or len(set(symbols)) < len(symbols):
        raise ResultsError(f"{name}: code.entries is empty, or names one symbol of its cubin twice")
    for text, stated in code.entries.items():
        if set(stated) - _OPTIONAL != set(_ENTRY) or any(type(stated[key]) is not kind for key, kind in _ENTRY.items()):
            raise ResultsError(f"{name}: {text:.80} has other fields than {', '.join(_ENTRY)}")
        known = resources.get(str(stated.get("symbol")))
        if known is None:
            raise ResultsError(f"{name}: its cubin has no {stated.get('symbol')!r:.80}, which {text:.80} names")
        if (stated.get("registers"), stated.get("shared")) != (known.registers, known.shared_bytes):
            raise ResultsError(
                f"{name}: {text:.80} takes {count_text(known.registers, 'register')} and {known.shared_bytes} B of "
                "shared memory"
            )
        if stated.get("spilled") and not known.stack_bytes:
            raise ResultsError(f"{name}: {text:.80} cannot spill, since its cubin gives it no stack")


# Machine code that the sources of a side give here: by the compiler of this process, or by the compiler in a jail


@dataclass(frozen=True)
class RecompiledCode:
    """Cubins, their compiler, and the symbols of their entries by the entries' texts."""

    compiler: str
    symbols: dict[str, str]
    cubins: tuple[bytes, ...]

    @property
    def hashes(self) -> set[str]:
        """The hashes of the instructions of each cubin."""
        return {sass_hash(cubin) for cubin in self.cubins}

    @property
    def toolchains(self) -> set[bytes]:
        """The notes of ptxas about itself in each cubin."""
        return {toolchain(cubin) for cubin in self.cubins}


def compiled_here(case: Case, device: Device) -> RecompiledCode | None:
    """Return the machine code of a case with a trusted source; None if it launches nothing."""
    built = built_for(case, device)
    if built is None:
        return None
    symbols = {str(instance): kernel.symbol for instance, kernel in built.kernels.items()}
    return RecompiledCode(built.compiler, symbols, tuple(kernel.path.read_bytes() for kernel in built.kernels.values()))


def compiled_in_jail(case: Case, device: Device, cell: "JailCell") -> RecompiledCode | None:
    """Return the machine code of a case in CUDA C++ by the compiler in a jail; None for another language."""
    spec = case.spec
    if spec.language != CUDA or not spec.source:
        return None
    entries = sorted(case.plan.entries(device))
    built, cubin = cell.machine_code(spec.source_file, entries, str(device.compute_capability), spec.options)
    return RecompiledCode(compiler_of(spec.source_file, spec.options), dict(built.symbols), (cubin,))


# A claim and its signature from a file or an address

SECONDS = 30.0
_LOCAL = ("localhost", "127.0.0.1", "::1")
_FILE_SUFFIXES = (".json", ".html", ".gz", ".csv")  # of claims, their pages, and records: no kernel's name has them
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_address(place: str) -> bool:
    """Return whether a place is a web address rather than a file."""
    return bool(_ADDRESS.match(place))


def is_claim(place: str) -> bool:
    """Return whether a place is an address, a page, or a file with the format of a claim.

    A pipe, which can be read once, is taken for a claim. A ResultsError for the name of a file that does not exist.
    """
    path = Path(place)
    if is_address(place) or path.is_fifo():
        return True
    is_file = path.is_file() or (not path.exists() and path.suffix in _FILE_SUFFIXES)
    return is_file and has_format(_content(place))


def fetched(place: str) -> bytes:
    """Return the bytes of a claim, or of the claim inside a page.

    A ResultsError if they cannot be read, a UsageError for an unsafe address.
    """
    return read_inside(_content(place), place)


def fetched_next_to(place: str, suffix: str) -> bytes | None:
    """Return the bytes of the file next to a claim that has this suffix added; None if it cannot be read."""
    try:
        return _content(f"{place}{suffix}")
    except ResultsError:
        return None


def _content(place: str) -> bytes:
    if not is_address(place):
        try:
            with Path(place).open("rb") as file:
                return file.read(LARGEST_PAGE + 1)
        except OSError as error:
            raise ResultsError(f"{place}: {error.strerror or error}") from error
    _require_safe(place)
    try:
        with urllib.request.build_opener(_LocalHandler).open(place, timeout=SECONDS) as answer:
            return answer.read(LARGEST_PAGE + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ResultsError(f"{place}: {getattr(error, 'reason', None) or error}") from None


class _LocalHandler(urllib.request.HTTPHandler):
    """Handler of http:// that opens only addresses of this machine, also after a redirect."""

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


# Detached signatures next to the file, by minisign or sigstore
#
# A digest shows that a claim was not changed by accident. Only a signature shows its author.

MINISIGN, _SIGSTORE = "minisign", "sigstore"
_SUFFIXES = {MINISIGN: ".minisig", _SIGSTORE: ".sigstore.json"}
_SECONDS = 300  # sigstore may ask a person to log in


def require_signer(how: str) -> None:
    """Raise an error unless `how` is `minisign:KEY_FILE` or `sigstore`, and its program is installed."""
    tool, _, key = how.partition(":")
    if how != _SIGSTORE and not (tool == MINISIGN and key):
        raise UsageError(f"--signature {how}: write minisign:KEY_FILE, or sigstore")
    _require_program(tool)


def sign(path: Path, how: str) -> Path:
    """Sign the file and return the signature's path; `how` is `minisign:KEY_FILE` or `sigstore`."""
    require_signer(how)
    tool, _, key = how.partition(":")
    signature = Path(f"{path}{_SUFFIXES[tool]}")
    if tool == MINISIGN:
        command = [MINISIGN, "-S", "-s", key, "-m", str(path), "-x", str(signature)]
    else:
        command = [_SIGSTORE, "sign", "--overwrite", "--bundle", str(signature), str(path)]
    done = _run(command)
    if done.returncode:
        raise ResultsError(f"{path}: {tool} did not sign it: {_last_line(done)}")
    return signature


def require_signature(place: str, content: bytes, by: str | None) -> str:
    """Return a text about the signature of a claim; `by` is `minisign:PUBLIC_KEY` or `sigstore:IDENTITY,ISSUER`.

    A ResultsError if `by` is given and its signature is absent, or by another signer.
    """
    if by is None:
        there = [tool for tool, suffix in _SUFFIXES.items() if fetched_next_to(place, suffix) is not None]
        return f"signed by {there[0]}, unchecked: --signature checks it" if there else "not signed"
    tool, _, signer = by.partition(":")
    identity, _, issuer = signer.partition(",")
    if tool not in _SUFFIXES or not identity or (tool == _SIGSTORE) != bool(issuer):
        raise UsageError(f"--signature {by}: write minisign:PUBLIC_KEY or sigstore:IDENTITY,ISSUER")
    signature = fetched_next_to(place, _SUFFIXES[tool])
    if signature is None:
        raise ResultsError(f"{place}: no signature {_SUFFIXES[tool]} next to it")
    with temporary_folder("prism-claim-") as folder:
        file, signed = folder / "claim.json", folder / f"claim.json{_SUFFIXES[tool]}"
        file.write_bytes(content)
        signed.write_bytes(signature)
        if tool == MINISIGN:
            command = [MINISIGN, "-V", "-q", "-P", identity, "-m", str(file), "-x", str(signed)]
        else:
            command = [_SIGSTORE, "verify", "identity", "--bundle", str(signed), "--cert-identity", identity]
            command += ["--cert-oidc-issuer", issuer, str(file)]
        done = _run(command)
    if done.returncode:
        raise ResultsError(f"{place}: its signature is not by {identity}: {_last_line(done)}")
    return f"signed by {identity}"


def _require_program(name: str) -> None:
    if shutil.which(name) is None:
        raise BackendUnavailable(f"{name} is not installed; a claim can be made and replayed without a signature")


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    _require_program(command[0])
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, stdin=None)
    except subprocess.TimeoutExpired:
        raise ResultsError(f"{command[0]} has not ended in {_SECONDS} s") from None


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode}"
