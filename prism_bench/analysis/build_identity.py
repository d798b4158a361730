"""Origin of a case's machine code as records have it: language, compiler and source."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast


@dataclass(frozen=True)
class BuildIdentity:
    """Language, compiler with its version, and a hash of the compiler's input; None if a record lacks it."""

    language: str | None = None
    compiler: str | None = None
    source: str | None = None

    @classmethod
    def of(cls, code: Mapping[str, object]) -> "BuildIdentity":
        """Return the identity in a record's facts of a case's machine code."""
        values = [code.get(name) for name in ("language", "compiler", "source")]
        return cls(*(None if value is None else str(value) for value in values))

    @classmethod
    def read(cls, text: str) -> "BuildIdentity":
        """Return the identity in the text of a point of the history."""
        return cls(*cast("list[str | None]", json.loads(text))) if text else cls()


@dataclass(frozen=True)
class BuildChange:
    """Difference between two builds of other machine code: its `kind`, and the text of a report."""

    kind: Literal["compiler", "source", "both"]
    words: str


def build_change(old: BuildIdentity, new: BuildIdentity) -> BuildChange | None:
    """Return why the machine code of two builds differs; None if the records do not show it.

    A new version of the compiler is the reason if the source is the same or unknown.
    """
    if not old.compiler or not new.compiler:
        return None
    name, _, version = new.compiler.rpartition(" ")
    same_name = name and name == old.compiler.rpartition(" ")[0]
    versions = f"{old.compiler} -> {version if same_name else new.compiler}"
    known = old.source is not None and new.source is not None
    if old.compiler == new.compiler:
        return BuildChange("source", "the source changed") if known and old.source != new.source else None
    if known and old.source != new.source:
        return BuildChange("both", f"the source and the compiler changed: {versions}")
    same = "same source, " if known else ""
    return BuildChange("compiler", f"{same}other machine code: {versions}")


def code_change(old: Mapping[str, object], new: Mapping[str, object]) -> BuildChange | None:
    """Return why the machine code of a case differs between two records; None if it is the same, or unknown."""
    hashes = old.get("sass"), new.get("sass")
    differ = all(hashes) and hashes[0] != hashes[1]
    return build_change(BuildIdentity.of(old), BuildIdentity.of(new)) if differ else None


def new_compilers(changes: Iterable[BuildChange | None]) -> Iterator[str]:
    """Yield for each new version of a compiler the number of cases with other machine code, and the versions."""
    counts = Counter(change.words for change in changes if change and change.kind == "compiler")
    for text, count in counts.items():
        yield f"{count} case{'s' if count > 1 else ''}: {text}"
