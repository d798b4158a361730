"""Which cases a comparison measured and why, as plain values: for JSON, comments on pull requests, and pages."""

from typing import TypedDict

from prism_bench.analysis.compare.selection import CaseRole, ChangeReason, CodeIdentity, SelectedCase, Selection
from prism_bench.report.code_difference import EntryDifferenceJson, code_difference_json


class SelectedCaseJson(TypedDict):
    """The role of a case, what changed of it, and the difference of its machine code, entry by entry.

    `code_note` is why instructions are not listed, or in what else the code differs.
    """

    role: CaseRole
    changed: list[ChangeReason]
    code_difference: list[EntryDifferenceJson]
    code_note: str | None


class SelectionJson(TypedDict):
    """What identified code, how many cases have each role, why all were measured (null: they were not), and seconds."""

    by: CodeIdentity
    roles: dict[CaseRole, int]
    changed: int
    everything: str | None
    seconds: dict[str, float]


# Of a case that every comparison on a device measures, the launch overhead.
ADDED: SelectedCaseJson = {"role": "control", "changed": [], "code_difference": [], "code_note": None}


def selected_json(one: SelectedCase) -> SelectedCaseJson:
    """Return one case as plain JSON values."""
    code = code_difference_json(one.differences)
    return {"role": one.role, "changed": list(one.reasons), "code_difference": code, "code_note": one.note}


def selection_json(selection: Selection) -> SelectionJson:
    """Return the selection without its cases as plain JSON values."""
    counted: dict[CaseRole, int] = {}
    for one in selection.cases:
        counted[one.role] = counted.get(one.role, 0) + 1
    return {
        "by": selection.by,
        "roles": counted,
        "changed": len(selection.changed),
        "everything": selection.everything,
        "seconds": {part: round(seconds, 3) for part, seconds in selection.seconds.items()},
    }
