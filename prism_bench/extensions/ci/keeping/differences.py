"""What to do with a file that a checkout and its history have in different versions."""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from prism_bench.extensions.ci.keeping.merging import merged
from prism_bench.extensions.ci.keeping.names import family, free_name, is_merged, is_record
from prism_bench.extensions.ci.keeping.targets import HistoryState, HistoryTarget, sound_contents

# write: the source's; merge: both; number: the source's under another name; replace: the last writer's; None: nothing
Action = Literal["write", "merge", "number", "replace"]


@dataclass(frozen=True)
class Digests:
    """Digests of one file: where it comes from, where it goes to, and what both had in common; empty: absent."""

    source: str
    destination: str
    base: str


def action(name: str, found: Digests) -> Action | None:
    """Return what brings the source's version to the destination and loses nothing that is there."""
    if not found.destination:
        return "write"
    if found.source == found.destination:
        return None
    if is_merged(name):
        return "merge"
    if found.destination == found.base:
        return "write"
    if found.source == found.base:
        return None
    return "number" if is_record(name) else "replace"


@dataclass(frozen=True)
class Remote:
    """A history with one version of each file: `digests` by name, and contents that only `made` has so far.

    `problems` are sentences on the contents that were missing or damaged; None where such a content is an error.
    """

    target: HistoryTarget
    digests: Mapping[str, str]
    made: Mapping[str, bytes]
    problems: list[str] | None = None

    def load(self, names: Container[str]) -> dict[str, bytes]:
        """Return the contents of these files, as far as they are there."""
        kept = [(name, digest) for name, digest in self.digests.items() if name in names and name not in self.made]
        loaded = {name: data for (name, _), data in sound(self.target, kept, self.problems)}
        return {**loaded, **{name: data for name, data in self.made.items() if name in names}}


def sound(
    target: HistoryTarget, files: Sequence[tuple[str, str]], problems: list[str] | None
) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yield each file, name and digest, with its content.

    One that is missing or damaged is left out and a sentence is added to `problems`; without these, raise its error.
    """
    for file, data in zip(files, sound_contents(target, files), strict=True):
        if isinstance(data, bytes):
            yield file, data
        elif problems is None:
            raise data
        else:
            problems.append(str(data))


def families(digests: Mapping[str, str]) -> dict[tuple[str, str], set[str]]:
    """Return the digests of records by what their names have in common."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name, digest in digests.items():
        if is_record(name):
            found[family(name)].add(digest)
    return found


def resolved(target: HistoryTarget, state: HistoryState, problems: list[str] | None = None) -> Remote:
    """Return the history with one version of each file; what keepers at once wrote is merged or numbered.

    Versions that are missing or damaged are left out; see `sound`.
    """
    digests = {name: versions[-1] for name, versions in state.files.items()}
    made: dict[str, bytes] = {}
    for name, versions in state.files.items():
        if len(versions) < 2 or not (is_merged(name) or is_record(name)):
            continue
        contents = {digest: data for (_, digest), data in sound(target, [(name, one) for one in versions], problems)}
        if not contents:
            del digests[name]
        elif is_merged(name):
            made[name] = reduce(lambda first, second, name=name: merged(name, None, second, first), contents.values())
            digests[name] = target.digest(made[name])
        else:
            digests[name] = next(iter(contents))
            for digest, data in contents.items():
                if digest not in families(digests)[family(name)]:
                    other = free_name(name, digests)
                    made[other], digests[other] = data, digest
    return Remote(target, digests, made, problems)
