"""Who made a case's machine code, of what: language, compiler and source, as records have them."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast


@dataclass(frozen=True)
class BuildIdentity:
    """Language, compiler with its version, and a hash of what the compiler got; None where a record does not know."""

    language: str | None = None
    compiler: str | None = None
    source: str | None = None

    @classmethod
    def of(cls, code: Mapping[str, object]) -> "BuildIdentity":
        """Return the identity in what a record knows of a case's machine code."""
        language, compiler, source = (code.get(name) for name in ("language", "compiler", "source"))
        return cls(*(None if one is None else str(one) for one in (language, compiler, source)))

    @classmethod
    def read(cls, text: str) -> "BuildIdentity":
        """Return the identity that a point of the history has as text."""
        return cls(*cast("list[str | None]", json.loads(text))) if text else cls()


@dataclass(frozen=True)
class BuildChange:
    """What differs between two builds of other machine code: its `kind`, and the words of a report."""

    kind: Literal["compiler", "source", "both"]
    words: str


def build_change(old: BuildIdentity, new: BuildIdentity) -> BuildChange | None:
    """Return why the machine code of two builds differs; None where the records do not know.

    A new version of the compiler is the reason where the source is the same, or where that is not known.
    """
    if not old.compiler or not new.compiler:
        return None
    versions = f"{old.compiler} -> {_version(old.compiler, new.compiler)}"
    known = old.source is not None and new.source is not None
    if old.compiler == new.compiler:
        return BuildChange("source", "the source changed") if known and old.source != new.source else None
    if known and old.source != new.source:
        return BuildChange("both", f"the source and the compiler changed: {versions}")
    same = "same source, " if known else ""
    return BuildChange("compiler", f"{same}other machine code: {versions}")


def code_change(old: Mapping[str, object], new: Mapping[str, object]) -> BuildChange | None:
    """Return why the machine code that two records know of a case differs; None where it is the same, or unknown."""
    hashes = old.get("sass"), new.get("sass")
    differ = all(hashes) and hashes[0] != hashes[1]
    return build_change(BuildIdentity.of(old), BuildIdentity.of(new)) if differ else None


def new_compilers(changes: Iterable[BuildChange | None]) -> Iterator[str]:
    """Yield for each new version of a compiler how many cases have other machine code by it."""
    counts = Counter(one.words for one in changes if one and one.kind == "compiler")
    for words, count in counts.items():
        yield f"{count} case{'s' if count > 1 else ''}: {words}"


def _version(old: str, new: str) -> str:
    """Return the new compiler's version where its name is the old one's, else all of it."""
    name, _, version = new.rpartition(" ")
    return version if name and name == old.rpartition(" ")[0] else new
