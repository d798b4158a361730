"""Stored choices brought up to date with the catalogue without a device: kept where the launch is what it was."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.run.worktree import checked_out
from prism_bench.workflows.tuning.choice import TuningChoice
from prism_bench.workflows.tuning.kept import KeptChoices, read_kept, write_kept
from prism_bench.workflows.tuning.launched import launched


@dataclass(frozen=True)
class Restamped:
    """The choices that hold, how many of them have a new hash, and the reasons of those that were `dropped`."""

    kept: tuple[TuningChoice, ...]
    changed: int
    dropped: tuple[tuple[TuningChoice, str], ...]


def restamp(path: Path, catalogue: Catalogue) -> Restamped:
    """Rewrite the choices at `path` for the catalogue; a ResultsError where there are none.

    A choice whose launch is the same at its commit, which is checked out for it, gets the hash of today. One whose
    launch changed since, or is gone, is dropped.
    """
    kept = read_kept(path)
    if kept is None:
        raise ResultsError(f"{path}: there is no such file; 'prism-bench tune' makes one")
    with ExitStack() as stack:
        then = _Then(catalogue, stack)
        found = judged(kept.choices, lambda name: _hash(catalogue, name), then.hash)
    write_kept(KeptChoices(kept.machine, kept.device, kept.backend, found.kept), path)
    return found


def judged(
    choices: Sequence[TuningChoice], now: Callable[[str], str | None], then: Callable[[str, str], str | None]
) -> Restamped:
    """Keep the choices whose hash, by kernel `now` and by kernel and commit `then`, is the same; drop the others."""
    kept: list[TuningChoice] = []
    dropped: list[tuple[TuningChoice, str]] = []
    changed = 0
    for choice in choices:
        today = now(choice.kernel)
        if today is None:
            dropped.append((choice, "the catalogue has no such kernel"))
        elif choice.source == today:
            kept.append(choice)
        elif choice.commit is None:
            dropped.append((choice, "its commit is unknown"))
        elif then(choice.kernel, choice.commit) != today:
            dropped.append((choice, f"what is launched changed since {choice.commit[:9]}"))
        else:
            kept.append(replace(choice, source=today))
            changed += 1
    return Restamped(tuple(kept), changed, tuple(dropped))


class _Then:
    """The same catalogue at other commits, each checked out once."""

    def __init__(self, catalogue: Catalogue, stack: ExitStack) -> None:
        self._folder, self._stack = catalogue.folder.resolve(), stack
        self._catalogues: dict[str, Catalogue] = {}

    def hash(self, kernel: str, commit: str) -> str | None:
        """Return the hash of a kernel at a commit, None where it was not there."""
        if commit not in self._catalogues:
            top = next((one for one in self._folder.parents if (one / ".git").exists()), self._folder.parent)
            tree = self._stack.enter_context(checked_out(commit, top))
            self._catalogues[commit] = discover(tree / self._folder.relative_to(top))
        return _hash(self._catalogues[commit], kernel)


def _hash(catalogue: Catalogue, kernel: str) -> str | None:
    name, _, variant = kernel.partition(":")
    try:
        spec = catalogue.kernel(name)
        return launched(spec.with_variant(variant) if variant else spec)
    except PrismBenchError:
        return None
