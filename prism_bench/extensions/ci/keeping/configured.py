"""The history that the project's configuration names, in the table `history`."""

from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.extensions.ci.keeping.base import Base
from prism_bench.extensions.ci.keeping.history import Checkout
from prism_bench.extensions.ci.keeping.targets import BRANCH, DEFAULT, HistoryTarget, opened
from prism_bench.io import project


@dataclass(frozen=True)
class HistoryKeys:
    """Keys of the table: an address, as `--to` takes it, and options for fsspec, such as `endpoint_url`."""

    to: str | None = None
    options: dict[str, object] = field(default_factory=dict[str, object])


def root() -> Path:
    """Return the folder of the project's configuration, else the current one."""
    found = project.current()
    return found.root if found else Path.cwd()


def history_keys() -> HistoryKeys:
    """Return the configured keys; raise a UsageError for wrong ones."""
    found = project.current()
    return found.section("history", HistoryKeys) if found else HistoryKeys()


def history_target(to: str | None) -> HistoryTarget:
    """Return the history of the address, else the configured one, else the default branch."""
    keys = history_keys()
    if to and not to.startswith(BRANCH) and "://" not in to:
        return opened(to, Path.cwd())
    return opened(to or keys.to or DEFAULT, root(), keys.options)


def checkout_of(target: HistoryTarget, runs: Path) -> Checkout:
    """Return the checkout whose records are below `runs`."""
    return Checkout(runs, Base(root(), target.address))
