"""A project that was set up, in the terminal and as plain values."""

from pathlib import Path
from typing import TypedDict

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.extensions.init.new_project import NewProject
from prism_bench.extensions.init.skeletons import SkeletonFile
from prism_bench.extensions.init.writing import DRAFT

_MOST = 20  # lines of what has no spec


class LeftJson(TypedDict):
    """A file that stays as it is, and why."""

    path: str
    reason: str


class SpecJson(TypedDict):
    """A spec that was written from a source: its file, the kernel, whether it loads, and what its author has to do."""

    path: str
    kernel: str
    source: str
    loads: bool
    open_points: list[str]


class NewProjectJson(TypedDict):
    """What was written and left, the specs, what has no spec and why, a note, and the next commands."""

    root: str
    catalogue: str
    wrote: list[str]
    left: list[LeftJson]
    specs: list[SpecJson]
    without: list[str]
    note: str | None
    next: list[str]


def new_project_json(made: NewProject) -> NewProjectJson:
    """Return what was done as plain JSON values; paths are relative to the root."""
    return {
        "root": str(made.root),
        "catalogue": made.catalogue,
        "wrote": [path.as_posix() for path in made.written.wrote],
        "left": [{"path": one.path.as_posix(), "reason": one.reason} for one in made.written.left],
        "specs": [_spec(one) for one in made.found.specs] if made.found else [],
        "without": list(made.found.without) if made.found else [],
        "note": made.note,
        "next": next_commands(made),
    }


def _spec(one: SkeletonFile) -> SpecJson:
    source = f"{one.kernel.path}:{one.kernel.line}"
    return {"path": one.file.path.as_posix(), "kernel": one.kernel.name, "source": source,
            "loads": one.skeleton.loads, "open_points": list(one.skeleton.open_points)}  # fmt: skip


def next_commands(made: NewProject) -> list[str]:
    """Return the commands that come next."""
    enter = [] if made.root.resolve() == Path.cwd() else [f"cd {made.root}"]
    return [*enter, "prism-bench verify", "prism-bench run", "prism-bench compare"]


def new_project_view(made: NewProject) -> RenderableType:
    """Return a line for each file, what is open in each spec, and the next commands."""
    lines = [Text.assemble(("wrote  ", "green"), path.as_posix()) for path in made.written.wrote]
    lines += [
        Text.assemble(("left   ", "yellow"), f"{one.path.as_posix()}  ({one.reason})") for one in made.written.left
    ]
    if made.found:
        lines += [Text(), *_open(made.found.specs, made), *_without(made.found.without)]
    lines += [Text.assemble(("note   ", "yellow"), made.note)] if made.note else []
    return Group(*lines, Text(), *_next(made))


def _open(specs: tuple[SkeletonFile, ...], made: NewProject) -> list[Text]:
    wrote = [one for one in specs if one.file.path in made.written.wrote]
    lines: list[Text] = []
    for one in wrote:
        broken = "" if one.skeleton.loads else f"  (a draft: complete it, and remove {DRAFT})"
        lines.append(Text.assemble((one.kernel.name, "bold"), f" of {one.kernel.path}:{one.kernel.line}{broken}"))
        lines += [Text(f"  to do: {point}", overflow="fold") for point in one.skeleton.open_points]
    return lines


def _without(reasons: tuple[str, ...]) -> list[Text]:
    more = [f"... and {len(reasons) - _MOST} more, in --json"] if len(reasons) > _MOST else []
    return [Text(f"no spec: {reason}", "dim", overflow="fold") for reason in [*reasons[:_MOST], *more]]


def _next(made: NewProject) -> list[Text]:
    purposes = {
        "prism-bench verify": "are the kernels right, on the GPU and emulated?",
        "prism-bench run": "time them, and keep a record",
        "prism-bench compare": "after a change: is anything slower?",
    }
    lines = [Text("Next:")]
    return lines + [
        Text(f"  {one:20}  # {purposes[one]}" if one in purposes else f"  {one}") for one in next_commands(made)
    ]
