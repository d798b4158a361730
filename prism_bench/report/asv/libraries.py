"""The libraries that asv's page loads from three hosts, fetched once from the npm registry and kept in the cache.

Each package is one tarball, taken only with the digest that is given here, so that a mirror (npm's own setting
`npm_config_registry` names one) can hand over nothing else. None of it is our code, and none of it is in our tree.
"""

import hashlib
import io
import os
import tarfile
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.files import cache_folder, write_atomically

REGISTRY = "https://registry.npmjs.org"
FOLDER = "vendor"  # in the site
_SECONDS = 20.0


@dataclass(frozen=True)
class Package:
    """One tarball of the registry: `files` are the names in the site with the path that each has in the package."""

    name: str
    version: str
    sha256: str
    files: Mapping[str, str]

    @property
    def tarball(self) -> str:
        return f"{self.name}-{self.version}.tgz"


PACKAGES = (
    Package(
        "jquery", "3.3.1", "2c7c70a1e796c1568ff05d45a8cb2da2a0fc6e37426c65e4eef6ee55e217933e",
        {"jquery.min.js": "dist/jquery.min.js"},
    ),
    Package(
        "flot", "0.8.3", "5e4cea78a9efa2d3dbba363ac76c688951e6c638ee916883c36e23516208b1ed",
        {f"jquery.flot{part}.js": f"jquery.flot{part}.js" for part in ("", ".time", ".selection", ".categories")},
    ),
    Package(
        "flot-orderbars", "1.0.0", "e5523ee7cca778f194b34fc31afb6dda40bf1557e6669fda4730c29f53e87101",
        {"jquery.flot.orderBars.js": "js/jquery.flot.orderBars.js"},
    ),
    Package(
        "stupid-table-plugin", "1.1.3", "1186089584b7c2f7fec9ad4232e9aa1adbfea273eaa233b713beb8c2c916b4ac",
        {"stupidtable.min.js": "stupidtable.min.js"},
    ),
    Package(
        "blueimp-md5", "2.19.0", "0fff5798c7733b21f3e4c0de69ccba12af266e0f01c3e3a41051c0e49a655512",
        {"md5.min.js": "js/md5.min.js"},
    ),
    Package(
        "bootstrap", "3.1.1", "23b27da4dd80b8fbe8972ac4be87037627e007ad5dd1edb27435844f0a4646a0",
        {"bootstrap.min.js": "dist/js/bootstrap.min.js", "bootstrap.min.css": "dist/css/bootstrap.min.css"},
    ),
)  # fmt: skip


def carry_libraries(site: Path, packages: tuple[Package, ...] = PACKAGES) -> None:
    """Put the libraries into `site`; a ResultsError saying which one could not be had, and why."""
    for package in packages:
        with tarfile.open(fileobj=io.BytesIO(_tarball(package)), mode="r:gz") as archive:
            for name, path in package.files.items():
                member = archive.extractfile(f"package/{path}")
                if member is None:
                    raise ResultsError(f"{package.tarball} has no file at {path}")
                write_atomically(site / FOLDER / name, member.read())


def _tarball(package: Package) -> bytes:
    """Return the package's tarball, from the cache or from the registry."""
    kept = cache_folder("npm") / package.tarball
    if kept.is_file() and _digest(kept.read_bytes()) == package.sha256:
        return kept.read_bytes()
    data = _fetched(package)
    if _digest(data) != package.sha256:
        raise ResultsError(f"{package.tarball} from {_registry()} has another digest than the one that is known")
    with suppress(OSError):  # a cache that cannot be written costs another download, nothing else
        write_atomically(kept, data)
    return data


def _fetched(package: Package) -> bytes:
    address = f"{_registry()}/{package.name}/-/{package.tarball}"
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            return answer.read()
    except (OSError, ValueError) as error:
        raise ResultsError(f"{address} does not answer ({error})") from error


def _registry() -> str:
    return (os.environ.get("npm_config_registry") or REGISTRY).rstrip("/")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
