"""The cases and the protocol of the checkout that contains these suites: of Prism Bench itself, or of a user's project.

asv passes a benchmark only the *position* of its case, in whichever environment it runs. If the list came from the
installed commit, an older one without some kernel would have a shorter list and record another case's time under the
wrong name. So the list is made by the checkout's own package from the checkout's own kernels, the same in every
environment, and each name is looked up in what the installed commit measured.
"""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent


@cache
def configuration() -> dict[str, Any]:
    """Return the checkout's configuration; empty in Prism Bench's own checkout.

    Read here, and not by `prism_bench.io.project`, which an older installed commit does not have.
    """
    for name in ("prism-bench.toml", "pyproject.toml"):
        if (CHECKOUT / name).is_file():
            table: Any = tomllib.loads((CHECKOUT / name).read_text("utf-8"))
            table = table if name == "prism-bench.toml" else table.get("tool", {}).get("prism-bench", {})
            if table:
                return table
    return {}


def configured_catalogue() -> str | None:
    """Return the folder of the catalogue by the checkout's configuration; None in Prism Bench's own checkout."""
    return configuration().get("catalogue") or None


def chosen_cases() -> list[str]:
    """Return what PRISM_BENCH_ASV_CASES or else the configuration chooses, as CASES of a command; empty for all."""
    chosen: Any = os.environ.get("PRISM_BENCH_ASV_CASES", "").split() or configuration().get("asv", {}).get("cases", [])
    if not isinstance(chosen, list) or not all(isinstance(name, str) for name in chosen):
        raise RuntimeError(f"the configuration's asv.cases is {chosen!r}: a list of kernels, families or cases")
    return chosen


@cache
def listing() -> dict[str, Any]:
    """Return `protocol` and the names of `cases`; made once for each content of the checkout and kept in .asv.

    A choice of cases or labels leaves out all others: asv starts a process for each value, measured or not.
    """
    kept = CHECKOUT / ".asv" / "listing" / f"{_content()}.json"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(_ask())
        unfinished.replace(kept)
    found = json.loads(kept.read_text())
    labels = os.environ.get("PRISM_BENCH_ASV_LABELS", "").split(",")
    return found | {"cases": [name for name, label in found["cases"] if label in labels or labels == [""]]}


def _content() -> str:
    """Return a digest of the choice of cases and of every Python file that the listing depends on."""
    digest, catalogue = (
        hashlib.sha256(json.dumps(chosen_cases()).encode()),
        CHECKOUT / (configured_catalogue() or "kernels"),
    )
    package = find_spec("prism_bench")
    installed = [] if (CHECKOUT / "prism_bench").is_dir() or not package else [Path(package.origin or "")]
    for path in sorted([*catalogue.rglob("*.py"), *CHECKOUT.glob("prism_bench/**/*.py"), *installed]):
        digest.update(
            f"{path.name if path in installed else path.relative_to(CHECKOUT)}\0".encode() + path.read_bytes()
        )
    return digest.hexdigest()[:16]


def _ask() -> str:
    """Run this file against the checkout's package, whatever is installed; a user's checkout has no package."""
    command = [sys.executable, "-m", "suites.listing"]
    asked = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    if asked.returncode:
        raise RuntimeError(f"the catalogue of the suites' checkout cannot be listed: {asked.stderr.strip()}")
    return asked.stdout


def main() -> None:
    """Print the listing as JSON; there is none with a broken spec, since its gap would shift every later position."""
    from prism_bench.catalogue import discover
    from prism_bench.errors import UsageError
    from prism_bench.run import PROTOCOL

    catalogue = discover(CHECKOUT / (configured_catalogue() or "kernels"))
    broken = [problem for problem in catalogue.problems if problem.path.suffix == ".py"]
    if broken:
        sys.exit("\n".join(map(str, broken)))
    try:
        cases = catalogue.cases(chosen_cases())
    except UsageError as error:
        sys.exit(f"the choice of cases for asv: {error}")
    print(json.dumps({"protocol": PROTOCOL, "cases": [(case.name, case.label) for case in cases]}))


if __name__ == "__main__":
    main()
