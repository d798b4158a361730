"""A history of commits folded by machine code: neighbours whose case is the same code and launches are one node."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from prism_bench.analysis.compare.medians import medians
from prism_bench.analysis.rivals import clock_of
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue, discover
from prism_bench.compilation.code import Resources
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, ResultsError, UsageError
from prism_bench.host_plan import Device
from prism_bench.languages import build, build_request, source_hash
from prism_bench.measure.limits import valid
from prism_bench.run_record import RunRecord


@dataclass(frozen=True)
class CaseCode:
    """What a case runs: `identity` of its machine code, launches and workload, and the resources of its entries."""

    identity: str
    resources: tuple[tuple[str, Resources], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class HistoryNode:
    """Neighbouring commits with the same code, the oldest first; those before `measured` do not build."""

    commits: tuple[str, ...]
    measured: str
    code: CaseCode


def folded(commits: Sequence[str], code_of: Callable[[str], CaseCode | None]) -> list[HistoryNode]:
    """Return the nodes of `commits`, the oldest first; a commit without code belongs to the node after it.

    Raise a UsageError where the first or the last commit has none: these two have to be measured.
    """
    nodes: list[HistoryNode] = []
    broken: tuple[str, ...] = ()
    for commit in commits:
        code = code_of(commit)
        if code is None:
            broken = (*broken, commit)
        elif nodes and nodes[-1].code == code:
            nodes[-1] = replace(nodes[-1], commits=(*nodes[-1].commits, *broken, commit))
            broken = ()
        else:
            nodes.append(HistoryNode((*broken, commit), commit, code))
            broken = ()
    if broken or (nodes and nodes[0].measured != commits[0]):
        failing = broken[-1] if broken else commits[0]
        raise UsageError(f"{failing[:12]} does not build the case: begin and end with commits that do")
    return nodes


def case_in(catalogue: Catalogue, name: str) -> Case | None:
    """Return the case called `name` (`softmax[rows=32,cols=1000]`); None where the catalogue has none."""
    kernel = name.partition("[")[0]
    if kernel.partition(":")[0] not in {*catalogue.kernels, *catalogue.aliases}:
        return None
    return next((case for case in catalogue.cases([kernel]) if case.name == name), None)


def code_at(tree: Path, name: str, device: Device) -> CaseCode | None:
    """Return the code of the case in the catalogue at `tree`; None where it does not exist or does not build there."""
    try:
        case = case_in(discover(tree), name)
        return case_code(case, device) if case else None
    except (CompilationFailed, PrismBenchError):
        return None


def case_code(case: Case, device: Device) -> CaseCode:
    """Return the code that the case launches on `device`; by its source without comments where there is no NVRTC.

    Raise CompilationFailed where it does not compile.
    """
    launches = [str(step) for step in case.plan.steps(device)]
    request = build_request(case, device)
    if request is None:
        return CaseCode(_digest(launches))
    try:
        built = build(request)
    except BackendUnavailable:
        return CaseCode(_digest([source_hash(case.spec.source_file), *case.spec.options, *launches]))
    return CaseCode(_digest([built.sass, *launches]), tuple(built.resources.items()))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def logs_of(record: RunRecord, name: str) -> tuple[float, ...]:
    """Return the log medians of the processes of the case's main time; a ResultsError where it has no valid one."""
    case = record.case(name)
    found = valid(case, clock_of(case)) if case else None
    if found is None or not found.processes:
        reason = (case.reason if case else None) or "no valid time was measured"
        raise ResultsError(f"{name} at {record.commit or 'this commit'}: {reason}")
    return medians(found.processes).logs
