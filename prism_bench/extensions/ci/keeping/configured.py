"""The history at an address, and the one that the project's configuration names in the table `history`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.errors import UsageError
from prism_bench.extensions.ci.keeping.base import Base
from prism_bench.extensions.ci.keeping.branch import Branch
from prism_bench.extensions.ci.keeping.bucket import Bucket
from prism_bench.extensions.ci.keeping.history import Checkout
from prism_bench.extensions.ci.keeping.storage import FolderStorage, url_storage
from prism_bench.extensions.ci.keeping.targets import BRANCH, DEFAULT, HistoryTarget
from prism_bench.io import project


@dataclass(frozen=True)
class HistoryKeys:
    """Keys of the table: an address, as `--to` takes it, and options for fsspec, such as `endpoint_url`."""

    to: str | None = None
    options: dict[str, object] = field(default_factory=dict[str, object])


def opened(address: str, folder: Path, options: Mapping[str, object] | None = None) -> HistoryTarget:
    """Return the target of an address: `branch:NAME` of the repository around `folder`, an fsspec URL, or a folder.

    `options` go to fsspec. Raise a UsageError for an address that is none, or a package that is missing.
    """
    if address.startswith(BRANCH):
        return Branch(address.removeprefix(BRANCH), folder)
    if re.match(r"[a-z][a-z0-9+.-]+://", address):
        return Bucket(url_storage(address, options or {}))
    if re.match(r"[a-z0-9]{2,}:", address):
        raise UsageError(f"--to {address}: write branch:NAME, a folder, or a URL such as s3://bucket/prefix")
    return Bucket(FolderStorage(folder / address))


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
