"""The examples, each with what it says of itself and its whole text."""

import ast
from pathlib import Path

from docs.generated.markdown import joined

FOLDER = Path(__file__).resolve().parent.parent / "examples"
LEAD = """\
Complete programs, below `docs/examples` in a checkout: `python docs/examples/kernel_benchmarks.py`. Each works with
and without a GPU, and says which it found. On a GPU times are those of the device; on the emulator or NumPy they show
that everything works, and nothing about a kernel."""


def page() -> str:
    """The whole page."""
    return joined(["# Examples", LEAD, *(_section(path) for path in sorted(FOLDER.glob("*.py")))])


def _section(path):
    source = path.read_text()
    tree = ast.parse(source)
    told = ast.get_docstring(tree)
    rest = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    title = path.stem.replace("_", " ").capitalize()
    return joined([f"## {title} {{ #{path.stem} }}", told, f'```python title="docs/examples/{path.name}"\n{rest}\n```'])
