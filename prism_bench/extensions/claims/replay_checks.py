"""What a replay looks at before it measures: whose files they are, launches, inputs, machine code, and outputs."""

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import hypot

from prism_bench.backends import Backend
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.code import toolchain
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, ResultsError
from prism_bench.extensions.claims.derived import BOARD_SECONDS, ClaimContest, baseline_name
from prism_bench.extensions.claims.document import PEER, Claim, ClaimSide
from prism_bench.extensions.claims.making import device_in, hashes_of_inputs, launches_of
from prism_bench.extensions.claims.packing import contents_of, files_of, hashes, unpacked
from prism_bench.extensions.claims.recompiling import RecompiledCode, compiled_here, compiled_in_jail
from prism_bench.extensions.claims.replay_document import ReplayCheck
from prism_bench.io.files import default_folder
from prism_bench.measure.limits import Limits
from prism_bench.measure.plausibility import LaunchWork, is_fp32
from prism_bench.measure.plausibility import judge as plausible
from prism_bench.record.run_record import RunRecord
from prism_bench.run.verification import complaint, passed, verify
from prism_bench.spec.case import Case, Device
from prism_bench.units import time_text

Compiling = Callable[[Case, Device], RecompiledCode | None]
_PLACES = ("kernel", "baseline")
_SYSTEM_HEADER = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*<", re.MULTILINE)
# Everything else may run on the host: Python also imports extension modules and bytecode.
_DEVICE_CODE = (".cu", ".cuh", ".h", ".hpp", ".inl", ".cubin", ".fatbin")


@dataclass(frozen=True)
class ReplaySide:
    """A side of a claim as a case of the catalogue that its own files are."""

    side: ClaimSide
    catalogue: Catalogue
    case: Case

    @property
    def is_peer(self) -> bool:
        """Whether it is a library call, which has no code in the claim."""
        return self.side.subject.startswith(PEER)


@dataclass
class SideChecks:
    """Checks of the two sides of a claim; `found` is what came of them, in order."""

    claim: Claim
    records: tuple[RunRecord, ...]
    found: list[ReplayCheck] = field(default_factory=list[ReplayCheck])

    def strange(self, own: Catalogue, *, on_host: bool = False) -> list[str]:
        """Return the claim's files that neither `own` nor the bundled catalogue has; with `on_host` no device code."""
        roots = dict.fromkeys((own.folder, default_folder()))
        return [
            path
            for side in self.claim.sides
            for path, content in contents_of(side, self.claim.files).items()
            if not any((root / path).is_file() and (root / path).read_bytes() == content for root in roots)
            and not (on_host and path.endswith(_DEVICE_CODE))
        ]

    def require_files(self, sides: Sequence[ReplaySide]) -> None:
        """Raise a ResultsError where a side has other files than its spec reaches, or ran in another configuration."""
        for place, one in zip(_PLACES, sides, strict=True):
            reached, stated = hashes(files_of(one.case, one.catalogue.folder)), one.side.files
            if reached != stated:
                path = next(path for path in {**reached, **stated} if reached.get(path) != stated.get(path))
                lacks = "is reached by its spec and not there" if path in reached else "is not reached by its spec"
                raise ResultsError(f"{place}.files: {path:.80} {lacks}")
            if one.side.spec != (spec := next(iter(reached))):
                raise ResultsError(f"{place}.spec is {one.side.spec!r:.80}; that of its case is {spec!r:.80}")
            ran = self.records[one.side.record].case(one.side.case)
            if ran and ran.configuration != dict(one.case.configuration):
                raise ResultsError(f"{place}.choice: its files are configured otherwise than what was timed")
        self.found.append(ReplayCheck("files", "same", "as the specs reach them"))

    def require_launches(self, sides: Sequence[ReplaySide]) -> None:
        """Raise a ResultsError where the files launch something else than the claim states."""
        for place, one in zip(_PLACES, sides, strict=True):
            device = device_in(self.records[one.side.record])
            if not one.is_peer and launches_of(one.case, device) != one.side.launches:
                raise ResultsError(f"{place}.launches: its files launch something else than it states")
        self.found.append(ReplayCheck("launches", "same"))

    def require_inputs(self, case: Case) -> None:
        """Raise a ResultsError where seed 0 gives other inputs than the claim states."""
        stated = self.claim.inputs.sha256
        if not stated:
            self.found.append(ReplayCheck("inputs", "open", "known by spec and seed alone"))
            return
        found = hashes_of_inputs(case)
        if found != stated:
            name = next(name for name in {**stated, **found} if stated.get(name) != found.get(name))
            raise ResultsError(f"inputs.sha256.{name}: seed 0 gives other values here")
        self.found.append(ReplayCheck("inputs", "same", f"seed 0: {', '.join(stated)}"))

    def compare_code(self, one: ReplaySide, compiled: Compiling = compiled_here) -> None:
        """Compile a side's sources and compare the instructions with those of its cubins.

        A ResultsError where the compiler of a cubin makes other ones of these sources: the cubin is from others.
        """
        what = f"machine code of {one.side.name}"
        if not one.side.code:
            self.found.append(ReplayCheck(what, "open", "the claim has none"))
            return
        first = one.side.code[0]
        try:
            made = compiled(one.case, device_in(self.records[one.side.record]))
        except PrismBenchError as error:
            self.found.append(ReplayCheck(what, "open", str(error)))
            return
        if made is None:
            self.found.append(ReplayCheck(what, "open", "its sources are not compiled here"))
        elif made.hashes != {code.sass for code in one.side.code}:
            self._require_other_compiler(one, made)
            self.found.append(ReplayCheck(what, "other", f"{first.compiler} there, {made.compiler} here"))
        else:
            _require_entries(one, made)
            self.found.append(ReplayCheck(what, "same", f"sm_{first.architecture}, {first.sass}"))

    def _require_other_compiler(self, one: ReplaySide, made: RecompiledCode) -> None:
        """Raise a ResultsError where nothing but the sources can explain other instructions.

        Headers of the toolkit have versions that no cubin names, so sources that include some prove nothing.
        """
        contents = contents_of(one.side, self.claim.files)
        if any(_SYSTEM_HEADER.search(content) for path, content in contents.items() if path.endswith(_DEVICE_CODE)):
            return
        there = {toolchain(unpacked(self.claim.files[code.cubin], "cubin")) for code in one.side.code}
        is_same = {code.compiler for code in one.side.code} == {made.compiler}
        if is_same and there == made.toolchains != {b""}:
            raise ResultsError(
                f"{one.side.name}: {made.compiler} makes other instructions of its sources than it claims"
            )

    def other_peer(self, contest: ClaimContest) -> str | None:
        """Return in words what the baseline is here where it is another version or form of the claim's; None if not."""
        side = self.claim.baseline
        if not side.subject.startswith(PEER):
            return None
        there, here = self.records[side.record].case(side.case), contest.case(contest.baseline)
        name = baseline_name(here, side.subject)
        is_same = there is not None and name == baseline_name(there, side.subject)
        words = f"its baseline is {side.name}; here it is {name}"
        self.found.append(ReplayCheck("baseline", "same" if is_same else "other", name if is_same else words))
        return None if is_same else words

    def impossible_time(self, sides: Sequence[ReplaySide], contest: ClaimContest, limits: Limits) -> str | None:
        """Return why a claimed time cannot be true on this kind of device, by limits measured here; None if it can.

        What a launch moves and computes is that of the files, which a forged record does not change. Boards and hosts
        of one kind differ in their launch overhead, so a time is below it only where they cannot differ by so much.
        """
        floor, between = limits.lowest.get(self.claim.metric, 0.0), 3 * hypot(BOARD_SECONDS, BOARD_SECONDS)
        overhead = f"an empty kernel takes {time_text(floor)} here, and hosts differ by less than {time_text(between)}"
        rates = replace(limits, floors={})
        for one, here in zip(sides, (contest.kernel, contest.baseline), strict=True):
            sizes, result = one.case.sizes, contest.case(here)
            written = sum(sizes.nbytes(array.name) for array in one.case.spec.outputs)
            flops = sizes.flops if not one.is_peer and is_fp32(result) else None
            work = LaunchWork(sizes.bytes_moved, flops, written)
            is_below = one.side.seconds < floor - between
            refusal = overhead if is_below else plausible(self.claim.metric, one.side.seconds, work, rates).refusal
            if refusal:
                words = f"{one.side.name} cannot take {time_text(one.side.seconds)} on this kind of device: {refusal}"
                self.found.append(ReplayCheck("claimed times", "wrong", words))
                return words
        if limits.floors or limits.ceilings or limits.peaks:
            self.found.append(ReplayCheck("claimed times", "right", "possible by the limits that were measured here"))
        return None

    def wrong_outputs(self, backend: Backend, one: ReplaySide) -> str | None:
        """Verify small cases of a side's kernel, on a seed that is drawn now as well; return what is wrong, or None."""
        what, right = f"outputs of {one.side.name}", 0
        for case in _small_cases(one):
            try:
                entries = verify(backend, case, (0, secrets.randbelow(1 << 31) + 2))
            except (BackendUnavailable, CompilationFailed) as error:  # what is not emulated is not wrong
                if str(error) not in [one.words for one in self.found]:
                    self.found.append(ReplayCheck(f"outputs of {case.name}", "open", str(error)))
                continue
            except PrismBenchError as error:
                self.found.append(ReplayCheck(what, "wrong", str(error)))
                return str(error)
            if not passed(entries):
                words = complaint(case, backend.name, entries)
                self.found.append(ReplayCheck(what, "wrong", words))
                return words
            right += 1
        words = f"{right} small cases on the {backend.name}, on a seed that was drawn now as well"
        self.found.append(ReplayCheck(what, "right" if right else "open", words))
        return None

    def wrong_in_jail(self, one: ReplaySide) -> str | None:
        """Compare the machine code and do the same in a jail; where none can be made, that stays open."""
        try:
            from prism_bench.extensions.judge.cell import JailCell
            from prism_bench.extensions.judge.jailed_emulator import JailedEmulator

            with JailCell(one.catalogue.folder, modes=("fast", "race")) as cell:
                self.compare_code(one, lambda case, device: compiled_in_jail(case, device, cell))
                return self.wrong_outputs(JailedEmulator(cell), one)
        except (ImportError, BackendUnavailable) as error:
            self.found.append(ReplayCheck(f"outputs of {one.side.name}", "open", f"no jail: {error}"))
            return None


def _require_entries(one: ReplaySide, made: RecompiledCode) -> None:
    """Raise a ResultsError where a claim states other entries than the same instructions have."""
    stated = {text: entry.get("symbol") for code in one.side.code for text, entry in code.entries.items()}
    if stated != made.symbols:
        text = next(text for text in {**made.symbols, **stated} if made.symbols.get(text) != stated.get(text))
        raise ResultsError(f"{one.side.name}: its sources and its claim differ in the entry {text:.80}")


def _small_cases(one: ReplaySide) -> list[Case]:
    """Return what a CPU can run in reasonable time: S0, edges and golden data of the same kernel or variant."""
    kernel = one.case.kernel
    cases = [*one.catalogue.cases((), ("S0",)), *one.catalogue.edges()]
    return [case for case in cases if case.kernel == kernel]
