"""A user's folder with three kinds of kernels, made of the guides' own files: Triton, a PyTorch operator, a CUDA file.

The CUDA file has host code and stays where the project has it.
"""

from pathlib import Path

from tests.docs.blocks import PAGES, blocks

TRITON, SOURCES, MINUTES = (PAGES / "guides" / f"{name}.md" for name in ("triton", "project_sources", "ten_minutes"))
# Where the folder has what a guide calls so: one catalogue for all.
FILES = {
    TRITON: {f"my_kernels/rows/scale.{kind}": f"kernels/rows/scale.{kind}" for kind in ("py", "cu", "triton.py")},
    SOURCES: {
        "src/scale_rows.cu": "src/scale_rows.cu", "src/common.h": "src/common.h",
        "bench/rows/scale_rows.py": "kernels/rows/scale_rows.py",
    },
    MINUTES: {"kernels/example/squared_relu.py": "kernels/rows/squared_relu.py"},
}  # fmt: skip
CASES = {
    "scale": "scale[n=4096]", "triton": "scale:triton[n=4096]", "sources": "scale_rows[rows=64,cols=100]",
    "operator": "squared_relu[n=100000]",
}  # fmt: skip


def write_project(root: Path) -> None:
    """Write the folder; an AssertionError where a guide no longer has one of its files."""
    for page, names in FILES.items():
        found = {block.title: block.text for block in blocks(page) if block.is_file}
        for title, name in names.items():
            assert title in found, f"{page.name} has no {title}"
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(found[title])
    (root / "prism-bench.toml").write_text('catalogue = "kernels"\nlabels = ["S0"]\n')
