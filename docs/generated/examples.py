"""The examples, each with its docstring and its whole text."""

import ast
from pathlib import Path

from docs.generated.markdown import joined

FOLDER = Path(__file__).resolve().parent.parent / "examples"
LEAD = """\
Complete programs, below `docs/examples` in a checkout: `python docs/examples/kernel_benchmarks.py`. Each works with
and without a GPU, and prints which it found. On a GPU times are those of the device; on the emulator or NumPy they show
only that everything works."""


def page() -> str:
    """Return the whole page."""
    return joined(["# Examples", LEAD, *(_section(path) for path in sorted(FOLDER.glob("*.py")))])


def _section(path: Path) -> str:
    source = path.read_text()
    tree = ast.parse(source)
    summary = ast.get_docstring(tree) or ""
    rest = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    title = path.stem.replace("_", " ").capitalize()
    program = f'```python title="docs/examples/{path.name}"\n{rest}\n```'
    return joined([f"## {title} {{ #{path.stem} }}", summary, program])
