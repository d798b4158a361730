"""Which kernels' machine code changed since a commit, a run record or a stored table: no GPU needed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prism_bench.analysis.build_identity import BuildIdentity, build_change
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.code import Resources
from prism_bench.compilation.code_difference import EntryDifference, EntryFacts
from prism_bench.compilation.disassembly import code_differences
from prism_bench.compilation.languages import BuildRequest, BuiltCode, build_request
from prism_bench.compilation.languages.code_facts import source_identity
from prism_bench.errors import UsageError
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.case import Device
from prism_bench.workflows.case_code import CaseCode, CodeJob, Outcome, compiled_jobs, job_of, machine_code
from prism_bench.workflows.compile_table import CompileRow, Complaint, device_of, kernel_of, launched, missing_compiler


@dataclass(frozen=True)
class CodeChange:
    """One kernel whose machine code changed on an architecture, with its entries that differ.

    `note` is why instructions are not listed, or in what else the code differs.
    """

    kernel: str
    architecture: str
    entries: tuple[EntryDifference, ...]
    note: str | None = None

    @property
    def spills_grew(self) -> bool:
        """Whether an entry spills more than before."""
        return any(one.spills_grew for one in self.entries)


_RowKey = tuple[str, str, str]
_Rows = Mapping[_RowKey, CompileRow]
Changes = tuple[list[CodeChange], list[Complaint]]
_Key = tuple[str, str, tuple[str, ...]]  # kernel, architecture, compiler options


def since_catalogue(old: Catalogue, new: Catalogue, filters: Sequence[str], architectures: Sequence[str]) -> Changes:
    """Return what changed between two catalogues, and what of the new one does not compile.

    Only sources whose text, headers or entries differ are compiled.
    """
    before, after = (_jobs(one, filters, architectures) for one in (old, new))
    differing = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    built = compiled_jobs(job for key in differing for side in (before, after) if (job := side.get(key)))
    pairs = {key: tuple(built[side[key]] if key in side else None for side in (before, after)) for key in differing}
    complaints = [Complaint(key[0], now) for key, (_, now) in pairs.items() if isinstance(now, str)]
    changes = [_change(key, was, now) for key, (was, now) in pairs.items() if not isinstance(now, str)]
    return [one for one in changes if one], complaints


def _jobs(catalogue: Catalogue, filters: Sequence[str], architectures: Sequence[str]) -> dict[_Key, CodeJob]:
    chosen = [word for word in filters if word.partition(":")[0].partition("[")[0] in _known(catalogue)]
    if filters and not chosen:
        return {}
    requests = (one for architecture in architectures for one in launched(catalogue, chosen, architecture))
    return {_key(one): job_of(one) for one in requests if not missing_compiler(one.language)}


def _known(catalogue: Catalogue) -> set[str]:
    return {*catalogue.kernels, *catalogue.aliases, *catalogue.families}


def _key(request: BuildRequest) -> _Key:
    return kernel_of(request), request.architecture, request.options


def _change(key: _Key, before: Outcome, after: Outcome) -> CodeChange | None:
    """Return the change of one source; None where its machine code is the same."""
    was, now = (one if isinstance(one, BuiltCode) else None for one in (before, after))
    if (was and now and machine_code(was) == machine_code(now)) or not (was or now):
        return None
    entries, note = code_differences(*(CaseCode("", compiled=one).entries for one in (was, now)))
    return CodeChange(key[0], key[1], entries, note)


def since_record(record: RunRecord, catalogue: Catalogue, filters: Sequence[str]) -> Changes:
    """Return the cases whose machine code is not that of the record, on the record's own architecture."""
    known = {case.name: case for case in record.cases if case.code.get("sass") and case.code.get("architecture")}
    if not known:
        raise UsageError("the record knows no machine code: one of a GPU does")
    jobs: dict[str, CodeJob] = {}
    for case in catalogue.cases(filters):
        device = _device(known.get(case.name))
        request = build_request(case, device) if device and not case.plan.refusal(device) else None
        if request and not missing_compiler(request.language):
            jobs[case.name] = job_of(request)
    built = compiled_jobs(jobs.values())
    outcomes = {name: built[job] for name, job in jobs.items()}
    complaints = [Complaint(name, one) for name, one in outcomes.items() if isinstance(one, str)]
    sources = {name: source_identity(job.request) for name, job in jobs.items()}
    return list(_recorded(known, outcomes, sources)), complaints


def _device(case: CaseResult | None) -> Device | None:
    return device_of(str(case.code["architecture"]).removeprefix("sm_")) if case else None


def _recorded(
    known: Mapping[str, CaseResult], outcomes: Mapping[str, Outcome], sources: Mapping[str, str | None]
) -> Iterator[CodeChange]:
    for name, built in outcomes.items():
        code = known[name].code
        if isinstance(built, BuiltCode) and built.sass != code["sass"]:
            one = EntryDifference(name, _recorded_facts(code), _largest(built), {}, None)
            change = build_change(BuildIdentity.of(code), BuildIdentity(built.language, built.compiler, sources[name]))
            note = "a record has the resources of a case, and no instructions" + (f"; {change.words}" if change else "")
            yield CodeChange(name, str(code["architecture"]).removeprefix("sm_"), (one,), note)


def _recorded_facts(code: Mapping[str, object]) -> EntryFacts:
    numbers = [int(str(code.get(name) or 0)) for name in ("registers", "spill_bytes", "shared_bytes")]
    return EntryFacts(Resources(registers=numbers[0], spill_stores=numbers[1], shared_bytes=numbers[2]))


def _largest(built: BuiltCode) -> EntryFacts:
    """Return the resources of all entries of a case as a record has them: the most registers, all spills."""
    used = list(built.resources.values())
    spilled = sum(one.spill_stores + one.spill_loads for one in used)
    shared = max((one.shared_bytes for one in used), default=0)
    return EntryFacts(Resources(max((one.registers for one in used), default=0), 0, spilled, 0, shared))


def since_table(stored: Iterable[CompileRow], rows: Iterable[CompileRow]) -> list[CodeChange]:
    """Return the entries whose resources are not those of a stored table; it has no instructions to compare."""
    before, after = ({row.key: row for row in side} for side in (stored, rows))
    fresh = {(row.kernel, row.architecture) for row in after.values()}
    keys = [*after, *(key for key in before if key not in after and (key[0], key[2]) in fresh)]
    note = "a table has resources, and no instructions: other code of the same resources is not seen"
    return [
        CodeChange(kernel, architecture, (EntryDifference(entry, *_of_rows(before, after, key), {}, None),), note)
        for key in keys if before.get(key) != after.get(key)
        for kernel, entry, architecture in [key]
    ]  # fmt: skip


def _of_rows(before: _Rows, after: _Rows, key: _RowKey) -> tuple[EntryFacts | None, EntryFacts | None]:
    return _of_row(before, key), _of_row(after, key)


def _of_row(rows: _Rows, key: _RowKey) -> EntryFacts | None:
    row = rows.get(key)
    if row is None:
        return None
    return EntryFacts(Resources(row.registers, row.stack_bytes, row.spill_bytes, 0, row.shared_bytes, row.barriers))
