"""Size of the code: lines and files of each part, layers, circles, short private functions, and files next to it."""

import argparse
import ast
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from lab import REPOSITORY
from lab.imports import LAYERS, circles, edges, modules
from prism_bench.units import count_text

SHORT = 8  # lines of a private function that is better inline where it is used once
VAGUE = {"one", "found", "said", "own", "words", "given", "told"}  # names that do not say what a value is
_SKIP = re.compile(r"#\s*fmt: skip\b")


@dataclass(frozen=True)
class PartSize:
    """Lines and files of Python."""

    lines: int
    files: int


@dataclass(frozen=True)
class HouseNumbers:
    """Numbers of a checkout.

    `core` is the package without extensions and emulator. `top_modules` are the files in the package's own folder, but
    `__init__` and `__main__`. `short_private_functions` have at most `SHORT` lines, a name that begins with one
    underscore, and one use in their file. `public_names` are functions and classes at the top of a file,
    `vague_names` values and parameters called one of `VAGUE`. `report_megabytes` counts files under version control.
    """

    parts: Mapping[str, PartSize]
    top_modules: int
    layers: int
    circles: Sequence[Sequence[str]]
    short_private_functions: int
    public_names: int
    vague_names: int
    format_skips: int
    median_function_lines: float
    median_file_lines: float
    decisions_kilobytes: float
    changelog_kilobytes: float
    report_megabytes: float
    commands: int


def numbers(root: Path, commands: int) -> HouseNumbers:
    """Return the numbers of the checkout at `root`, whose command line has that many commands."""
    package = root / "prism_bench"
    texts = {path: path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    trees = [ast.parse(text) for text in texts.values()]
    aside = [package / "extensions", package / "emulator"]
    parts = {
        "prism_bench": _size(texts),
        "core": _size({path: text for path, text in texts.items() if not {*aside} & {*path.parents}}),
        **{f"prism_bench/{part.name}": _size_below(part) for part in aside},
        "scripts/lab": _size_below(root / "scripts" / "lab"),
    }
    return HouseNumbers(
        parts=parts,
        top_modules=sum(path.stem not in ("__init__", "__main__") for path in package.glob("*.py")),
        layers=len(LAYERS),
        circles=circles(edges(modules(package))),
        short_private_functions=sum(map(short_private_functions, trees)),
        public_names=sum(map(public_names, trees)),
        vague_names=sum(map(vague_names, trees)),
        format_skips=sum(len(_SKIP.findall(text)) for text in texts.values()),
        median_function_lines=median(_lines(node) for tree in trees for node in _functions(tree)),
        median_file_lines=median(len(text.splitlines()) for text in texts.values()),
        decisions_kilobytes=(root / "DECISIONS.md").stat().st_size / 1e3,
        changelog_kilobytes=(root / "CHANGELOG.md").stat().st_size / 1e3,
        report_megabytes=sum(path.stat().st_size for path in _kept(root, "reports")) / 1e6,
        commands=commands,
    )


def short_private_functions(tree: ast.Module) -> int:
    """Return how many private functions and methods of a file have at most `SHORT` lines and one use in it."""
    uses = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return sum(
        node.name.startswith("_") and not node.name.startswith("__") and _lines(node) <= SHORT and uses[node.name] == 1
        for node in _functions(tree)
    )


def public_names(tree: ast.Module) -> int:
    """Return how many functions and classes at the top of a file have a name without an underscore in front."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return sum(isinstance(node, kinds) and not node.name.startswith("_") for node in tree.body)


def vague_names(tree: ast.Module) -> int:
    """Return how often a file gives a value or a parameter a name of `VAGUE`."""
    return sum(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE)
        or (isinstance(node, ast.arg) and node.arg in VAGUE)
        for node in ast.walk(tree)
    )


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _size(texts: Mapping[Path, str]) -> PartSize:
    return PartSize(sum(len(text.splitlines()) for text in texts.values()), len(texts))


def _size_below(folder: Path) -> PartSize:
    return _size({path: path.read_text("utf-8") for path in folder.rglob("*.py")})


def _kept(root: Path, folder: str) -> Iterator[Path]:
    """Yield the files of the folder that are under version control, all of them outside a checkout."""
    listed = subprocess.run(["git", "ls-files", "-z", folder], cwd=root, capture_output=True, text=True)
    names = listed.stdout.split("\0") if listed.returncode == 0 else map(str, (root / folder).rglob("*"))
    yield from (root / name for name in names if name and (root / name).is_file())


def rows(found: HouseNumbers) -> list[tuple[str, str]]:
    """Return the table: what is counted, and the number."""
    longest = max(map(len, found.circles), default=0)
    circle_text = f"{len(found.circles)}, the largest of {count_text(longest, 'file')}" if found.circles else "0"
    return [
        *((name, f"{size.lines:,} lines in {count_text(size.files, 'file')}") for name, size in found.parts.items()),
        ("modules at the top of prism_bench", str(found.top_modules)),
        ("layers", str(found.layers)),
        ("circles between files", circle_text),
        (f"private functions used once, at most {SHORT} lines", f"{found.short_private_functions:,}"),
        ("public functions and classes", f"{found.public_names:,}"),
        (f"values named {', '.join(sorted(VAGUE))}", f"{found.vague_names:,}"),
        ("# fmt: skip", str(found.format_skips)),
        ("median lines of a function", f"{found.median_function_lines:g}"),
        ("median lines of a file", f"{found.median_file_lines:g}"),
        ("DECISIONS.md", f"{found.decisions_kilobytes:.1f} kB"),
        ("CHANGELOG.md", f"{found.changelog_kilobytes:.1f} kB"),
        ("reports/", f"{found.report_megabytes:.1f} MB"),
        ("commands", str(found.commands)),
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(prog="house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    chosen = parser.parse_args(words)
    from prism_bench.cli import app

    found = numbers(REPOSITORY, len(app.registered_commands))
    if chosen.json:
        print(json.dumps(asdict(found)))
    else:
        table = rows(found)
        width = max(len(name) for name, _ in table)
        print(*(f"{name:{width}}  {value}" for name, value in table), sep="\n")
    return 0
