"""Checks of a claim before anything of it runs: its bytes, its hashes, and what it states against its own records."""

from collections.abc import Iterator
from dataclasses import fields
from math import isclose
from typing import Any

import msgspec

from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extensions.claims.code_checks import check_code
from prism_bench.extensions.claims.derived import (
    HIDDEN,
    INPUT_HASHES,
    OWN,
    ClaimContest,
    Derived,
    baseline_name,
    derived,
    limits_of,
    missing_of,
    timed,
)
from prism_bench.extensions.claims.document import Claim, ClaimSide, decoded, sha256
from prism_bench.extensions.claims.packing import MOST_FILES, packed, require_path, unpacked
from prism_bench.measure.plausibility import LaunchWork, is_fp32
from prism_bench.measure.plausibility import judge as plausible
from prism_bench.record.run_record import CaseResult, RunRecord, decode
from prism_bench.units import count_text, time_text

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
        check_code(claim, records)
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
