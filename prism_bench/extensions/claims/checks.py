"""Checks of a claim before anything of it runs: its bytes, its hashes, and what it states against its own records."""

from collections.abc import Iterator
from dataclasses import fields
from math import isclose
from typing import Any

import msgspec

from prism_bench.compilation.code import sass_hash
from prism_bench.compilation.fatbin import cubin_architecture
from prism_bench.compilation.prebuilt import cubin_resources
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extensions.claims.derived import (
    HIDDEN,
    OWN,
    ClaimContest,
    Derived,
    baseline_name,
    derived,
    missing_of,
    timed,
)
from prism_bench.extensions.claims.document import Claim, ClaimedCode, ClaimSide, decoded, sha256
from prism_bench.extensions.claims.packing import MOST_FILES, require_path, unpacked
from prism_bench.run_record import RunRecord, decode
from prism_bench.units import count_text

_CLOSE = 1e-5  # relative: six digits are kept


def checked(content: bytes, origin: str) -> tuple[Claim, tuple[RunRecord, ...]]:
    """Return the claim in a file's bytes with its records; a ResultsError names the first thing that is wrong."""
    claim = decoded(content, origin)
    try:
        records = tuple(decode(plain, f"records[{number}]") for number, plain in enumerate(claim.records))
        _check_files(claim)
        _check_figures(claim, records)
        _check_code(claim, records)
    except PrismBenchError as error:
        raise ResultsError(f"{origin}: {error}") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # records of right types may be nonsense
        raise ResultsError(f"{origin}: what it states does not follow from its records ({error})") from None
    return claim, records


def contest_of(claim: Claim, records: tuple[RunRecord, ...]) -> ClaimContest:
    """Return the two sides of a claim in its records."""
    kernel, baseline = ((side.record, side.case, side.subject) for side in claim.sides)
    return ClaimContest(claim.metric, records, kernel, baseline, foreign=claim.origin != OWN)


def _check_files(claim: Claim) -> None:
    if len(claim.files) > MOST_FILES:
        raise ResultsError(f"{count_text(len(claim.files), 'file')}; a claim has at most {MOST_FILES}")
    for key, file in claim.files.items():
        if sha256(unpacked(file, f"files: {key[:16]}")) != key:
            raise ResultsError(f"files: {key[:16]}: its content has another hash")
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


def _check_figures(claim: Claim, records: tuple[RunRecord, ...]) -> None:
    """Hold everything that the claim states to what its records give."""
    contest = contest_of(claim, records)
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
    if silent:
        raise ResultsError(f"missing: it does not say that it lacks {silent[0]}")
    if claim.origin != OWN and (claim.files or any(side.files or side.code for side in claim.sides)):
        raise ResultsError(f"origin: results of {claim.origin!r:.40} come without code")
    if claim.inputs.hidden != (HIDDEN if claim.kernel.files else ""):
        raise ResultsError("inputs.hidden: not the rule for inputs that a replay draws")


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
        ran = records[side.record].case(side.case)
        recorded = ran.code.get("sass") if ran and claim.backend == "cuda" else None
        if len(side.code) == 1 and recorded and recorded != side.code[0].sass:
            raise ResultsError(f"{side.name}: its cubin is not what was timed: {side.code[0].sass}, not {recorded}")


def _check_entries(name: str, code: ClaimedCode, cubin: bytes) -> None:
    """Hold what a claim states of its entries to the cubin: symbols, registers, shared memory, and spills."""
    if code.architecture != str(cubin_architecture(cubin)):
        raise ResultsError(f"{name}: its cubin is for sm_{cubin_architecture(cubin)}, not sm_{code.architecture:.20}")
    found = cubin_resources(cubin)
    for text, stated in code.entries.items():
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
