"""Which tests a change cannot reach: those of an extension, where neither it, nor the core, nor its tests changed."""

import re
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
SINCE = "PRISM_BENCH_SINCE"  # a commit that all tests passed at
_READ_BY_NONE = ("CHANGELOG.md", "DECISIONS.md", "CONTRIBUTING.md")  # tests of extensions read docs/ and reports/


def changed_since(commit: str) -> list[str] | None:
    """Return the paths that differ from the commit, files that git does not know among them; None where it has none."""
    known = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if known is None:
        return None
    changed, new = _git("diff", "--name-only", commit, "--"), _git("ls-files", "--others", "--exclude-standard")
    return None if changed is None or new is None else [*changed.splitlines(), *new.splitlines()]


def users() -> dict[str, set[str]]:
    """Return for each extension those whose code or tests name it, itself among them."""
    homes = {path.name: path for path in (HOUSE / "prism_bench" / "extensions").iterdir() if path.is_dir()}
    found = {name: {name} for name in homes}
    for name, home in homes.items():
        for path in (*home.rglob("*.py"), *(HOUSE / "tests" / "extensions" / name).rglob("*.py")):
            for other in re.findall(r"\b(?:prism_bench|tests)\.extensions\.(\w+)", path.read_text()):
                found.setdefault(other, {other}).add(name)
    return found


def unreached(users_of: Mapping[str, Collection[str]], changed: Collection[str]) -> set[str]:
    """Return the extensions that none of the changed paths can matter to."""
    reached: set[str] = set()
    for path in changed:
        if path in _READ_BY_NONE:
            continue
        parts = Path(path).parts
        name = parts[2] if parts[:2] in (("prism_bench", "extensions"), ("tests", "extensions")) else ""
        if name not in users_of:
            return set()
        reached.update(users_of[name])
    return set(users_of) - reached


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=HOUSE, capture_output=True, text=True)
    return None if done.returncode else done.stdout
