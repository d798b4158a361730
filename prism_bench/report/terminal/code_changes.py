"""Kernels whose machine code changed, in the terminal and as plain values."""

from collections.abc import Sequence
from typing import TypedDict

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.report.code_difference import EntryDifferenceJson, code_difference_json
from prism_bench.report.terminal.code_difference import code_difference_view
from prism_bench.workflows.compile_against import CodeChange
from prism_bench.workflows.compile_table import Complaint, together


class CodeChangeJson(TypedDict):
    """One kernel on one architecture, with the differences of its entries."""

    kernel: str
    architecture: str
    spills_grew: bool
    code_difference: list[EntryDifferenceJson]
    code_note: str | None


def changes_json(
    against: str, changes: Sequence[CodeChange], complaints: Sequence[Complaint], left_out: Sequence[Complaint] = ()
) -> dict[str, object]:
    """Return what `prism-bench compile --against --json` prints."""
    return {
        "against": against,
        "changes": [_change(one) for one in changes],
        "complaints": [{"kernel": one.kernel, "message": one.message} for one in complaints],
        "left_out": [{"kernel": one.kernel, "message": one.message} for one in left_out],
    }


def _change(one: CodeChange) -> CodeChangeJson:
    return {
        "kernel": one.kernel, "architecture": one.architecture, "spills_grew": one.spills_grew,
        "code_difference": code_difference_json(one.entries), "code_note": one.note,
    }  # fmt: skip


def changes_view(
    against: str, changes: Sequence[CodeChange], complaints: Sequence[Complaint], left_out: Sequence[Complaint] = ()
) -> RenderableType:
    """Return each kernel with what changed of it, and how many changed."""
    parts: list[RenderableType] = []
    for one in changes:
        style = "bold red" if one.spills_grew else "bold"
        parts.append(Text(f"{one.kernel} on sm_{one.architecture}", style=style))
        if one.entries:
            parts.append(code_difference_view(code_difference_json(one.entries)))
        parts += [Text(f"  {one.note}", style="dim")] if one.note else []
    parts += [Text(f"{one.kernel}: {one.message}", style="red") for one in complaints]
    parts += [Text(words, style="dim") for words in together(left_out)]
    kernels = len({one.kernel for one in changes})
    parts.append(Text(f"machine code of {kernels or 'no'} kernel{'' if kernels == 1 else 's'} changed since {against}"))
    return Group(*parts)
