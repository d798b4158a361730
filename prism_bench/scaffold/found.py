"""Kernels found in a user's sources: what the scanner returns, and `prism-bench init --from` writes specs from.

Text is Python as a spec would hold it: a shape is `"rows cols"`, a grid `-(-n // 256)`. What nobody wrote down in the
source is a guess, named as such, and marked in the spec for its author to confirm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ArgumentKind = Literal["In", "Out", "InOut", "Scratch", "Scalar"]
KernelLanguage = Literal["cuda", "triton", "torch"]


@dataclass(frozen=True)
class FoundArgument:
    """One argument in the order of the signature.

    `dtype` is NumPy's name (`float32`); `shape` names axes of `workloads` for buffers, and is empty for scalars.
    `guessed` names the fields that the source does not show, such as `("kind", "shape")`.
    """

    name: str
    kind: ArgumentKind
    dtype: str
    shape: str = ""
    guessed: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundLaunch:
    """A launch as Python expressions over axes: `-(-n // 256)`, or a tuple such as `(columns, rows)`.

    `text` is the source's own, such as `<<<(n + 255) / 256, 256>>>`; empty where none was found and all is a guess.
    """

    grid: str
    block: str
    shared: str = "0"
    text: str = ""


@dataclass(frozen=True)
class FoundKernel:
    """One kernel that a spec can be written for.

    `name` becomes the name of the spec's file, a Python identifier; `entry` is what the launch calls (of a template,
    one instance of it). `path` and `line` are where it is; `source` is the text of the kernel's own file in the
    catalogue, without host code, and `suffix` that file's. `workloads` gives each label a size for every axis and
    scalar; all of them are guesses. `notes` are sentences for the author, written above the spec.
    """

    name: str
    language: KernelLanguage
    path: Path
    line: int
    entry: str
    arguments: tuple[FoundArgument, ...]
    launch: FoundLaunch
    source: str
    suffix: str = ".cu"
    workloads: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict[str, Mapping[str, int | float]])
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnreadPlace:
    """What the scanner could not read, or what no spec can be written for: where, and why, in one sentence."""

    path: Path
    line: int
    reason: str


@dataclass(frozen=True)
class FoundSources:
    """What `prism_bench.scaffold.scan.scan(folder)` returns; kernels in the order of path and line, names once each."""

    kernels: tuple[FoundKernel, ...] = ()
    unread: tuple[UnreadPlace, ...] = ()
