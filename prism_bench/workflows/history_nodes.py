"""A history of commits folded by machine code: neighbours whose case is the same code and launches are one node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from prism_bench.analysis.compare.medians import medians
from prism_bench.analysis.rivals import clock_of
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.disassembly import CodeDifference, code_differences
from prism_bench.errors import ResultsError, UsageError
from prism_bench.measure.limits import valid
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.case import Case
from prism_bench.workflows.case_code import CaseCode


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


def difference_at(nodes: Sequence[HistoryNode], node: HistoryNode) -> CodeDifference | None:
    """Return the difference of machine code between a node and the one before it; None where neither was compiled."""
    before, after = nodes[nodes.index(node) - 1].code.entries, node.code.entries
    return code_differences(before, after) if before and after else None


def logs_of(record: RunRecord, name: str) -> tuple[float, ...]:
    """Return the log medians of the processes of the case's main time; a ResultsError where it has no valid one."""
    case = record.case(name)
    found = valid(case, clock_of(case)) if case else None
    if found is None or not found.processes:
        reason = (case.reason if case else None) or "no valid time was measured"
        raise ResultsError(f"{name} at {record.commit or 'this commit'}: {reason}")
    return medians(found.processes).logs
