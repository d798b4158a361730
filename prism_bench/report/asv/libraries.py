"""asv's page without a network: its libraries and data in files next to it."""

import hashlib
import io
import os
import re
import tarfile
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.files import cache_folder, write_atomically

# The libraries that asv's page loads from three hosts, fetched once from the npm registry and kept in the cache.
#
# Each package is one tarball, taken only with the digest that is given here, so that a mirror (npm's own setting
# `npm_config_registry` names one) can hand over nothing else. None of it is our code, and none of it is in our tree.

_REGISTRY = "https://registry.npmjs.org"
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
    return (os.environ.get("npm_config_registry") or _REGISTRY).rstrip("/")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# asv's page without a network: its libraries next to it, its data in files that a page from disk may load.
#
# A browser lets a page from disk load scripts, and fetch nothing. So each `X.json` gets a twin `X.json.js` that hands
# the same data over, and `offline.js` turns asv's requests for the one into the other.

# The end of each address that asv's page names, and the file that replaces it.
STAND_INS = {
    "/jquery-3.3.1.min.js": "jquery.min.js",
    "/flot/0.8.3/jquery.flot.min.js": "jquery.flot.js",
    "/flot/0.8.3/jquery.flot.time.min.js": "jquery.flot.time.js",
    "/flot/0.8.3/jquery.flot.selection.min.js": "jquery.flot.selection.js",
    "/flot/0.8.3/jquery.flot.categories.min.js": "jquery.flot.categories.js",
    "/flot-orderbars@1.0.0/js/jquery.flot.orderBars.js": "jquery.flot.orderBars.js",
    "/stupidtable/1.0.1/stupidtable.min.js": "stupidtable.min.js",
    "/blueimp-md5/2.19.0/js/md5.min.js": "md5.min.js",
    "/bootstrap@3.1.1/dist/js/bootstrap.min.js": "bootstrap.min.js",
    "/bootstrap@3.1.1/dist/css/bootstrap.min.css": "bootstrap.min.css",
}
_KNOWN = "it knows the page of asv 0.6.5 and 0.6.6"
_REMOTE = re.compile(r'<(?:script|link)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]+)"[^>]*>')
_ONLY_REMOTE = re.compile(r'\s(?:integrity|crossorigin|referrerpolicy)="[^"]*"')
_OFFLINE = '<script src="offline.js"></script>'


def localised(page: str) -> str:
    """Return asv's page with every remote script and style replaced, and `offline.js` before asv's own scripts."""
    page = _REMOTE.sub(_stand_in, page)
    return inserted(
        page, '    <script language="javascript" type="text/javascript"\n            src="asv.js">', _OFFLINE
    )


def _stand_in(tag: re.Match[str]) -> str:
    address = tag.group(1)
    name = next((name for ending, name in STAND_INS.items() if address.endswith(ending)), None)
    if name is None:
        raise ResultsError(f"asv's page loads {address}, which this version of prism-bench does not carry; {_KNOWN}")
    return _ONLY_REMOTE.sub("", tag.group(0).replace(address, f"{FOLDER}/{name}"))


def inserted(page: str, before: str, addition: str) -> str:
    """Return the page with a new line before the one place where `before` is; a ResultsError without that place."""
    if page.count(before) != 1:
        first = before.strip().splitlines()[0]
        raise ResultsError(f"asv's page has no one place for our additions ({first!r}); {_KNOWN}")
    return page.replace(before, f"{addition}\n{before}")


def write_twins(site: Path) -> None:
    """Put a script next to every JSON file of the site; a NaN, which asv writes and JSON forbids, harms no script."""
    for path in site.rglob("*.json"):
        write_atomically(path.with_name(f"{path.name}.js"), b"prism_bench_file(" + path.read_bytes() + b");\n")
