"""Making of a claim: from one record, two records, two builds, or a kernel and its peers that are measured now."""

import base64
import re
import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import msgspec
import numpy as np

from prism_bench.analysis import peers
from prism_bench.backends import open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.compilation import sass_hash
from prism_bench.compilation.languages import BuiltCode, build, build_request
from prism_bench.compilation.languages.building import source_identity
from prism_bench.compilation.program import cuda_files
from prism_bench.compilation.sources import python_files
from prism_bench.errors import PrismBenchError, ResultsError, UsageError, unknown
from prism_bench.extension import header_folders
from prism_bench.extensions.claims.document import (
    FORMAT,
    HIDDEN,
    INPUT_HASHES,
    OWN,
    PEER,
    SCHEMA,
    Claim,
    ClaimContest,
    ClaimedCode,
    ClaimedLaunch,
    ClaimInputs,
    ClaimSide,
    PackedFile,
    baseline_name,
    derived,
    missing_of,
    sealed,
    sha256,
    timed,
    trimmed,
)
from prism_bench.io.files import default_folder
from prism_bench.record import store
from prism_bench.record.formats import read_foreign
from prism_bench.record.run_record import CaseResult, RunRecord, decode, encode
from prism_bench.run import Progress, Settings, Watching, run
from prism_bench.run.builds import WORKING_TREE, Build, Choice, Sides, interleaved, opened, pair_settings
from prism_bench.run.settings import ceiling_cases
from prism_bench.spec.case import Case, Device
from prism_bench.spec.launch import SHARED_KB, Launch, LaunchCard, Zero
from prism_bench.spec.workload import LABELS
from prism_bench.units import count_text
from prism_bench.workflows.file_kinds import other_kind

# Files of a case, by path below a catalogue's folder

_TEXT, _ZLIB = "text", "zlib+base64"
_LARGEST_FILE = 16 << 20  # bytes, unpacked: a cubin holds its PTX as text, and shrinks to a fifth
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*/){1,6}[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MOST_FILES = 500


def files_of(case: Case, folder: Path) -> dict[str, bytes]:
    """Return spec, sources, headers and shared Python of a case by path below the catalogue `folder`, the spec first.

    A UsageError for a case with a file outside its catalogue, which no claim can hold.
    """
    spec = case.spec
    sources = [spec.source_path] if spec.source_path else []
    if spec.file:  # a form in another language also needs the source next to its spec
        neighbours = spec.file.with_suffix(".cu"), spec.file.parent / "generated" / f"{spec.file.stem}.cu"
        sources += [path for path in neighbours if path.is_file()]
    python = [spec.file, *(path for path in sources if path.suffix == ".py")]
    reached = [file for path in python if path for file in python_files(path)]
    reached += [file for path in sources if path.suffix != ".py" for file in cuda_files(path)]
    reached += [spec.source_file.parent / card.cubin for card in spec.cards if card.cubin]
    return {_path_below(path, folder, case): path.read_bytes() for path in dict.fromkeys(reached)}


def _path_below(path: Path, folder: Path, case: Case) -> str:
    for root in (folder.resolve(), default_folder().resolve()):
        if path.resolve().is_relative_to(root):
            return path.resolve().relative_to(root).as_posix()
    for root in header_folders():  # a claim replays where the extension may be missing
        if path.is_relative_to(root):
            return f"include/{path.relative_to(root).as_posix()}"
    raise UsageError(f"{case.name}: {path} is not below its catalogue {folder}; a claim holds files of a catalogue")


def packed(content: bytes) -> PackedFile:
    """Return UTF-8 content as text, other content compressed by zlib and in base64."""
    try:
        return PackedFile(_TEXT, content.decode())
    except UnicodeDecodeError:
        return PackedFile(_ZLIB, base64.b64encode(zlib.compress(content, 9)).decode())


def unpacked(file: PackedFile, place: str) -> bytes:
    """Return the content of a packed file; raise a ResultsError if it is damaged or too large."""
    if file.encoding == _TEXT:
        return file.content.encode("utf-8", "surrogatepass")
    if file.encoding != _ZLIB:
        raise ResultsError(f"{place}: encoding is {file.encoding!r:.40}, not {_TEXT} or {_ZLIB}")
    try:
        inflated = zlib.decompressobj()
        content = inflated.decompress(base64.b64decode(file.content, validate=True), _LARGEST_FILE)
    except (ValueError, zlib.error) as error:
        raise ResultsError(f"{place}: not {_ZLIB} ({error})") from None
    if not inflated.eof or inflated.unused_data:
        raise ResultsError(f"{place}: not one stream of at most {_LARGEST_FILE:,} bytes")
    return content


def require_path(path: str, place: str) -> None:
    """Raise a ResultsError unless the path is plain and below a folder."""
    if not _PATH.fullmatch(path) or ".." in PurePosixPath(path).parts:
        raise ResultsError(f"{place}: {path!r:.80} is no path below a catalogue")


def contents_of(side: ClaimSide, files: Mapping[str, PackedFile]) -> dict[str, bytes]:
    """Return the content of each file of a side by its path, for a claim that was checked before."""
    return {path: unpacked(files[key], path) for path, key in side.files.items()}


def catalogue_at(folder: Path, contents: Mapping[str, bytes]) -> Catalogue:
    """Write the files into a folder and return the folder as a catalogue."""
    for path, content in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return discover(folder)


def case_in(catalogue: Catalogue, side: ClaimSide) -> Case:
    """Return the case of a side in the catalogue of its files; raise a ResultsError with the reason if it is absent."""
    try:
        return catalogue.anywhere(side.case).configured(side.choice)
    except PrismBenchError as error:
        problems = "; ".join(problem.message for problem in catalogue.problems)
        raise ResultsError(f"{side.case}: its files do not make this case: {problems or error}") from None


def hashes(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each content."""
    return {path: sha256(content) for path, content in contents.items()}


# A claim from records and code: files, launches, machine code and inputs of both sides

_LARGEST_INPUTS = 64 << 20  # bytes; spec and seed define larger inputs, without hashes
_COMPILED_ON = ("cuda", "null")  # backends whose code comes from the compiler; `null` plays the device


@dataclass(frozen=True)
class SideSource:
    """Code of a side: its case in a catalogue's `folder`, and its origin `where` for the sentence."""

    case: Case
    folder: Path
    where: str = ""


@dataclass(frozen=True)
class NoSource:
    """Side without known code, and the origin `where` of its results for the sentence."""

    where: str = ""


def claim_of(contest: ClaimContest, sources: Sequence[SideSource | NoSource], origin: str = OWN) -> Claim:
    """Return the claim about the kernel and the baseline of a contest, with their `sources` in this order.

    A ResultsError if the records cannot carry a claim, or measured other code.
    """
    contents = _ClaimContents()
    names = [side[1] for side in (contest.kernel, contest.baseline)]
    records = tuple(encode(trimmed(record, names, contest.metric)) for record in contest.records)
    # Encoded records keep four digits of a sample. The figures follow from these, not from the full samples.
    rounded = tuple(decode(plain, f"records[{number}]") for number, plain in enumerate(records))
    contest = replace(contest, records=rounded)
    kernel, baseline = (
        contents.add_side(contest, side, source)
        for side, source in zip((contest.kernel, contest.baseline), sources, strict=True)
    )
    figures = derived(contest, baseline.name)
    inputs = ClaimInputs(figures.seeds)
    if isinstance(sources[0], SideSource):
        inputs = ClaimInputs(figures.seeds, HIDDEN, contents.input_hashes(sources[0].case))
    contents.missing += missing_of(contest, figures.ceilings)
    if any(isinstance(source, NoSource) for source in sources):
        contents.missing += ["machine code, launches, the reference and inputs", "the protocol of the measurement"]
    return sealed(
        Claim(
            format=FORMAT,
            schema=SCHEMA,
            digest="",
            origin=origin,
            sentence=figures.sentence,
            metric=contest.metric,
            backend=figures.backend,
            device=figures.device,
            ratio=figures.ratio,
            kernel=kernel,
            baseline=baseline,
            peers=figures.peers,
            inputs=inputs,
            protocol=figures.protocol,
            ceilings=figures.ceilings,
            software=figures.software,
            missing=tuple(dict.fromkeys(contents.missing)),
            records=records,
            files=contents.files,
        )
    )


@dataclass
class _ClaimContents:
    """Packed files by hash, and missing parts, of a claim in the making."""

    files: dict[str, PackedFile] = field(default_factory=dict[str, PackedFile])
    missing: list[str] = field(default_factory=list[str])

    def add_side(self, contest: ClaimContest, side: tuple[int, str, str], source: SideSource | NoSource) -> ClaimSide:
        number, name, subject = side
        result, record = contest.case(side), contest.records[number]
        title = baseline_name(result, subject) + (f" at {source.where}" if source.where else "")
        without_code = timed(ClaimSide(title, number, name, subject, 0.0, None, None), contest.medians(side))
        if isinstance(source, NoSource):
            self.missing.append(f"the sources of {title}")
            return without_code
        contents = files_of(source.case, source.folder)
        with_files = msgspec.structs.replace(
            without_code, spec=next(iter(contents)), files=hashes(contents), choice=dict(source.case.choice)
        )
        for content in contents.values():
            self._keep(content)
        if subject.startswith(PEER):
            return with_files
        device = device_in(record)
        code = self._code(source.case, device, record)
        _require_same_code(source, result, record, code)
        if len(code) == 1 and record.backend == "cuda" and code[0].sass != result.code.get("sass", code[0].sass):
            self.missing.append(f"the machine code of {title}: {code[0].compiler} here makes other than what was timed")
            del self.files[code[0].cubin]
            code = ()
        return msgspec.structs.replace(with_files, launches=launches_of(source.case, device), code=code)

    def _keep(self, content: bytes) -> str:
        key = sha256(content)
        self.files[key] = packed(content)
        return key

    def _code(self, case: Case, device: Device, record: RunRecord) -> tuple[ClaimedCode, ...]:
        why = f"none runs on the backend {record.backend}"
        if record.backend in _COMPILED_ON:
            try:
                if built := built_for(case, device):
                    return tuple(self._code_of_cubins(built, str(device.compute_capability)))
                why = "it is made where it is called"
            except PrismBenchError as error:
                why = str(error)
        self.missing.append(f"the machine code of {case.name}: {why}")
        return ()

    def _code_of_cubins(self, built: BuiltCode, architecture: str) -> Iterator[ClaimedCode]:
        for path in dict.fromkeys(kernel.path for kernel in built.kernels.values()):
            cubin = path.read_bytes()
            entries: dict[str, dict[str, Any]] = {
                str(instance): {
                    "symbol": kernel.symbol,
                    "registers": kernel.resources.registers,
                    "spilled": kernel.resources.spill_stores + kernel.resources.spill_loads,
                    "shared": kernel.resources.shared_bytes,
                    **({"card": _plain_card(kernel.card)} if kernel.card else {}),
                }
                for instance, kernel in built.kernels.items()
                if kernel.path == path
            }
            yield ClaimedCode(architecture, built.compiler, sass_hash(cubin), self._keep(cubin), entries)

    def input_hashes(self, case: Case) -> dict[str, str]:
        hashed = hashes_of_inputs(case)
        if not hashed:
            why = "they are too large, and known by spec and seed" if _inputs(case) else "it reads none"
            self.missing.append(f"{INPUT_HASHES}: {why}")
        return hashed


def _plain_card(card: LaunchCard) -> dict[str, Any]:
    """Return a launch card as plain values, without the path of its cubin."""
    return {key: msgspec.to_builtins(value) for key, value in vars(card).items() if key != "cubin"}


def device_in(record: RunRecord) -> Device:
    """Return the limits of launches on the device of a record; default limits if the record has no facts."""
    facts = record.machine
    capability = facts.get("compute_capability")
    if not isinstance(capability, int) or capability not in SHARED_KB:
        return Device()
    return Device(int(facts.get("sm_count", 4)), SHARED_KB[capability] << 10, capability)


def launches_of(case: Case, device: Device) -> tuple[ClaimedLaunch, ...]:
    """Return the launches and zero fills of a case on a device."""
    return tuple(_launch(step) for step in case.plan.steps(device)) if case.spec.source else ()


def _launch(step: Launch | Zero) -> ClaimedLaunch:
    if isinstance(step, Zero):
        return ClaimedLaunch(zero=step.name)
    grid, block = (
        tuple(int(extent) for extent in (extents if isinstance(extents, tuple) else (extents,)))
        for extents in (step.grid, step.block)
    )
    return ClaimedLaunch(
        step.entry or "", grid, block, int(step.shared), step.arguments or (), step.cooperative, dict(step.constants)
    )


def built_for(case: Case, device: Device) -> BuiltCode | None:
    """Return the machine code of a case for a device; None if it launches nothing."""
    request = build_request(case, device) if case.spec.source and case.spec.callable is None else None
    return build(request) if request else None


def _require_same_code(source: SideSource, result: CaseResult, record: RunRecord, code: Sequence[ClaimedCode]) -> None:
    """Raise a ResultsError unless the record measured these files, by its hashes or by its commit."""
    if record.backend != "cuda":
        return
    request = build_request(source.case, device_in(record)) if source.case.spec.source else None
    known = result.code.get("source")
    if known and request and known == source_identity(request):
        return
    if any(cubin.sass == result.code.get("sass") for cubin in code) or _is_unchanged(source, record):
        return
    raise ResultsError(
        f"{result.name}: the files of {source.folder} are not what this record measured; check out commit "
        f"{(record.commit or 'unknown')[:12]}, or measure both sides now"
    )


def _is_unchanged(source: SideSource, record: RunRecord) -> bool:
    """Return whether the record's commit has these files, and was measured without local changes."""
    if not record.commit or record.dirty:
        return False
    paths = [name for name in files_of(source.case, source.folder) if (source.folder / name).is_file()]
    command = ["git", "-C", str(source.folder), "diff", "--quiet", record.commit, "--", *paths]
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _inputs(case: Case) -> list[str]:
    return [array.name for array in case.spec.arrays if array.reads]


def hashes_of_inputs(case: Case) -> dict[str, str]:
    """Return by name the SHA-256 of each input of seed 0 with its type and shape; empty if they are too large."""
    if sum(map(case.sizes.nbytes, _inputs(case))) > _LARGEST_INPUTS:
        return {}
    arrays = {name: np.ascontiguousarray(array.on(np)) for name, array in case.inputs(0).items()}
    return {
        name: sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()) for name, array in sorted(arrays.items())
    }


# Measurement of both sides in turn: two builds, or a kernel and its peers in one run

PROCESSES = 5  # of each side: Student's t of 8 degrees of freedom


@dataclass(frozen=True)
class ClaimMeasurement:
    """Measurement of both sides on a backend: fresh processes of each, seeds of verification, progress.

    `ceilings` are results of ceiling benchmarks that were measured on this machine just before.
    """

    backend: str
    processes: int = PROCESSES
    seeds: tuple[int, ...] = (0, 1)
    report: Callable[[Progress], object] = lambda event: None
    ceilings: tuple[CaseResult, ...] = ()

    @property
    def settings(self) -> Settings:
        """The settings of a run with peers."""
        return Settings(
            processes=self.processes,
            peer_processes=self.processes,
            peer_repeated_within=None,
            seeds=self.seeds,
            cpu_baseline=False,
            watching=Watching(energy=False),
        )

    def builds(self, builds: tuple[Build, Build]) -> tuple[RunRecord, RunRecord]:
        """Return the records of two builds, whose processes took turns."""
        return interleaved(builds, self.backend, pair_settings(self.settings), self.report)

    def peers(self, catalogue: Catalogue, cases: list[Case]) -> RunRecord:
        """Return the record of cases and all of their peers; on a device it has the ceilings of the machine."""
        return run(catalogue, self.backend, cases, self.settings, self.report)

    def with_ceilings(self, record: RunRecord) -> RunRecord:
        """Return the record with the ceilings of the machine; measure them if neither it nor `ceilings` has them."""
        if any(case.ceiling and case.ceiling != "launch" for case in record.cases):
            return record
        ceilings = self.ceilings
        if not ceilings and self.backend == "cuda":
            bundled = discover()
            settings = replace(self.settings, processes=1, peers=False)
            measured = run(bundled, self.backend, ceiling_cases(bundled), settings, self.report)
            ceilings = tuple(case for case in measured.cases if case.ceiling)
        known = {case.name for case in record.cases}
        return replace(record, cases=(*record.cases, *(case for case in ceilings if case.name not in known)))


# A claim from records, builds or kernels
#
# Code comes from the catalogue. `case` is a name, a workload or a label. `against` names the baseline if a record has
# several; the default is the fastest peer.

_Case = TypeVar("_Case")


def of_record(
    path: Path, catalogue: Catalogue, *, case: str | None = None, against: str | None = None, metric: str | None = None
) -> Claim:
    """Return the claim about a case of one record, against a peer or another form of the same record."""
    try:
        record = _record(path)
    except ResultsError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise ResultsError(f"{path}: neither a claim nor a readable run record: {reason}") from error
    return of_result(record, _chosen(record.cases, case), catalogue, against=against, metric=metric)


def of_result(
    record: RunRecord, case: CaseResult, catalogue: Catalogue, *, against: str | None = None, metric: str | None = None
) -> Claim:
    """Return the claim about that case of a record, against a peer or another form of the same record."""
    metric = metric or case.main_metric
    kernel = 0, case.name, "kernel"
    forms = [
        other
        for other in record.cases
        if other.workload == case.workload and other.name != case.name and other.measurements
    ]
    names = [baseline_name(form, "kernel") for form in forms]
    if against in names:
        rival = forms[names.index(against)]
        contest = ClaimContest(metric, (record,), kernel, (0, rival.name, "kernel"))
        return _claim(contest, catalogue, (case, rival), ("", ""))
    contest = ClaimContest(metric, (record,), kernel, (0, case.name, f"{PEER}{_peer(case, against, names)}"))
    return claim_of(contest, [_source(case, catalogue)] * 2)


def of_records(
    baseline: Path,
    kernel: Path,
    catalogue: Catalogue,
    *,
    case: str | None = None,
    against: str | None = None,
    metric: str | None = None,
) -> Claim:
    """Return the claim that the second record's case is faster than the first record's, as `compare` pairs them."""
    records = _record(baseline), _record(kernel)
    chosen = _chosen(records[1].cases, case)
    rivals = [rival for rival in records[0].cases if rival.workload == chosen.workload and rival.measurements]
    named = [rival for rival in rivals if against in (rival.kernel, baseline_name(rival, "kernel"))]
    rivals = named or [rival for rival in rivals if rival.name == chosen.name] or rivals
    if len(rivals) != 1:
        raise UsageError(
            f"{baseline}: {count_text(len(rivals), 'case')} at the workload of {chosen.name}; it takes one"
        )
    (rival,) = rivals
    contest = ClaimContest(metric or chosen.main_metric, records, (1, chosen.name, "kernel"), (0, rival.name, "kernel"))
    names_differ = baseline_name(chosen, "kernel") != baseline_name(rival, "kernel")
    origins = ("", "") if names_differ else _origins((kernel, baseline), records)
    return _claim(contest, catalogue, (chosen, rival), origins)


def _origins(paths: tuple[Path, Path], records: tuple[RunRecord, RunRecord]) -> tuple[str, str]:
    """Return the origins of the kernel's and the baseline's record: their commits, else their files."""
    baseline, kernel = (str(record.commit or "")[:8] for record in records)
    if kernel and baseline and kernel != baseline:
        return kernel, baseline
    kernel, baseline = (Path(*path.parts[-2:]).as_posix() for path in paths)
    return kernel, baseline


def _record(path: Path) -> RunRecord:
    """Return a run record, or another tool's results as a record; raise a ResultsError for any other file."""
    try:
        return store.read(path)
    except ResultsError:
        if path.suffix not in (".json", ".csv"):
            raise
    try:
        records = read_foreign(path).records
    except ResultsError as error:
        raise other_kind(path, "claim", error) from None
    if len(records) != 1:
        raise UsageError(f"{path}: results of {count_text(len(records), 'device')}; a claim is about one")
    return records[0]


def _claim(
    contest: ClaimContest, catalogue: Catalogue, cases: tuple[CaseResult, CaseResult], origins: tuple[str, str]
) -> Claim:
    """Return the claim with the code of both cases, or without code if another tool measured them."""
    if any(record.imported for record in contest.records):
        unknown_code = [NoSource(origin) for origin in origins]
        return claim_of(replace(contest, foreign=True), unknown_code, contest.records[0].backend)
    sources = [_source(case, catalogue) for case in cases]
    return claim_of(contest, [replace(source, where=origin) for source, origin in zip(sources, origins, strict=True)])


def of_kernel(
    name: str,
    catalogue: Catalogue,
    measurement: ClaimMeasurement,
    *,
    case: str | None = None,
    against: str | None = None,
    metric: str | None = None,
) -> Claim:
    """Return the claim about a kernel, or `kernel:variant`, and its peers, measured now."""
    kernel, colon, variant = name.partition(":")
    kernel = catalogue.kernel(kernel).name + colon + variant
    chosen = _named([case for case in catalogue.cases([kernel], LABELS) if case.kernel == kernel], case)
    if not open_backend(measurement.backend).peers(chosen):
        raise UsageError(f"{chosen.name}: {measurement.backend} times no peer of it; name two kernels or two records")
    record = measurement.peers(catalogue, [chosen])
    return of_result(record, _chosen(record.cases, chosen.name), catalogue, against=against, metric=metric)


def of_builds(
    operands: tuple[str, str],
    catalogue: Catalogue,
    measurement: ClaimMeasurement,
    *,
    case: str | None = None,
    metric: str | None = None,
) -> Claim:
    """Return the claim that the second of two builds, or of two forms of a kernel, is faster; measured now."""
    with opened(operands, Choice(catalogue, labels=LABELS)) as sides:
        cases = sides.builds[1].cases
        kernel = _named(cases, case)
        baseline = sides.builds[0].cases[cases.index(kernel)]
        if operands[0] == operands[1] or (sides.across == "variants" and baseline.name == kernel.name):
            raise UsageError(f"both sides are {kernel.name}; name two forms of a kernel, two commits or two folders")
        builds = (replace(sides.builds[0], cases=(baseline,)), replace(sides.builds[1], cases=(kernel,)))
        first, second = measurement.builds(builds)
        records = first, measurement.with_ceilings(second)
        metric = metric or _chosen(second.cases, kernel.name).main_metric
        contest = ClaimContest(metric, records, (1, kernel.name, "kernel"), (0, baseline.name, "kernel"))
        a, b = _build_origins(sides, operands, records)
        return claim_of(
            contest,
            [SideSource(kernel, builds[1].catalogue.folder, b), SideSource(baseline, builds[0].catalogue.folder, a)],
        )


def _build_origins(sides: Sides, operands: tuple[str, str], records: tuple[RunRecord, RunRecord]) -> tuple[str, str]:
    """Return the commits or folders of two builds; empty for forms of a kernel, which have different names."""
    if sides.across != "builds":
        return "", ""
    # A reader has neither these folders nor this HEAD.
    commits = [str(record.commit or operand)[:8] for record, operand in zip(records, operands, strict=True)]
    paths = [Path(operand).resolve() for operand in operands]
    a, b = (
        path.name if path.is_dir() else operand if operand == WORKING_TREE else commit
        for path, operand, commit in zip(paths, operands, commits, strict=True)
    )
    if a == b:
        a, b = ("/".join(path.parts[-2:]) if path.is_dir() else name for path, name in zip(paths, (a, b), strict=True))
    return a, b


def _peer(case: CaseResult, against: str | None, forms: Sequence[str]) -> str:
    """Return the peer that is the baseline: `against`, else the fastest; errors also name the other `forms`."""
    timed = [peer.name for peer in peers.rivals_counted(peers.peers(case))]
    if against is None and timed:
        return timed[0]
    if against not in timed:
        if not timed and not forms:
            raise UsageError(f"{case.name}: no peer has a time; name two kernels or two records")
        if against is None:
            raise UsageError(f"{case.name}: no peer has a time; --against names the baseline: {', '.join(forms)}")
        raise unknown("peer with a time, or other form of the kernel,", against, [*timed, *forms])
    return against


def _source(result: CaseResult, catalogue: Catalogue) -> SideSource:
    """Return the code of a record's case in the catalogue, with its tuned values."""
    try:
        case = catalogue.anywhere(result.name)
        other = {name: value for name, value in result.configuration.items() if case.configuration.get(name) != value}
        return SideSource(case.configured(other), catalogue.folder)
    except PrismBenchError as error:
        raise UsageError(f"{result.name}: the catalogue {catalogue.folder} does not have it ({error})") from None


def _chosen(results: Sequence[CaseResult], wanted: str | None) -> CaseResult:
    for case in results:
        if case.name == wanted and not case.measurements:
            raise ResultsError(f"{case.name}: {case.status}: {case.reason or 'the record gives no reason'}")
    cases = [case for case in results if case.measurements and not case.ceiling]
    chosen = [case for case in cases if wanted in (None, case.name, case.workload_text, case.label)]
    return _only(chosen, [case.name for case in cases], wanted)


def _named(cases: Sequence[Case], wanted: str | None) -> Case:
    chosen = [case for case in cases if wanted in (None, case.name, str(case.workload), case.label)]
    return _only(chosen, [case.name for case in cases], wanted)


def _only(chosen: Sequence[_Case], names: Sequence[str], wanted: str | None) -> _Case:
    if len(chosen) == 1:
        return chosen[0]
    if not chosen and wanted is not None:
        raise unknown("case", wanted, names)
    listed = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    raise UsageError(f"{count_text(len(chosen), 'case')} chosen and a claim is about one; name it: {listed}")
